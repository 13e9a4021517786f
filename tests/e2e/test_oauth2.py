"""Tokens that carpool gets for the requests of an origin: [origin.oauth2], with a real token endpoint."""
import base64
import concurrent.futures
import json
import socket
import ssl
import threading
import urllib.parse

import pytest
from harness.h2_client import H2Client
from harness.wait import until

REQUESTS = "carpool_oauth2_token_requests_total"


class Server:
    """A token endpoint, and an origin that accepts only the tokens that were granted and not revoked."""

    def __init__(self, origin, life=3600):
        self.life, self.granted, self.requests, self.valid = life, 0, [], set()
        self.response, self.gate, self.lock = None, None, threading.Lock()
        self.endpoint, self.origin = origin(self.token), origin(self.api)

    def token(self, exchange):
        exchange.read_body()
        with self.lock:
            self.requests.append(exchange.request)
        if self.gate:
            self.gate.enter()
        if self.response:
            return self.response(exchange)
        with self.lock:
            self.granted += 1
            value = "token-planted-%d" % self.granted
            self.valid.add("Bearer " + value)
        return exchange.reply(body=json.dumps({"access_token": value, "token_type": "Bearer", "expires_in": self.life}).encode())

    def api(self, exchange):
        body = exchange.read_body()
        good = exchange.request.all("authorization")
        with self.lock:
            known = len(good) == 1 and good[0] in self.valid
        exchange.reply(200 if known else 401, body or b"ok")

    def settings(self, **more):
        return {"uri": self.origin.url, "alias": ["api"], "oauth2": {
            "token_url": self.endpoint.url + "/oauth2/token", "client_id": "orders", "client_secret": "secret-planted",
            "scope": "read write", "audience": "https://api.test", **more}}


@pytest.fixture
def scene(origin, carpool):
    def make(life=3600, response=None, gate=None, pool=None, **more):
        s = Server(origin, life)
        s.response, s.gate = response, gate
        c = carpool(origin=[s.settings(**more)], **({"pool": pool} if pool else {}))
        return s, c
    return make


def get(c, path="/x", method="GET", body=b""):
    with c.client() as client:
        return client.request(method, "http://api" + path, body=body, host="api")


def test_requests_carry_a_token_of_the_client(scene):
    s, c = scene()
    for _ in range(5):
        assert get(c).status == 200
    with H2Client(c.address) as client:
        assert client.get("/h2", authority="api").status == 200
    assert len(s.requests) == 1
    asked = s.requests[0]
    assert asked.method == "POST" and asked.target == "/oauth2/token"
    assert asked.get("authorization") == "Basic " + base64.b64encode(b"orders:secret-planted").decode()
    assert asked.body == b"grant_type=client_credentials&scope=read+write&audience=https%3A%2F%2Fapi.test"
    assert c.metric(REQUESTS, origin=s.origin.url, result="granted") == 1
    assert c.pool(s.endpoint.url)["borrows"] == 1, "the endpoint has a pool of its own"
    state = c.pool(s.origin.url)["credentials"]
    assert 0 < state.pop("token_expires_seconds") <= 3600
    assert state == {"stale_files": 0, "token": "valid", "failure": None}
    explained = c.get_json("/pools/%s/explain" % urllib.parse.quote(s.origin.url, safe=""))["explanation"]
    assert any(line.startswith("The token of [origin.oauth2] is valid for ") for line in explained), explained
    assert "credentials" not in c.pool(s.endpoint.url)


def test_the_secret_may_travel_in_the_body_and_come_from_a_file(scene, tmp_path):
    file = tmp_path / "secret"
    file.write_text("from a file\n")
    s, c = scene(client_authentication="post", client_secret={"file": str(file)})
    assert get(c).status == 200
    assert s.requests[0].all("authorization") == [] and b"client_id=orders&client_secret=from+a+file" in s.requests[0].body


def test_requests_wait_for_the_first_token_and_all_use_it(scene, gate):
    s, c = scene(gate=gate)
    gate.wait_for(1)
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        responses = [pool.submit(get, c, "/%d" % i, "POST", b"b%d" % i) for i in range(16)]
        until(lambda: len(c.get_json("/pools")) and not s.origin.seen, what="no request at the origin")
        gate.open()
        assert [a.result().status for a in responses] == [200] * 16
        assert [a.result().body for a in responses] == [b"b%d" % i for i in range(16)]
    assert len(s.requests) == 1, "one request for all"


def test_a_token_is_renewed_ahead_of_its_end(scene):
    s, c = scene(life=3)
    assert get(c).status == 200

    def renewed():
        response = get(c)
        assert response.status == 200, response
        return s.granted >= 3
    until(renewed, 20, "two renewals, and no request without a valid token")
    assert c.metric("carpool_retries_total", origin=s.origin.url, proof="unauthorized") == 0


