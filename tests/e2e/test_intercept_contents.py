"""Contents of an intercepted CONNECT besides short requests: long uploads and downloads, WebSocket, gRPC."""
import contextlib
import pathlib
import socket
import ssl
import threading

import pytest
from harness.authority import Authority
from harness.h2_client import H2Client
from harness.wait import until
from harness.wire import Client

NAME = "origin.test"
MIB = 1 << 20
ROOM = 24 * MIB  # a transfer of any length must not need more


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path / "ca", [NAME])


@pytest.fixture
def intercepting(carpool, pki, authority):
    """Returns carpool, which intercepts an origin on this port."""
    def make(port, **settings):
        uri = "https://%s:%d" % (NAME, port)
        c = carpool(origin=[{"uri": uri, "intercept": True, "addresses": ["127.0.0.1:%d" % port], "upstream": {"tls": {"ca_file": pki.ca}}}],
                    intercept={"ca_dir": str(authority.folder)}, **settings)
        c.label, c.name, c.proxy = uri, "%s:%d" % (NAME, port), "http://%s:%d" % c.address
        return c
    return make


def serving(pki, alpn="http/1.1"):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pki.server, pki.server_key)
    context.set_alpn_protocols([alpn])
    return context


def trusting(authority, alpn="http/1.1"):
    context = ssl.create_default_context(cafile=str(authority.ca))
    context.set_alpn_protocols([alpn])
    return context


def inside(c, authority, alpn="http/1.1"):
    """Returns a socket that speaks TLS with carpool inside a CONNECT."""
    sock = socket.create_connection(c.address, 10)
    sock.sendall(b"CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n" % ((c.name.encode(),) * 2))
    head = sock.recv(4096)
    assert head.startswith(b"HTTP/1.1 200 ") and head.endswith(b"\r\n\r\n"), head
    secured = trusting(authority, alpn).wrap_socket(sock, server_hostname=NAME)
    secured.settimeout(120)
    return secured


def intercepted(c):
    return c.metric("carpool_intercept_connects_total", origin=c.label, result="intercepted")


def count_body(exchange):
    """Counts the body of a request without keeping it."""
    left = int(exchange.request.get("content-length"))
    got, wrong, stream = len(exchange.stream.buffer), exchange.stream.buffer.count(b"u"), exchange.stream
    stream.buffer = b""
    while got < left:
        data = stream.sock.recv(MIB)
        assert data
        got += len(data)
        wrong += data.count(b"u")
    exchange.reply(body=b"%d %d" % (got, wrong))


@contextlib.contextmanager
def bounded(c):
    """The block needs no more memory of carpool than ROOM."""
    before, done, most = c.rss(), threading.Event(), [0]

    def watch():
        while not done.wait(0.1):
            most[0] = max(most[0], c.rss())
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
    assert most[0] - before < ROOM, (before, most[0])


