"""upstream.proxy: http origins in absolute form, everything else through CONNECT, with credentials for the proxy alone."""
import base64
import json
import socket
import subprocess
import threading

import pytest
from harness.authority import Authority
from harness.carpool import PROGRAM
from harness.h2_origin import H2Origin
from harness.intercept import connected
from harness.origin import Origin
from harness.ports import free_port, tcp_server
from harness.wait import until
from harness.wire import received

BASIC = "Basic " + base64.b64encode(b"pool:s3cret").decode()


def pump(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass


class Parent:
    """A proxy: responds to requests in absolute form itself, and connects each CONNECT to `places[target]`."""

    def __init__(self, needs=None, refusal=None):
        self.places, self.needs, self.refusal = {}, needs, refusal
        self.server = Origin(self.handle)
        self.url = self.server.url

    def handle(self, exchange):
        request = exchange.request
        if self.needs and request.get("proxy-authorization") != self.needs:
            exchange.read_body()
            exchange.reply(407, b"", [("Proxy-Authenticate", 'Basic realm="p"')])
            return False
        if request.method != "CONNECT":
            exchange.read_body()
            return exchange.reply()
        if self.refusal is not None:
            exchange.send(self.refusal)
            return False
        far = socket.create_connection(self.places[request.target], 20)
        exchange.send(b"HTTP/1.1 200 Connection established\r\nX: y\r\n\r\n")
        far.sendall(exchange.stream.buffer)
        back = threading.Thread(target=pump, args=(far, exchange.stream.sock), daemon=True)
        back.start()
        pump(exchange.stream.sock, far)
        back.join(20)
        far.close()
        return False

    def requests(self):
        return [s.message.first for s in self.server.seen]


@pytest.fixture
def parent(request):
    def start(**more):
        made = Parent(**more)
        request.addfinalizer(made.server.stop)
        return made
    return start


def test_requests_to_http_origins_are_in_absolute_form(parent, carpool):
    p = parent()
    c = carpool(upstream={"proxy": p.url})
    with c.client() as client:
        assert client.get("http://api.test/x?y=1").body == b"ok"
        assert client.get("http://api.test:8080/").body == b"ok"
        assert client.get("http://api.test?only-a-query").status == 200
        assert client.request("OPTIONS", "*", host="api.test").status == 200
    assert p.requests() == ["GET http://api.test/x?y=1 HTTP/1.1", "GET http://api.test:8080/ HTTP/1.1",
                            "GET http://api.test/?only-a-query HTTP/1.1", "OPTIONS http://api.test HTTP/1.1"]
    assert [s.message.get("host") for s in p.server.seen][:2] == ["api.test", "api.test:8080"]
    assert {s.message.get("proxy-authorization") for s in p.server.seen} == {None}
    assert p.server.opened == 2  # the pools stay those of the origins


def test_https_tunnels_and_h2c_go_through_connect(parent, carpool, origin, context, pki, request):
    p, secure, plain = parent(), origin(tls=context), origin()
    h2c = H2Origin()
    request.addfinalizer(h2c.stop)
    p.places = {"origin.test:443": ("127.0.0.1", secure.port), "db.test:5432": ("127.0.0.1", plain.port),
                "grpc.test:80": ("127.0.0.1", h2c.port)}
    c = carpool(upstream={"proxy": p.url, "tls": {"ca_file": pki.ca}},
                origin=[{"uri": "http://grpc.test", "upstream": {"protocols": ["h2"]}}])
    with c.client() as client:
        for _ in range(3):
            assert client.get("https://origin.test/secure").body == b"ok"
        assert client.get("http://grpc.test/call").status == 200
    with c.client() as client:
        client.send(b"CONNECT db.test:5432 HTTP/1.1\r\nHost: db.test:5432\r\n\r\n")
        assert client.head().status == 200
        client.send(b"GET /inside HTTP/1.1\r\nHost: x\r\n\r\n")
        assert client.response().body == b"ok"
    assert secure.targets() == ["/secure"] * 3 and secure.opened == 1
    assert (plain.targets(), len(h2c.seen)) == (["/inside"], 1)
    assert sorted(p.requests()) == ["CONNECT %s HTTP/1.1" % t for t in ("db.test:5432", "grpc.test:80", "origin.test:443")]
    assert all("carpool-" in s.message.get("via", "") for s in p.server.seen)
    [connection] = c.get_json("/pools/https%3A%2F%2Forigin.test/connections")["connections"]
    assert connection["peer"] == p.server.authority


def test_bytes_that_a_server_sends_first_reach_the_client(parent, carpool):
    p = parent()
    banner = tcp_server()

    def greet():
        sock, _ = banner.accept()
        sock.sendall(b"220 hello\r\n")
        sock.close()
    threading.Thread(target=greet, daemon=True).start()
    p.places = {"mail.test:25": banner.getsockname()}
    c = carpool(upstream={"proxy": p.url})
    with c.client() as client:
        client.send(b"CONNECT mail.test:25 HTTP/1.1\r\nHost: mail.test:25\r\n\r\n")
        assert client.head().status == 200
        assert client.line() == "220 hello"
    banner.close()


@pytest.mark.parametrize("how", ["text", "file"])
def test_credentials_go_to_the_proxy_alone_and_are_shown_nowhere(parent, carpool, origin, context, pki, tmp_path, how):
    p, secure = parent(needs=BASIC), origin(tls=context)
    p.places = {"origin.test:443": ("127.0.0.1", secure.port)}
    secret = tmp_path / "secret"
    secret.write_text("pool:s3cret\n")
    c = carpool(upstream={"proxy": p.url, "proxy_credentials": "pool:s3cret" if how == "text" else {"file": str(secret)},
                          "tls": {"ca_file": pki.ca}}, log={"level": "debug"})
    with c.client() as client:
        assert client.get("http://api.test/").body == b"ok"
        assert client.get("https://origin.test/").body == b"ok"
    assert {s.message.get("proxy-authorization") for s in p.server.seen} == {BASIC}
    assert [s.message.get("proxy-authorization") for s in secure.seen] == [None]
    shown = "".join(c.admin("GET", path).body.decode() for path in ("/config", "/config.toml", "/metrics", "/pools"))
    shown += subprocess.run([PROGRAM, "--config", c.config, "--print-config"], capture_output=True, text=True, timeout=20).stdout
    shown += "\n".join(c.output)
    assert "s3cret" not in shown and BASIC.split()[1] not in shown


def test_an_origin_with_another_proxy_does_not_inherit_the_credentials(parent, carpool):
    first, other = parent(needs=BASIC), parent()
    c = carpool(upstream={"proxy": first.url, "proxy_credentials": "pool:s3cret"}, origin=[
        {"uri": "http://other.test", "upstream": {"proxy": other.url}},
        {"uri": "http://same.test", "upstream": {"proxy": first.url}},
        {"uri": "http://own.test", "upstream": {"proxy": other.url, "proxy_credentials": "own:secret"}}])
    with c.client() as client:
        assert [client.get("http://%s.test/" % name).status for name in ("other", "same", "own", "any")] == [200] * 4
    assert {s.message.get("proxy-authorization") for s in first.server.seen} == {BASIC}
    own = "Basic " + base64.b64encode(b"own:secret").decode()
    assert [s.message.get("proxy-authorization") for s in other.server.seen] == [None, own]


@pytest.mark.parametrize("given,said", [(None, "it needs upstream.proxy_credentials"),
                                        ("pool:wrong", "it does not accept upstream.proxy_credentials")])
def test_407_of_the_proxy_is_an_error_of_carpool_and_no_challenge_for_the_client(parent, carpool, given, said):
    p = parent(needs=BASIC)
    c = carpool(upstream={"proxy": p.url, **({"proxy_credentials": given} if given else {})})
    with c.client() as client:
        for url in ("http://api.test/", "https://api.test/"):
            response = client.get(url)
            assert response.status == 502 and response.get("proxy-authenticate") is None, url
            assert said in response.get("proxy-status") and "407" in response.get("proxy-status")
    assert c.metric("carpool_parent_proxy_refusals_total", reason="credentials") == 2
    assert c.metric("carpool_pool_failures_total", origin="https://api.test", reason="refused") == 1


@pytest.mark.parametrize("response,reason,said", [
    (b"HTTP/1.1 403 Forbidden\r\n\r\n", "forbidden", "with 403 Forbidden"),
    (b"HTTP/1.1 502 Bad \x01Gateway\r\n\r\n", "unavailable", "with 502 Bad ?Gateway"),
    (b"HTTP/1.1 302 Found\r\nLocation: http://x/\r\n\r\n", "other", "with 302 Found"),
    (b"SSH-2.0-x\r\n\r\n", "unanswered", "something other than HTTP/1"),
    (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70000, "unanswered", "more than 16 KiB"),
    (b"", "unanswered", "closed the connection")])
def test_what_the_proxy_answers_instead_of_a_tunnel_is_told(parent, carpool, response, reason, said):
    p = parent(refusal=response)
    c = carpool(upstream={"proxy": p.url})
    with c.client() as client:
        reply = client.get("https://api.test/")
    assert reply.status == 502 and "error=connection_refused" in reply.get("proxy-status")
    assert said in reply.get("proxy-status"), reply.get("proxy-status")
    assert c.metric("carpool_parent_proxy_refusals_total", reason=reason) >= 1


def test_a_proxy_that_does_not_answer_connect_is_given_up(carpool, request):
    quiet = Origin(lambda exchange: quiet_gate.wait(30))
    quiet_gate = threading.Event()
    request.addfinalizer(quiet.stop)
    request.addfinalizer(quiet_gate.set)
    c = carpool(upstream={"proxy": quiet.url}, pool={"connect_timeout": "300ms"})
    with c.client() as client:
        response = client.get("https://api.test/")
    assert response.status == 504 and "CONNECT api.test:443 through " + quiet.url in response.get("proxy-status")


def test_no_proxy_loopback_and_pinned_origins_are_reached_directly(parent, carpool, origin, resolver):
    p, o = parent(), origin()
    resolver.table["b.direct.test"] = ["127.0.0.1"]
    c = carpool(inside=resolver.inside, upstream={"proxy": p.url, "no_proxy": ["*.direct.test"]},
                origin=[{"uri": "http://pinned.test", "addresses": [o.authority]},
                        {"uri": "http://a.direct.test", "addresses": [o.authority]},
                        {"uri": "http://own.test", "upstream": {"proxy": ""}, "addresses": [o.authority]}])
    with c.client() as client:
        assert client.get(o.url + "/loopback").status == 200
        assert client.get("http://pinned.test/pinned").status == 200
        assert client.get("http://b.direct.test:%d/named" % o.port).status == 200
        assert client.get("http://far.test/").status == 200
    assert o.targets() == ["/loopback", "/pinned", "/named"]
    assert resolver.asked and set(resolver.asked) == {"b.direct.test"}
    assert p.requests() == ["GET http://far.test/ HTTP/1.1"]


def test_egress_rules_judge_the_name_of_the_origin(parent, carpool):
    p = parent()
    c = carpool(upstream={"proxy": p.url}, egress={"default": "deny", "allow": ["good.test", "10.0.0.0/8"], "deny": ["bad.good.test"]})
    with c.client() as client:
        assert client.get("http://good.test/").status == 200
        assert client.get("http://other.test/").status == 403  # no address will be resolved that a network could allow
        assert client.get("http://10.1.2.3/").status == 200
        assert client.get("http://11.1.2.3/").status == 403
    assert p.requests() == ["GET http://good.test/ HTTP/1.1", "GET http://10.1.2.3/ HTTP/1.1"]


def test_carpool_is_not_its_own_parent(carpool):
    port = free_port()
    c = carpool(listeners=[{"address": "127.0.0.1:%d" % port}], upstream={"proxy": "http://127.0.0.1:%d" % port})
    c.address = ("127.0.0.1", port)
    with c.client() as client:
        assert client.get("http://api.test/").status == 508


def test_two_that_are_parents_of_each_other_find_a_tunnel_that_loops(carpool):
    ports = free_port(), free_port()
    pair = [carpool(listeners=[{"address": "127.0.0.1:%d" % mine}], upstream={"proxy": "http://127.0.0.1:%d" % other},
                    pool={"size": 16, "connect_timeout": "10s"}) for mine, other in (ports, ports[::-1])]
    pair[0].address = ("127.0.0.1", ports[0])
    with pair[0].client() as client:
        response = client.request("CONNECT", "far.test:443", host="far.test:443")
    assert response.status == 508 and "508 Loop Detected" in response.get("proxy-status"), response
    assert [c.metric("carpool_pool_opened_total", origin="tcp://far.test:443") for c in pair] == [1, 1]
    until(lambda: [c.metric("carpool_requests_total", origin="tcp://far.test:443") for c in pair] == [1, 1], what="both requests counted")


def test_the_connect_of_a_tunnel_names_the_proxies_before(parent, carpool):
    p = parent(refusal=b"HTTP/1.1 403 No\r\n\r\n")
    c = carpool(upstream={"proxy": p.url})
    with c.client() as client:
        assert client.request("CONNECT", "far.test:80", [("Via", "1.1 first"), ("Via", "2 second")], host="far.test:80").status == 502
    via = p.server.seen[0].message.get("via")
    assert via.startswith("1.1 first, 2 second, 1.1 carpool-"), via


def test_the_connect_of_a_tunnel_does_not_name_the_proxies_before_another_one(parent, origin, carpool):
    p, far = parent(), origin()
    p.places["far.test:80"] = ("127.0.0.1", far.port)
    c = carpool(upstream={"proxy": p.url})
    for field in b"Via: 1.1 first\r\n", b"":
        with c.client() as client:
            client.send(b"CONNECT far.test:80 HTTP/1.1\r\nHost: far.test:80\r\n%s\r\n" % field)
            assert client.head().status == 200
    first, second = (seen.message.get("via") for seen in p.server.seen)
    assert first.startswith("1.1 first, 1.1 carpool-") and second == first.removeprefix("1.1 first, ")


def test_the_tunnel_of_a_client_that_is_not_intercepted_keeps_what_its_connect_said(parent, carpool, tmp_path):
    p = parent(refusal=b"HTTP/1.1 403 No\r\n\r\n")
    c = carpool(origin=[{"uri": "https://far.test", "intercept": True}], upstream={"proxy": p.url},
                intercept={"ca_dir": str(Authority(tmp_path / "ca", ["far.test"]).folder)})
    fields = b"Via: 1.1 first\r\nVia: 2 second\r\nTraceparent: 00-%s-%s-00\r\n" % (b"a" * 32, b"b" * 16)
    with connected(c, "far.test:443", fields=fields) as sock:
        sock.sendall(b"not TLS")
        assert not received(sock)
    via = p.server.seen[0].message.get("via")
    assert via.startswith("1.1 first, 2 second, 1.1 carpool-"), via
    until(lambda: [row.get("trace_id") for row in c.access_log()] == ["a" * 32], what="its line")


def test_a_reload_changes_the_proxy_and_its_credentials(parent, carpool, tmp_path):
    first, second = parent(needs=BASIC), parent(needs="Basic " + base64.b64encode(b"pool:new").decode())
    secret = tmp_path / "secret"
    secret.write_text("pool:s3cret")
    c = carpool(upstream={"proxy": first.url, "proxy_credentials": {"file": str(secret)}})
    with c.client() as client:
        assert client.get("http://api.test/").status == 200
        secret.write_text("pool:new")
        c.config.write_text(c.config.read_text().replace(first.url, second.url))
        assert c.admin("POST", "/reload").status == 200
        assert client.get("http://api.test/").status == 200
    assert (len(first.server.seen), len(second.server.seen)) == (1, 1)


def test_a_reload_with_another_proxy_ends_what_is_kept_ready_for_tunnels(parent, carpool, peer):
    def names_itself(name):
        return lambda stream: stream.more() and stream.send(name)
    first, second = parent(), parent()
    first.places = {"db.test:5432": ("127.0.0.1", peer(names_itself(b"first\n")))}
    second.places = {"db.test:5432": ("127.0.0.1", peer(names_itself(b"second\n")))}
    url = "tcp://db.test:5432"
    c = carpool(upstream={"proxy": first.url}, origin=[{"uri": url, "pool": {"min_idle": 1}}])
    until(lambda: c.metric("carpool_pool_connections", origin=url, state="idle") == 1, what="a connection through the first")
    c.config.write_text(c.config.read_text().replace(first.url, second.url))
    assert c.admin("POST", "/reload").status == 200
    with c.client() as client:
        client.send(b"CONNECT db.test:5432 HTTP/1.1\r\nHost: db.test:5432\r\n\r\n")
        assert client.head().status == 200
        client.send(b"?")
        assert client.line() == "second"


def test_a_reload_names_the_file_of_replaced_credentials(parent, carpool, tmp_path):
    p = parent(needs=BASIC)
    secret = tmp_path / "secret"
    secret.write_text("pool:wrong")
    c = carpool(upstream={"proxy": p.url, "proxy_credentials": {"file": str(secret)}})
    with c.client() as client:
        assert client.get("http://api.test/").status == 502
        secret.write_text("pool:s3cret")
        reload = json.loads(c.admin("POST", "/reload").body)
        assert (reload["status"], reload["renewed"]) == ("reloaded", [str(secret)])
        assert client.get("http://api.test/").status == 200
    assert json.loads(c.admin("POST", "/reload").body)["renewed"] == []


def test_health_probes_are_in_absolute_form_too(parent, carpool):
    p = parent(needs=BASIC)
    c = carpool(upstream={"proxy": p.url, "proxy_credentials": "pool:s3cret"},
                pool={"health_check": {"interval": "100ms", "probe": "OPTIONS *"}})
    with c.client() as client:
        assert client.get("http://api.test/").status == 200
    until(lambda: p.requests().count("OPTIONS http://api.test HTTP/1.1") >= 1, 10, "a probe")


@pytest.mark.parametrize("settings,said", [
    ({"proxy": "https://p:1"}, "a proxy is reached over plain HTTP"), ({"proxy": "p:3128"}, "upstream.proxy: has no scheme, expected"),
    ({"proxy": "socks5://p:1"}, "upstream.proxy: a proxy is reached over plain HTTP, expected"), ({"proxy": "HTTP://p:1/x"}, "must not have a path"),
    ({"proxy_credentials": "a:b"}, "is set without proxy"),
    ({"proxy": "http://p:1", "no_proxy": ["a b"]}, "upstream.no_proxy")])
def test_check_explains_a_wrong_setting(carpool, settings, said):
    assert said in carpool(upstream=settings, start=False).check()


def test_each_phase_of_a_dial_may_have_its_own_limit(carpool, origin, request):
    silent = tcp_server()
    request.addfinalizer(silent.close)
    c = carpool(pool={"tls_timeout": "200ms", "connect_timeout": "20s"},
                origin=[{"uri": "https://slow.test", "addresses": ["127.0.0.1:%d" % silent.getsockname()[1]]}])
    with c.client() as client:
        response = client.get("https://slow.test/")
    assert response.status == 504 and "timed out after 200ms" in response.get("proxy-status")


def test_dns_has_a_limit_of_its_own(carpool, resolver):
    resolver.mute = True
    c = carpool(inside=resolver.inside, pool={"dns_timeout": "200ms", "connect_timeout": "20s"})
    with c.client() as client:
        response = client.get("http://mute.test/")
    assert response.status == 504 and "resolving mute.test timed out after 200ms" in response.get("proxy-status")
