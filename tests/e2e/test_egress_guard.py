"""Destinations that no request may reach through the proxy: carpool's own listeners, its admin address, link-local metadata."""
import pytest
from harness.h2_client import H2Client
from harness.wait import until
from harness.wire import Client

SPELLINGS = ["127.0.0.1", "localhost", "LOCALHOST.", "127.1", "127.0.1", "0x7f000001", "2130706433", "0177.0.0.1", "0x7f.1",
             "127.0.0.1.", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:127.0.0.1]", "0.0.0.0", "0",
             "[::]", "%31%32%37.0.0.1"]


def forms(client, host, port, path):
    """The ways a request can name its destination, each on a connection of its own."""
    authority = "%s:%d" % (host, port)
    for line, name in (("GET http://%s%s" % (authority, path), authority), ("GET " + path, authority),
                       ("GET http://%s%s" % (authority, path), "origin.test"), ("POST http://%s/quit" % authority, authority),
                       ("CONNECT " + authority, authority)):
        with client() as c:
            c.send(("%s HTTP/1.1\r\nHost: %s\r\n\r\n" % (line, name)).encode())
            yield line, c.response()


def refused(response):
    """Expects 403 for a known address; an unusual spelling may also be malformed, or an unknown name."""
    assert response.status in (400, 403, 501, 502), response
    assert response.get("proxy-status", "").startswith("carpool")
    assert b"carpool_" not in response.body and b'"live"' not in response.body


@pytest.mark.parametrize("host", SPELLINGS)
def test_the_admin_address_cannot_be_reached_in_any_spelling(resolver, carpool, host):
    c = carpool(inside=resolver.inside)
    for _, response in forms(c.client, host, c.admin_address[1], "/metrics"):
        refused(response)
    assert c.process.poll() is None


def test_plain_spellings_of_the_admin_address_are_403(carpool):
    c = carpool()
    for host in ("127.0.0.1", "[::ffff:127.0.0.1]"):
        with c.client() as client:
            assert client.get("http://%s:%d/metrics" % (host, c.admin_address[1])).status == 403, host


@pytest.mark.parametrize("hosts", ["127.0.0.1 localhost\n", "::1 localhost\n127.0.0.1 localhost\n", "127.0.0.1 localhost\n::1 localhost\n", ""])
def test_carpool_recognizes_itself_by_the_name_of_this_machine_in_each_family(resolver, carpool, hosts):
    """Nothing listens on [::1], whose refusal is not the reason: the other address is carpool's own."""
    resolver.hosts(hosts)
    c = carpool(inside=resolver.inside)
    for port, status in ((c.address[1], 508), (c.admin_address[1], 403)):
        for _ in range(3):
            with c.client() as client:
                assert client.get("http://localhost:%d/metrics" % port).status == status, port


def test_a_refusal_counts_more_than_a_denied_address_beside_it(resolver, carpool):
    from harness.ports import free_port
    resolver.table["two.test"] = ["127.0.0.1", "127.0.0.2"]
    c = carpool(inside=resolver.inside, egress={"deny": ["127.0.0.2"]})
    with c.client() as client:
        assert client.get("http://two.test:%d/" % free_port()).status == 502


def test_a_name_that_leads_to_the_admin_address_is_403(resolver, carpool):
    resolver.hosts("127.0.0.1 localhost sneaky.test\n")
    resolver.table["rebound.test"] = ["127.0.0.1"]
    resolver.table["mapped.test"] = ["::ffff:127.0.0.1"]
    c = carpool(inside=resolver.inside, origin=[{"uri": "http://pinned.test", "addresses": ["PLACE"]}], start=False)
    c.config.write_text(c.config.read_text().replace("PLACE", "127.0.0.1:%d" % c.admin_address[1]))
    c.start()
    with c.client() as client:
        for host in ("sneaky.test", "rebound.test", "mapped.test"):
            assert client.get("http://%s:%d/metrics" % (host, c.admin_address[1])).status == 403, host
        assert client.get("http://pinned.test/metrics").status == 403


def test_an_admin_on_every_address_is_guarded_on_every_address(carpool, tmp_path):
    token = tmp_path / "token"
    token.write_text("secret-of-this-test\n")
    c = carpool(start=False)
    port = c.admin_address[1]
    c.config.write_text(c.config.read_text().replace('address = "127.0.0.1:%d"' % port,
                                                     'address = "0.0.0.0:%d"\ntoken_file = "%s"' % (port, token)))
    c.start()
    with c.client() as client:
        for host in ("127.0.0.1", "127.0.0.2", "localhost"):
            assert client.get("http://%s:%d/metrics" % (host, port)).status == 403, host


