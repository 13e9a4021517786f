"""Origins behind Unix sockets."""
import concurrent.futures
import os
import pathlib
import socket
import tempfile

import pytest
from harness.h2_origin import H2Origin
from harness.origin import Gate
from harness.wait import until
from harness.wire import Client

URL = "http://app.test"


@pytest.fixture
def tmp_path():
    """A short one: the path of a socket has at most 107 bytes."""
    with tempfile.TemporaryDirectory() as folder:
        yield pathlib.Path(folder)


def pinned(carpool, address, url=URL, **more):
    return carpool(origin=[{"uri": url, "addresses": [address], **more}])


def test_requests_reach_an_origin_behind_a_unix_socket(origin, carpool, tmp_path):
    o = origin(path=str(tmp_path / "app.sock"))
    c = pinned(carpool, o.authority)
    with c.client() as client:
        for _ in range(5):
            assert client.get(URL + "/x").body == b"ok"
    assert o.opened == 1
    assert [s.message.get("host") for s in o.seen] == ["app.test"] * 5
    [connection] = c.get_json("/pools/http%3A%2F%2Fapp.test/connections")["connections"]
    assert connection["peer"] == o.authority
    assert {a["address"] for a in c.get_json("/pools/http%3A%2F%2Fapp.test")["addresses"]} == {o.authority}


def test_tls_and_http2_work_behind_a_unix_socket(origin, carpool, tmp_path, context, pki, request):
    o = origin(tls=context, path=str(tmp_path / "tls.sock"))
    context.set_alpn_protocols(["h2"])
    secured = H2Origin(tls=context, path=str(tmp_path / "h2.sock"))
    plain = H2Origin(path=str(tmp_path / "h2c.sock"))
    request.addfinalizer(secured.stop)
    request.addfinalizer(plain.stop)
    c = carpool(upstream={"tls": {"ca_file": pki.ca}}, origin=[
        {"uri": "https://origin.test", "addresses": [o.authority], "upstream": {"protocols": ["h1"]}},
        {"uri": "https://localhost", "addresses": [secured.authority]},
        {"uri": "http://h2c.test", "addresses": [plain.authority], "upstream": {"protocols": ["h2"]}}])
    with c.client() as client:
        for url in ("https://origin.test/a", "https://localhost/b", "http://h2c.test/c"):
            assert client.get(url).status == 200, url
    assert [o.targets(), len(secured.seen), len(plain.seen)] == [["/a"], 1, 1]


def test_credentials_of_an_origin_may_travel_over_its_socket_without_tls(origin, carpool, tmp_path):
    o = origin(path=str(tmp_path / "app.sock"))
    c = pinned(carpool, o.authority, request={"headers": {"Authorization": "Bearer abc"}})
    with c.client() as client:
        assert client.get(URL + "/").status == 200
    assert o.seen[0].message.get("authorization") == "Bearer abc"


def test_a_tunnel_ends_at_a_unix_socket(origin, carpool, tmp_path):
    o = origin(path=str(tmp_path / "app.sock"))
    c = pinned(carpool, o.authority, url="tcp://app.test:5432")
    with c.client() as client:
        client.send(b"CONNECT app.test:5432 HTTP/1.1\r\nHost: app.test:5432\r\n\r\n")
        assert client.head().status == 200
        client.send(b"GET /inside HTTP/1.1\r\nHost: x\r\n\r\n")
        assert client.response().body == b"ok"
    assert o.targets() == ["/inside"]


@pytest.mark.parametrize("what,said", [
    ("missing", "the socket's file does not exist"), ("dead", "no process listens on the socket"),
    ("file", "no process listens on the socket")])
def test_the_error_says_what_is_wrong_with_the_socket(carpool, tmp_path, what, said):
    path = tmp_path / "app.sock"
    if what == "dead":
        dead = socket.socket(socket.AF_UNIX)
        dead.bind(str(path))
        dead.close()
    elif what == "file":
        path.write_text("")
    c = pinned(carpool, "unix:%s" % path)
    with c.client() as client:
        response = client.get(URL + "/")
    assert response.status == 502
    assert "error=connection_refused" in response.get("proxy-status") and said in response.get("proxy-status")
    assert c.metric("carpool_pool_failures_total", origin=URL, reason="refused") >= 1