def test_an_upload_of_a_gibibyte_needs_no_memory(origin, pki, authority, intercepting, full):
    size = (1024 if full else 96) * MIB
    o = origin(count_body, tls=serving(pki))
    c = intercepting(o.port)
    block = b"u" * MIB
    with Client(sock=inside(c, authority)) as client, bounded(c):
        client.send(b"POST /up HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n" % (c.name.encode(), size))
        for _ in range(size // MIB):
            client.send(block)
        response = client.response()
    assert (response.status, response.body) == (200, b"%d %d" % (size, size))
    assert intercepted(c) == 1 and o.opened == 1


def test_a_client_that_reads_slowly_holds_back_a_download(origin, pki, authority, intercepting, full):
    size, block = (1024 if full else 96) * MIB, b"d" * MIB

    def long(exchange):
        exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        for _ in range(size // MIB):
            exchange.send(block)
    o = origin(long, tls=serving(pki))
    c = intercepting(o.port)
    with inside(c, authority) as sock, bounded(c):
        sock.sendall(b"GET /down HTTP/1.1\r\nHost: %s\r\n\r\n" % c.name.encode())
        head, _, body = sock.recv(4096).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 ")
        got = len(body)
        while got < size:
            data = sock.recv(65536)
            assert data and not data.strip(b"d")
            got += len(data)
    assert got == size


def test_websocket_keeps_its_slot_to_the_end(pki, authority, intercepting):
    client = pytest.importorskip("websockets.sync.client")
    server = pytest.importorskip("websockets.sync.server")

    def talk(connection):
        for message in connection:
            connection.send(message)
    running = server.serve(talk, "127.0.0.1", 0, ssl=serving(pki))
    threading.Thread(target=running.serve_forever, daemon=True).start()
    try:
        c = intercepting(running.socket.getsockname()[1])
        # This client reads in one thread and writes in another: a ticket of TLS 1.3 may arrive while it writes, and Python then loses what is written.
        context = trusting(authority)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        with client.connect("wss://%s/chat" % c.name, proxy=c.proxy, ssl=context, server_hostname=NAME) as ws:
            for message in ("short", "x" * 200_000, b"\x00\xff" * 5):
                ws.send(message)
                assert ws.recv(timeout=20) == message
            assert c.metric("carpool_pool_connections", origin=c.label, state="tunnel") == 1
            assert intercepted(c) == 1
        until(lambda: c.metric("carpool_pool_closed_total", origin=c.label, cause="tunnel_ended") == 1, what="tunnel_ended")
        until(lambda: c.metric("carpool_pool_connections", origin=c.label) == 0, what="an empty pool")
    finally:
        running.shutdown()


@pytest.fixture
def echo(pki):
    """Returns the port of a gRPC server over TLS."""
    grpc = pytest.importorskip("grpc")
    import test_grpc
    files = [(pathlib.Path(pki.server_key).read_bytes(), pathlib.Path(pki.server).read_bytes())]
    server, _, port = test_grpc.serve(grpc.ssl_server_credentials(files), 32)
    yield port
    server.stop(None)


def test_grpc_makes_all_kinds_of_calls(echo, authority, intercepting):
    grpc = pytest.importorskip("grpc")
    c = intercepting(echo)
    credentials = grpc.ssl_channel_credentials(authority.ca.read_bytes())
    with grpc.secure_channel(c.name, credentials, [("grpc.http_proxy", c.proxy)]) as channel:
        assert channel.unary_unary("/t.Echo/Unary")(b"abc", timeout=20) == b"cba"
        assert list(channel.unary_stream("/t.Echo/Many")(b"500", timeout=20)) == [b"%d" % i for i in range(500)]
        assert channel.stream_unary("/t.Echo/Sum")((b"%d" % i for i in range(300)), timeout=20) == b"%d" % sum(range(300))
        assert list(channel.stream_stream("/t.Echo/Talk")((b"a%d" % i for i in range(200)), timeout=20))[-1] == b"A199"
        with pytest.raises(grpc.RpcError) as refused:
            channel.unary_unary("/t.Echo/Fail")(b"", timeout=20)
        assert refused.value.code() == grpc.StatusCode.FAILED_PRECONDITION
        assert dict(refused.value.trailing_metadata())["why"] == "because"
    assert intercepted(c) == 1
    assert c.metric("carpool_requests_total", origin=c.label, code="200") == 5
    assert c.metric("carpool_pool_opened_total", origin=c.label) == 1, "one HTTP/2 connection to the server"


def test_requests_of_one_http2_client_share_the_pool_with_others(origin, pki, authority, intercepting):
    o = origin(tls=serving(pki))
    c = intercepting(o.port, pool={"size": 2})
    with H2Client(None, inside(c, authority, "h2")) as one, Client(sock=inside(c, authority)) as other:
        for n in range(10):
            assert one.get("/h2/%d" % n, authority=c.name, scheme="https").status == 200
            assert other.get("/h1/%d" % n, host=c.name).status == 200
    assert len(o.seen) == 20 and o.opened <= 2
    assert intercepted(c) == 2