def test_the_metrics_listener_is_guarded_like_the_admin_address(carpool):
    from harness.ports import free_port
    port = free_port()
    c = carpool(metrics={"address": "127.0.0.1:%d" % port}, start=False)
    if "not yet available" in c.check():
        pytest.skip("metrics.address is not yet available")
    c.start()
    with Client(("127.0.0.1", port)) as direct:
        assert direct.get("/metrics", host="127.0.0.1:%d" % port).status == 200
    with Client(("127.0.0.1", port)) as direct:
        assert direct.get("/pools", host="127.0.0.1:%d" % port).status == 404
    with c.client() as client:
        assert client.get("http://127.0.0.1:%d/metrics" % port).status == 403


@pytest.mark.parametrize("host", ["127.0.0.1", "[::ffff:127.0.0.1]"])
def test_its_own_listener_is_a_loop(carpool, host):
    c = carpool()
    with c.client() as client:
        response = client.get("http://%s:%d/" % (host, c.address[1]))
        assert response.status == 508 and response.get("proxy-status").startswith("carpool")


@pytest.mark.parametrize("host", ["169.254.169.254", "169.254.1.1", "[fd00:ec2::254]", "[::ffff:169.254.169.254]", "2852039166"])
def test_metadata_addresses_are_refused_before_a_packet_leaves(resolver, carpool, host):
    c = carpool(inside=resolver.inside)
    with c.client() as client:
        response = client.get("http://%s/latest/meta-data/" % host)
    assert response.status == 403 or host.isdigit() and response.status in (400, 502)


def test_egress_rules_hold_by_name_and_by_address(origin, resolver, carpool):
    o = origin()
    resolver.table["allowed.test"] = resolver.table["denied.test"] = ["127.0.0.1"]
    c = carpool(inside=resolver.inside, egress={"default": "deny", "allow": ["allowed.test:%d" % o.port]})
    with c.client() as client:
        assert client.get("http://allowed.test:%d/" % o.port).status == 200
        assert client.get("http://denied.test:%d/" % o.port).status == 403
        assert client.get(o.url + "/").status == 403
    assert "denied.test" not in resolver.asked


def decisions(c):
    return {word: c.metric("carpool_egress_decisions_total", decision=word) for word in ("allowed", "denied", "reported")}


def test_rules_that_only_report_deny_nothing_and_count_each_request_once(origin, carpool):
    o = origin()
    c = carpool(egress={"default": "deny", "allow": ["other.test"], "report_only": True})
    with c.client() as client:
        for _ in range(3):
            assert client.get(o.url + "/").status == 200
        for _ in range(2):
            assert client.get("http://169.254.169.254/").status == 403
    until(lambda: decisions(c) == {"allowed": 0, "denied": 2, "reported": 3}, what="one decision for each request")
    until(lambda: sum('"denied"' in line and "169.254.169.254" in line for line in list(c.output)) == 2, what="a line for each")
    assert sum('"would be denied"' in line for line in c.output) == 1, "the route was told of once"


def test_a_name_with_several_denied_addresses_counts_its_request_once(origin, resolver, carpool):
    o = origin()
    resolver.table["several.test"] = ["127.0.0.1", "127.0.0.2", "127.0.0.3"]
    c = carpool(inside=resolver.inside, egress={"deny": ["127.0.0.0/8"]})
    with c.client() as client:
        assert client.get("http://several.test:%d/" % o.port).status == 403
    until(lambda: decisions(c) == {"allowed": 0, "denied": 1, "reported": 0}, what="one decision")
    until(lambda: sum('"module":"egress"' in line for line in list(c.output)) == 1, what="its line in the log")


def test_an_address_that_would_be_denied_is_reported_though_its_name_is_allowed(origin, resolver, carpool):
    o = origin()
    resolver.table["allowed.test"] = ["127.0.0.1"]
    c = carpool(inside=resolver.inside, egress={"deny": ["127.0.0.0/8"], "report_only": True})
    with c.client() as client:
        for _ in range(2):
            assert client.get("http://allowed.test:%d/" % o.port).status == 200
    until(lambda: decisions(c) == {"allowed": 0, "denied": 0, "reported": 2}, what="one decision for each request")
    until(lambda: sum('"would be denied"' in line for line in list(c.output)) == 1, what="its line in the log")


# ---- a listener with a fixed origin ----