@pytest.mark.skipif(os.geteuid() != 0, reason="another user needs root")
def test_the_error_names_a_permission_that_is_missing(origin, carpool, tmp_path):
    o = origin(path=str(tmp_path / "app.sock"))
    os.chown(tmp_path / "app.sock", 65534, 65534)
    os.chmod(tmp_path / "app.sock", 0o600)
    c = carpool(inside=["setpriv", "--bounding-set", "-dac_override,-dac_read_search"],
                origin=[{"uri": URL, "addresses": [o.authority]}])
    with c.client() as client:
        response = client.get(URL + "/")
    assert response.status == 502 and "may not write to the socket" in response.get("proxy-status")


def test_carpool_never_reaches_its_own_sockets(carpool, tmp_path):
    proxy, admin, handover, link = (str(tmp_path / name) for name in ("proxy.sock", "admin.sock", "handover.sock", "link.sock"))
    os.symlink(admin, link)
    c = carpool(listeners=[{"address": "unix:" + proxy}], admin={"address": "unix:" + admin},
                handover={"address": "unix:" + handover}, origin=[
                    {"uri": "http://one", "addresses": ["unix:" + proxy]}, {"uri": "http://two", "addresses": ["unix:" + admin]},
                    {"uri": "http://three", "addresses": ["unix:" + link]}, {"uri": "http://four", "addresses": ["unix:" + handover]}])
    with Client(proxy) as client:
        assert [client.get("http://%s/" % name).status for name in ("one", "two", "three", "four")] == [508, 403, 403, 403]
    assert c.process.poll() is None


def test_min_idle_and_health_checks_work_on_a_unix_socket(origin, carpool, tmp_path):
    o = origin(path=str(tmp_path / "app.sock"))
    c = pinned(carpool, o.authority, pool={"min_idle": 2, "health_check": {"interval": "100ms", "probe": "HEAD /up"}})
    with c.client() as client:
        assert client.get(URL + "/").status == 200
    until(lambda: o.targets().count("/up") >= 2, 10, "two probes")
    until(lambda: c.metric("carpool_pool_connections", origin=URL, state="idle") >= 2, what="two between their probes")


def test_many_clients_at_once_wait_for_a_short_accept_queue(origin, carpool, tmp_path):
    gate = Gate()

    def held(exchange):
        gate.enter()
        exchange.reply()
    o = origin(held, path=str(tmp_path / "app.sock"), backlog=1)
    c = pinned(carpool, o.authority, pool={"size": 40})
    clients = [c.client() for _ in range(40)]
    for client in clients:
        client.ask("GET", URL + "/")
    gate.wait_for(40)
    gate.open()
    assert {client.response().status for client in clients} == {200}
    assert c.metric("carpool_pool_failures_total", origin=URL) in (None, 0)
    for client in clients:
        client.close()


def test_grpc_through_the_socket_to_a_socket(carpool, tmp_path):
    grpc = pytest.importorskip("grpc")
    from test_grpc import Echo
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((Echo(),))
    app, proxy = "unix:%s" % (tmp_path / "app.sock"), "unix:%s" % (tmp_path / "proxy.sock")
    server.add_insecure_port(app)
    server.start()
    c = carpool(listeners=[{"address": proxy}],
                origin=[{"uri": "http://echo", "addresses": [app], "upstream": {"protocols": ["h2"]}}])
    with grpc.insecure_channel(proxy, options=[("grpc.default_authority", "echo")]) as channel:
        for _ in range(20):
            assert channel.unary_unary("/t.Echo/Unary")(b"abc", timeout=20) == b"cba"
    assert c.metric("carpool_pool_opened_total", origin="http://echo") >= 1
    server.stop(None)
