"""Peers that send KeyUpdates (RFC 8446 §4.6.3) without data: their connection ends and is counted, others are served as before."""
import contextlib
import socket
import threading

import pytest
from harness.acceptor import Acceptor
from harness.authority import Authority
from harness.ports import tcp_server
from harness.tls_peer import NOT_REQUESTED, REQUESTED, TlsPeer
from harness.wait import until
from harness.wire import Client

FLOODS = "carpool_tls_floods_total"
PLENTY = 5000
WORDS = "too many TLS messages without data"
requests = pytest.mark.parametrize("request_update", [NOT_REQUESTED, REQUESTED], ids=["plain", "requesting"])


def flood(peer, request_update):
    """Returns whether the connection ended."""
    sent = 0
    while sent < PLENTY and peer.update_key(request_update):
        sent += 1
    # A slow reader leaves all of it in the sockets, and its settings of HTTP/2 may come first.
    return sent < PLENTY or any(peer.receive() == b"" for _ in range(PLENTY))


def logged(c, text):
    return any(text in line for line in list(c.output))


@pytest.fixture
def listener(origin, carpool, pki):
    o = origin()
    return o, carpool(listen={"cert_file": pki.server, "key_file": pki.server_key}, log={"level": "debug"})


def served(c, o):
    with TlsPeer(socket.create_connection(c.address, 10)) as other:
        other.send(b"GET %s/ HTTP/1.1\r\nHost: x\r\n\r\n" % o.url.encode())
        return other.until(b"\r\n\r\n").startswith(b"HTTP/1.1 200")


@requests
@pytest.mark.parametrize("alpn", ["http/1.1", "h2"])
def test_a_client_of_a_tls_listener(listener, request_update, alpn):
    o, c = listener
    for count in (1, 2):
        connection = socket.create_connection(c.address, 10)
        name = "%s:%d" % connection.getsockname()
        with TlsPeer(connection, alpn=alpn) as client:
            assert flood(client, request_update)
        until(lambda: c.metric(FLOODS, peer="client") == count, what="it is counted")
        assert served(c, o)
        until(lambda: any(WORDS in line and name in line for line in c.output), what="the log says why, and of which client")
    assert c.metric(FLOODS, peer="origin") == 0


@requests
def test_a_client_in_the_middle_of_its_body(listener, request_update):
    o, c = listener
    with TlsPeer(socket.create_connection(c.address, 10)) as client:
        client.send(b"POST %s/ HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nbegin" % o.url.encode())
        assert flood(client, request_update)
    until(lambda: c.metric(FLOODS, peer="client") == 1, what="it is counted")
    until(lambda: c.metric("carpool_downstream_connections") == 0, what="the connection has ended")
    assert served(c, o)


@requests
def test_a_client_inside_an_intercepted_connect(origin, carpool, pki, tmp_path, context, request_update):
    o = origin(tls=context)
    authority = Authority(tmp_path / "ca", ["localhost"])
    c = carpool(origin=[{"uri": "https://localhost:%d" % o.port, "intercept": True, "upstream": {"tls": {"ca_file": pki.ca}}}],
                intercept={"ca_dir": str(authority.folder)})

    def inside():
        sock = socket.create_connection(c.address, 10)
        place = b"localhost:%d" % o.port
        sock.sendall(b"CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (place, place))
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += sock.recv(1)
        assert head.startswith(b"HTTP/1.1 200")
        return TlsPeer(sock)
    with inside() as client:
        assert flood(client, request_update)
    until(lambda: c.metric(FLOODS, peer="client") == 1, what="it is counted")
    with inside() as client:
        client.send(b"GET / HTTP/1.1\r\nHost: localhost:%d\r\n\r\n" % o.port)
        assert client.until(b"\r\n\r\n").startswith(b"HTTP/1.1 200")


@contextlib.contextmanager
def flooding_origin(pki, request_update, idle=None):
    """An origin that floods the first connection: instead of a response, or after it, once `idle` is set. The next ones are served."""
    server = tcp_server()
    ended = []

    def serve(sock):
        first = not ended
        with TlsPeer(sock, identity=(pki.server, pki.server_key)) as peer:
            while first or idle:
                if not peer.receive():
                    break
                if idle:
                    peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                    idle.wait(20)
                if first:
                    ended.append(flood(peer, request_update))
                    break
    acceptor = Acceptor(server, serve)
    try:
        yield "https://localhost:%d" % server.getsockname()[1], ended
    finally:
        acceptor.stop()


@requests
def test_an_origin_instead_of_a_response(carpool, pki, request_update):
    with flooding_origin(pki, request_update) as (url, ended):
        c = carpool(upstream={"tls": {"ca_file": pki.ca}}, request={"max_retries": 0})
        with Client(c.address) as client:
            response = client.get(url + "/")
        assert response.status == 502 and WORDS in response.get("proxy-status"), response
        until(lambda: c.metric(FLOODS, peer="origin") == 1, what="it is counted")
        assert c.metric("carpool_pool_closed_total", origin=url, cause="error") == 1
        until(lambda: ended == [True], what="the origin sees the end")
        c.stop()


@requests
def test_an_origin_on_an_idle_connection(carpool, pki, request_update):
    idle = threading.Event()
    with flooding_origin(pki, request_update, idle) as (url, ended):
        c = carpool(upstream={"tls": {"ca_file": pki.ca}}, log={"level": "debug"})
        with Client(c.address) as client:
            assert client.get(url + "/").status == 200
            until(lambda: c.metric("carpool_pool_connections", origin=url, state="idle") == 1, what="it is idle")
            idle.set()
            until(lambda: c.metric(FLOODS, peer="origin") == 1, what="it is counted")
            assert client.get(url + "/").status == 200, "another connection"
        assert c.metric("carpool_pool_closed_total", origin=url, cause="error") == 1
        until(lambda: logged(c, WORDS) and ended == [True], what="the line, and the end at the origin")
        c.stop()
