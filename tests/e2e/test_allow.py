"""The rules of an origin about the requests that it may receive: [[origin]] allow."""
import pytest
from harness.h2_client import H2Client
from harness.wait import until
from harness.wire import Client

REFUSED = "carpool_requests_refused_total"


@pytest.fixture
def scene(origin, carpool):
    o = origin()
    return o, carpool(origin=[{"uri": o.url, "alias": ["api"], "allow": ["GET /v1/*", "POST /orders", "* /public/*"]}])


@pytest.mark.parametrize("method, path, allowed", [
    ("GET", "/v1/", True), ("GET", "/v1/x?y=../z", True), ("GET", "/v1", False), ("GET", "/v2/x", False), ("HEAD", "/v1/x", False),
    ("POST", "/orders", True), ("POST", "/orders?x", True), ("POST", "/orders/1", False), ("DELETE", "/public/x", True), ("get", "/v1/x", False),
    ("GET", "/v1/../secret", False), ("GET", "/v1/%2e%2e/secret", False), ("GET", "/v1/..%2fsecret", False), ("GET", "/v1/..;x/secret", False),
    ("GET", "/v1/a%5c..%5cb", False), ("GET", "/v1/%c0%ae%c0%ae/secret", False), ("GET", "/v1/%252e%252e/secret", False), ("GET", "/v1/;/../secret", False),
    ("GET", "/v1/%EF%BC%8E%EF%BC%8E/secret", False), ("GET", "/v1/..%20/secret", False), ("GET", "/v1//caf%C3%A9", True),
    ("GET", "/V1/x", False), ("OPTIONS", "*", False)])
def test_only_what_a_rule_matches_reaches_the_origin(scene, method, path, allowed):
    o, c = scene
    with c.client() as client:
        target = path if path == "*" else "http://api" + path
        response = client.request(method, target, host="api")
    if allowed:
        assert response.status == 200 and o.targets() == [path], response
        return
    assert response.status == 403 and "http_request_denied" in response.get("proxy-status"), response
    assert not o.seen and o.opened == 0
    until(lambda: c.metric(REFUSED, origin=o.url) == 1, what="the count")


@pytest.mark.parametrize("own, fields, allowed", [
    ("POST /orders", {"X-HTTP-Method-Override": "DELETE"}, False),
    ("POST /orders", {"x-method-override": "delete"}, False),
    ("POST /orders", {"X-HTTP-Method": "PUT"}, False),
    ("POST /orders", {"X_HTTP_Method_Override": "DELETE"}, False),
    ("POST /orders", {"X-HTTP-Method-Override": "POST", "X-HTTP-Method": "DELETE"}, False),
    ("POST /orders", {"X-HTTP-Method-Override": "post", "X-HTTP-Method": "POST"}, True),
    ("POST /orders", {"X-HTTP-Method-Override": ""}, True),
    ("POST /public/x", {"X-HTTP-Method-Override": "DELETE"}, True),
    ("GET /v1/x", {"X-Original-URL": "/secret"}, False),
    ("GET /v1/x", {"X-Rewrite-URL": "http://api/secret"}, False),
    ("GET /v1/x", {"X-Original-URL": "/v1/y?z"}, True),
    ("GET /public/x", {"X-HTTP-Method-Override": "DELETE", "X-Original-URL": "/v1/x"}, False)])
def test_a_field_that_overrides_the_method_or_the_path_leads_around_no_rule(scene, own, fields, allowed):
    o, c = scene
    method, path = own.split()
    with c.client() as client:
        response = client.request(method, o.url + path, list(fields.items()))
    if allowed:
        assert response.status == 200 and o.targets() == [path], response
        return
    assert response.status == 403 and not o.seen, response
    until(lambda: c.metric(REFUSED, origin=o.url) == 1, what="the count")
    until(lambda: any("override_" in line and "refused by the rules" in line for line in c.output), what="the line")


def test_a_refusal_is_in_the_log_without_its_query(scene):
    o, c = scene
    with c.client() as client:
        assert client.get(o.url + "/secret?token=planted").status == 403
    until(lambda: any("refused by the rules of the origin" in line for line in c.output), what="the line")
    line = next(line for line in c.output if "refused by the rules of the origin" in line)
    assert '"/secret"' in line and "planted" not in line


def test_a_refusal_shows_no_secret_of_its_paths(scene):
    o, c = scene
    with c.client() as client:
        assert client.request("GET", o.url + "/secret;jsessionid=planted/x", [("X-Original-URL", "http://u:pla?planted@api/y;token=planted?z=planted")]).status == 403
    until(lambda: any("refused by the rules of the origin" in line for line in c.output), what="the line")
    line = next(line for line in c.output if "refused by the rules of the origin" in line)
    assert '"/secret;jsessionid=***/x"' in line and '"http://***@api/y;token=***"' in line and "pla" not in line, line


def test_http2_clients_have_the_same_rules(scene):
    o, c = scene
    with H2Client(c.address) as client:
        assert client.get("/v1/x", authority=o.authority).status == 200
        assert client.get("/v2/x", authority=o.authority).status == 403
    assert o.targets() == ["/v1/x"]


def test_no_tunnel_leads_around_the_rules(scene):
    o, c = scene
    with Client(c.address) as client:
        assert client.request("CONNECT", o.authority, host=o.authority).status == 403
    assert o.opened == 0


def test_a_reload_changes_the_rules(scene):
    o, c = scene
    c.config.write_text(c.config.read_text().replace("GET /v1/*", "GET /v2/*"))
    assert c.admin("POST", "/reload").status == 200

    def allowed():
        with c.client() as client:
            return client.get(o.url + "/v2/x").status == 200
    until(allowed, what="the new rule")
    with c.client() as client:
        assert client.get(o.url + "/v1/x").status == 403


@pytest.mark.parametrize("rule, error", [("/v1/*", "has no space"), ("GET v1", "has a path"), ("GET /a*b", "inside the path"), ("CONNECT /", "names CONNECT")])
def test_a_rule_that_cannot_be_is_a_mistake_with_its_place(carpool, rule, error):
    said = carpool(start=False, origin=[{"uri": "http://a.test", "allow": [rule]}]).check()
    assert error in said and "origin.allow" in said and "GET /v1/*" in said, said