def test_a_request_is_sent_once_more_with_a_new_token_after_401(scene):
    s, c = scene()
    assert get(c).status == 200
    with s.lock:
        s.valid = set()  # revoked
    response = get(c, "/again", "POST", b"body")
    assert response.status == 200 and response.body == b"body"
    assert s.granted == 2 and s.origin.targets().count("/again") == 2
    until(lambda: c.metric("carpool_retries_total", origin=s.origin.url, proof="unauthorized") == 1, what="the count")
    row = until(lambda: next((r for r in c.access_log() if r.get("retries")), None), what="the line")
    assert row["status"] == 200 and row["retries"] == 1


@pytest.mark.parametrize("size, connections", [(0, 1), (16384, 1), (16385, 2)])
def test_the_connection_of_a_401_stays_in_the_pool_if_the_response_is_short(scene, size, connections):
    s, c = scene()

    def api(exchange):
        body = exchange.read_body()
        good = exchange.request.get("authorization") in s.valid
        exchange.reply(200 if good else 401, body if good else b"x" * size)
    s.origin.handler = api
    assert get(c, "/first").status == 200
    with s.lock:
        s.valid = set()  # revoked
    answer = get(c, "/again", "POST", b"body")
    assert (answer.status, answer.body) == (200, b"body")
    pool = c.pool(s.origin.url)
    assert (pool["created"], pool["borrows"]) == (connections, 3), pool
    row = until(lambda: next((r for r in c.access_log() if r.get("retries")), None), what="the line")
    assert (row["status"], row["retries"], row["retried"]) == (200, 1, "unauthorized")


def test_a_body_that_is_still_arriving_at_a_401_is_sent_whole_with_the_next_token(scene):
    s, c = scene()
    assert get(c, "/first").status == 200
    body = b"0123456789" * 10_000  # more than request.replay_buffer
    refused = threading.Event()

    def early(exchange):
        if exchange.request.get("authorization") in s.valid:
            return s.api(exchange)
        exchange.send(b"HTTP/1.1 401 No\r\nContent-Length: 2\r\n\r\n")
        refused.set()
        exchange.read_body()
        return exchange.send(b"no")
    s.origin.handler = early
    with s.lock:
        s.valid = set()
    with socket.create_connection(c.address, 30) as client:
        client.sendall(b"POST http://api/big HTTP/1.1\r\nHost: api\r\nContent-Length: %d\r\n\r\n" % len(body) + body[:1000])
        assert refused.wait(20)
        until(lambda: s.granted == 2, what="another token")
        client.sendall(body[1000:])
        answer = b""
        while len(answer.partition(b"\r\n\r\n")[2]) < len(body):
            answer += client.recv(65536) or pytest.fail("the connection ended after %r" % answer[:200])
    assert answer.startswith(b"HTTP/1.1 200 ") and answer.count(body) == 1


def test_an_origin_that_accepts_no_token_gets_each_request_twice_at_most(scene):
    s, c = scene()
    assert get(c).status == 200
    s.origin.handler = lambda exchange: (exchange.read_body(), exchange.reply(401))
    assert [get(c, "/n").status for _ in range(10)] == [401] * 10
    assert s.granted == 2, "not a token for each request"
    assert s.origin.targets().count("/n") <= 12


def test_a_body_that_is_not_kept_is_not_sent_again(scene):
    s, c = scene()
    assert get(c).status == 200
    with s.lock:
        s.valid = set()
    assert get(c, "/big", "POST", b"x" * 300000).status == 401
    until(lambda: s.granted == 2, what="the new token")
    assert s.origin.targets().count("/big") == 1
    assert get(c).status == 200


def fails(c, s, status, error, detail):
    response = until(lambda: (a := get(c)).status == status and a, what="the fault")
    said = response.get("proxy-status")
    assert error in said and detail in said and "planted" not in said + response.body.decode(), response
    assert not s.origin.seen, "no request without a token"
    until(lambda: any("no token was granted" in line for line in c.output), what="the line of the log")
    state = until(lambda: (row := c.pool(s.origin.url)["credentials"])["token"] == "missing" and row, what="the state")
    assert detail in state["failure"], state