@pytest.mark.parametrize("connect", [True, False])
@pytest.mark.parametrize("route_by_host", [True, False])
def test_a_listener_with_a_fixed_origin_reaches_nothing_else_in_any_form(origin, carpool, connect, route_by_host):
    fixed, other = origin(), origin()
    c = carpool(listen={"origin": fixed.url, "connect": connect, "route_by_host": route_by_host})
    upgrade = [("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"), ("Sec-WebSocket-Key", "A" * 22 + "==")]
    for target, fields, status in (("http://%s/x" % other.authority, (), 421), ("https://%s/x" % other.authority, (), 421),
                                   ("https://%s/x" % fixed.authority, (), 421), ("http://%s/x" % other.authority, upgrade, 421),
                                   ("http://%s/x" % fixed.authority, (), 200), ("/x", (), 200)):
        with c.client() as client:
            assert client.request("GET", target, fields, host=other.authority).status == status, target
    with c.client() as client:
        assert client.request("OPTIONS", "*", host=other.authority).status == 200
    for authority in (other.authority, fixed.authority):
        with c.client() as client:
            client.send(b"CONNECT %s HTTP/1.1\r\nHost: x\r\n\r\n" % authority.encode())
            assert client.response().status == 403
    with H2Client(c.address) as client:
        for scheme in ("http", "https"):
            assert client.response(client.ask("/x", authority=other.authority, scheme=scheme)).status == 421
        assert client.response(client.ask("/x", authority=fixed.authority, scheme="https")).status == 421
        assert client.response(client.ask(method="CONNECT", authority=other.authority)).status == 403
        assert client.get("/x", authority=fixed.authority).status == 200
    with H2Client(c.address) as client:
        websocket = [(":protocol", "websocket")]
        assert client.response(client.ask("/x", "CONNECT", other.authority, pseudo=websocket)).status == 421
    assert other.opened == 0 and {s.message.get("host") for s in fixed.seen} == {fixed.authority}


def test_an_alias_names_the_fixed_origin_of_a_listener(origin, carpool):
    o = origin()
    c = carpool(listen={"origin": o.url}, origin=[{"uri": o.url, "alias": ["api"]}, {"uri": "http://other.test", "alias": ["other"]}])
    for target, status in (("http://api/x", 200), ("http://other/x", 421), ("/x", 200)):
        with c.client() as client:
            assert client.get(target, host="other").status == status, target
    with H2Client(c.address) as client:
        assert client.get("/x", authority="api").status == 200
        assert client.get("/x", authority="api:%d" % c.address[1]).status == 200
        assert client.get("/x", authority="other").status == 421


def test_check_calls_safe_what_reaches_one_origin(carpool):
    safe = {"origin": "http://api.test", "connect": False, "route_by_host": False}
    assert carpool(start=False, listeners=[{"address": "0.0.0.0:3128", **safe}]).check().strip().endswith("ok")
    assert "open proxy" in carpool(start=False, listeners=[{"address": "0.0.0.0:3128"}]).check()


# ---- clients of the admin address ----

def test_admin_answers_no_foreign_host(carpool):
    c = carpool()
    port = c.admin_address[1]
    for host in ("127.0.0.1:%d" % port, "localhost:%d" % port, "[::1]:%d" % port, "localhost"):
        assert c.admin("GET", "/livez", host=host).status == 200, host
    for host in ("evil.test", "evil.test:%d" % port, "127.0.0.1.evil.test"):
        assert c.admin("GET", "/pools", host=host).status == 403, host


@pytest.mark.parametrize("header", [("Origin", "http://evil.test"), ("Sec-Fetch-Site", "cross-site")])
def test_admin_changes_nothing_for_a_foreign_page(carpool, header):
    c = carpool()
    assert c.admin("POST", "/quit", [header]).status == 403
    assert c.process.poll() is None and c.admin("GET", "/livez").status == 200


def test_a_token_is_asked_for_where_the_address_is_not_loopback(carpool, tmp_path):
    token = tmp_path / "token"
    token.write_text("secret-of-this-test\n")
    c = carpool(start=False)
    port = c.admin_address[1]
    c.config.write_text(c.config.read_text().replace('address = "127.0.0.1:%d"' % port,
                                                     'address = "0.0.0.0:%d"\ntoken_file = "%s"' % (port, token)))
    c.start()
    assert c.admin("GET", "/pools").status == 401
    assert c.admin("GET", "/pools", [("Authorization", "Bearer wrong")]).status == 401
    assert c.admin("GET", "/pools", [("Authorization", "Bearer secret-of-this-test")]).status == 200
    assert c.admin("GET", "/livez").status == c.admin("GET", "/metrics").status == 200


@pytest.mark.parametrize("head", ["GET /pools HTTP/1.1\r\nHost: localhost\r\nHost: evil.test\r\n\r\n",
                                  "GET http://evil.test/pools HTTP/1.1\r\nHost: localhost\r\n\r\n",
                                  "GET /pools HTTP/1.1\r\n\r\n"])
def test_admin_answers_no_request_whose_host_is_in_doubt(carpool, head):
    with Client(carpool().admin_address) as client:
        client.send(head.encode())
        assert client.response().status in (400, 403)