@pytest.mark.parametrize("reply, detail", [
    (lambda e: e.reply(400, b'{"error":"invalid_client","error_description":"planted"}'), "answered 400 invalid_client"),
    (lambda e: e.reply(500, b"planted"), "answered 500"), (lambda e: e.reply(200, b"planted"), "other than a JSON object"),
    (lambda e: e.reply(200, b"{}"), "without access_token"), (lambda e: e.reply(200, b"x" * 100000), "too many bytes"),
    (lambda e: e.reply(302, b"", [("Location", "/elsewhere")]), "answered 302"),
    (lambda e: (e.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"), False)[1], "incomplete")])
def test_an_endpoint_that_grants_no_token_is_502_with_the_reason(scene, reply, detail):
    s, c = scene(response=reply)
    fails(c, s, 502, "http_", detail)
    assert c.metric(REQUESTS, origin=s.origin.url, result="granted") == 0
    s.response = None
    until(lambda: get(c).status == 200, 15, "a token, after a pause")


def test_an_endpoint_that_hangs_is_504(scene, gate):
    s, c = scene(gate=gate, timeout="300ms")
    fails(c, s, 504, "http_response_timeout", "oauth2.timeout")
    assert c.metric(REQUESTS, origin=s.origin.url, result="timeout") >= 1
    s.gate = None
    gate.open()
    until(lambda: get(c).status == 200, 15, "a token, after a pause")


def test_an_endpoint_that_nobody_serves_is_502_and_asked_with_pauses(scene):
    s, c = scene()
    assert get(c).status == 200
    del s
    s2, c2 = scene(token_url="http://127.0.0.1:1/token")
    fails(c2, s2, 502, "connection_refused", "the token endpoint")


def test_a_client_that_leaves_while_it_waits_is_forgotten(scene, gate):
    s, c = scene(gate=gate)
    gate.wait_for(1)
    for _ in range(4):
        client = c.client()
        client.ask("GET", "http://api/left", host="api")
        client.close()
    until(lambda: sum(r["status"] == 499 for r in c.access_log()) == 4, what="four lines")
    gate.open()
    assert get(c).status == 200
    assert "/left" not in s.origin.targets()


def test_a_reload_changes_the_client(scene):
    s, c = scene()
    assert get(c).status == 200
    c.config.write_text(c.config.read_text().replace("secret-planted", "other-planted"))
    assert c.admin("POST", "/reload").status == 200
    until(lambda: len(s.requests) == 2 and get(c).status == 200, what="a token for the new client")
    assert base64.b64decode(s.requests[1].get("authorization").split()[1]) == b"orders:other-planted"


def test_requests_that_wait_for_a_token_follow_a_reload(scene, origin, gate):
    """The endpoint hangs; after the reload it is asked again, as another client. The pipelined request waits once the first has its
    response."""
    s, c = scene(gate=gate, timeout="60s")
    gate.wait_for(1)
    other = origin()
    with c.client() as client:
        client.send(b"GET %s/ HTTP/1.1\r\nHost: o\r\n\r\nGET http://api/x HTTP/1.1\r\nHost: api\r\n\r\n" % other.url.encode())
        assert client.response().status == 200
        s.gate = None
        c.config.write_text(c.config.read_text().replace("secret-planted", "other-planted"))
        assert c.admin("POST", "/reload").status == 200
        assert client.response().status == 200
    gate.open()


def test_an_endpoint_whose_certificate_is_not_verified_gets_no_secret(origin, carpool, pki):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pki.server, pki.server_key)
    endpoint, api = origin(tls=context), origin()
    oauth2 = {"token_url": "https://localhost:%d/t" % endpoint.port, "client_id": "orders", "client_secret": "planted"}
    said = carpool(start=False, upstream={"tls": {"verify": False}}, origin=[{"uri": api.url, "oauth2": oauth2}]).check()
    assert "oauth2.token_url" in said and "verify = false" in said, said
    c = carpool(origin=[{"uri": api.url, "alias": ["api"], "oauth2": oauth2}])
    response = until(lambda: (a := get(c)).status == 502 and a, what="the fault")
    assert "tls_certificate_error" in response.get("proxy-status"), response
    assert not endpoint.seen and not api.seen


@pytest.mark.parametrize("settings, error", [
    ({"token_url": "http://login.test/t"}, "neither https nor on this host"), ({"token_url": "https://login.test"}, "has no path"),
    ({"client_id": ""}, "is missing"), ({"client_secret": {"file": "/nonexistent"}}, "/nonexistent cannot be read"),
    ({"client_authentication": "jwt"}, "expected one of"), ({"timeout": "0s"}, "more than 0s")])
def test_settings_that_cannot_be_are_mistakes_with_their_place(carpool, settings, error):
    oauth2 = {"token_url": "https://login.test/t", "client_id": "orders", "client_secret": "planted", **settings}
    said = carpool(start=False, origin=[{"uri": "https://a.test", "oauth2": oauth2}]).check()
    assert error in said and "origin.oauth2" in said and "planted" not in said, said


def test_a_token_and_a_field_of_the_same_name_are_a_mistake(carpool):
    oauth2 = {"token_url": "https://login.test/t", "client_id": "orders", "client_secret": "planted"}
    said = carpool(start=False, origin=[{"uri": "https://a.test", "oauth2": oauth2, "request": {"headers": {"authorization": "planted"}}}]).check()
    assert "is set beside oauth2" in said and "planted" not in said, said
