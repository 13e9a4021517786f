"""An origin that ends early: the client receives everything that arrived, and can detect that it is incomplete."""
import contextlib
import fcntl
import select
import socket
import struct
import termios

import pytest
from harness.h2_client import SETTINGS, H2Client, frame, headers, request
from harness.h2_origin import H2Origin
from harness.h2_raw import RawClient
from harness.ports import tcp_server
from harness.wait import until
from harness.wire import Stream

SENT = 3_000_000
BLOCK = bytes(range(250)) * 4
INTERNAL_ERROR = 2


class Narrow(Stream):
    """A client with a small kernel buffer."""

    def __init__(self, address):
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 20000)  # before it connects, or the window is wide
        sock.connect(address)
        super().__init__(sock)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def rest(self):
        """Returns how many bytes still arrive, and how the connection ends."""
        size = len(self.buffer)
        try:
            while data := self.sock.recv(65536):
                size += len(data)
        except ConnectionResetError:
            return size, "reset"
        return size, "FIN"


def body(framing):
    if framing == "length":
        return b"Content-Length: 20000000\r\n\r\n" + BLOCK * (SENT // 1000)
    return b"Transfer-Encoding: chunked\r\n\r\n" + b"3e8\r\n%s\r\n" % BLOCK * (SENT // 1000)


@pytest.fixture
def broken(origin):
    """An origin that sends FIN before the announced length."""
    def start(framing):
        def handler(exchange):
            exchange.send(b"HTTP/1.1 200 OK\r\n" + body(framing))
            return False
        return origin(handler)
    return start


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_a_client_that_reads_slowly_gets_all_that_came_and_then_fin(broken, carpool, framing):
    o, c = broken(framing), carpool()
    with Narrow(c.address) as client:
        client.send(b"GET %s/ HTTP/1.1\r\nHost: x\r\n\r\n" % o.url.encode())
        assert client.head().status == 200
        size, end = client.rest()
    if framing == "chunked":  # a proxy may cut chunks anew
        assert size >= SENT and end == "FIN"
    else:
        assert (size, end) == (SENT, "FIN")
    until(lambda: c.metric("carpool_pool_connections") == 0, what="the end of the broken connection")


def test_a_body_that_only_the_close_ends_is_delivered_and_then_reset(broken, carpool):
    o, c = broken("chunked"), carpool()
    with Narrow(c.address) as client:
        client.send(b"GET %s/ HTTP/1.0\r\n\r\n" % o.url.encode())
        assert client.head().status == 200
        assert client.rest() == (SENT, "reset")


def test_the_same_for_a_client_that_has_closed_its_side(broken, carpool):
    o, c = broken("chunked"), carpool()
    with Narrow(c.address) as client:
        client.send(b"GET %s/ HTTP/1.0\r\n\r\n" % o.url.encode())
        client.sock.shutdown(socket.SHUT_WR)
        assert client.head().status == 200
        assert client.rest() == (SENT, "reset")


def test_the_origin_is_let_go_at_once_whatever_its_client_reads(origin, carpool):
    def small(exchange):
        exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 400000\r\n\r\n" + BLOCK * 200)
        return False
    o, c = origin(small), carpool()
    with Narrow(c.address) as client:
        client.send(b"GET %s/ HTTP/1.1\r\nHost: x\r\n\r\n" % o.url.encode())
        until(lambda: c.metric("carpool_pool_closed_total", cause="error") == 1, what="the end of the broken connection")
        assert client.head().status == 200
        assert client.rest() == (200_000, "FIN")


def test_a_client_that_takes_nothing_is_ended_and_its_origin_not_blamed(origin, carpool):
    def plenty(exchange):
        exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 50000000\r\n\r\n" + BLOCK * 50000)
    o, c = origin(plenty), carpool(request={"idle_timeout": "1s"}, listen={"idle_timeout": "1s"})
    with Narrow(c.address) as client:
        client.send(b"GET %s/ HTTP/1.1\r\nHost: x\r\n\r\n" % o.url.encode())
        until(lambda: c.metric("carpool_requests_total", code="200") == 1, what="the end of the request")
        until(lambda: c.metric("carpool_downstream_connections") == 0, what="the end of the client")
    assert c.metric("carpool_pool_failures_total", origin=o.url) == 0


def test_an_answer_that_breaks_the_rules_never_ends_in_order(origin, carpool):
    def odd(exchange):
        exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3e8\r\n%s\r\nsoon\r\n" % BLOCK)
        return False
    o, c = origin(odd), carpool()
    with Narrow(c.address) as client:
        client.send(b"GET %s/ HTTP/1.1\r\nHost: x\r\n\r\n" % o.url.encode())
        assert client.head().status == 200
        size, end = client.rest()
        assert size >= 1000 and end == "reset"


@pytest.mark.parametrize("size", [1000, 40_000, 200_000])
def test_a_client_of_http_2_gets_the_data_before_the_reset(origin, carpool, size):
    def small(exchange):
        exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 900000\r\n\r\n" + BLOCK * (size // 1000))
        return False
    o, c = origin(small), carpool()
    with H2Client(c.address) as client:
        response = client.get("/", authority=o.authority)
        assert (response.status, len(response.body), response.reset) == (200, size, INTERNAL_ERROR)
        assert not client.closed and client.get("/", authority=o.authority).status == 200


@pytest.mark.parametrize("size", [0, 1000])
def test_a_window_that_is_used_up_does_not_hold_the_reset_back(origin, carpool, size):
    def small(exchange):
        exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 900000\r\n\r\n" + BLOCK[:size])
        return False
    o, c = origin(small), carpool()
    with RawClient(c.address) as client:
        client.generous = False
        client.send(frame(SETTINGS, 0, 0, struct.pack(">HI", 4, size)))
        client.until(lambda: client.acks)
        client.send(headers(1, request(o.authority.encode())))
        assert not client.over(1)
        assert (client.status(1), len(client.data[1]), client.resets[1]) == (200, size, INTERNAL_ERROR)


@pytest.mark.parametrize("workers", [1, 2])
def test_an_origin_of_http_2_that_resets_mid_body_loses_nothing_either(carpool, workers):
    def half(stream):
        stream.head(200, [("content-length", "900000")])
        stream.data(BLOCK * 20)
        stream.reset(INTERNAL_ERROR)
    o = H2Origin(half)
    c = carpool(workers=workers, origin=[{"uri": o.url, "upstream": {"protocols": ["h2"]}}])
    for _ in range(6):  # with two workers some on the session's own loop, some by mail
        with Narrow(c.address) as client:
            client.send(b"GET %s/ HTTP/1.1\r\nHost: x\r\n\r\n" % o.url.encode())
            assert client.head().status == 200
            assert client.rest() == (20_000, "FIN")
        with H2Client(c.address) as client:
            response = client.get("/", authority=o.authority)
            assert (len(response.body), response.reset) == (20_000, INTERNAL_ERROR)
    o.stop()


def test_the_log_tells_that_an_origin_of_http_2_closed_inside_its_response(carpool):
    def half(stream):
        stream.head(200, [("content-length", "9")])
        stream.data(b"half")
        stream.connection.close()
    o = H2Origin(half)
    c = carpool(origin=[{"uri": o.url, "upstream": {"protocols": ["h2"]}}])
    with H2Client(c.address) as client:
        assert client.get("/", authority=o.authority).reset == INTERNAL_ERROR
    until(lambda: c.access_log(), what="the line")
    assert [(line["status"], line["fault"]) for line in c.access_log()] == [(200, "the origin closed the connection")]
    o.stop()


def acknowledged(sock):
    return struct.unpack("i", fcntl.ioctl(sock, termios.TIOCOUTQ, b"\0\0\0\0"))[0] == 0


def test_a_tunnel_whose_peer_resets_delivers_what_it_had_received(carpool):
    c = carpool()
    server = tcp_server()
    with server, Narrow(c.address) as client:
        client.send(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: x\r\n\r\n" % server.getsockname()[1])
        peer = Stream(server.accept()[0])
        peer.send(BLOCK * 200)
        until(lambda: acknowledged(peer.sock), what="the arrival of every byte")
        peer.reset()
        until(lambda: c.metric("carpool_pool_closed_total", cause="tunnel_ended") == 1, what="the end of the tunnel")
        assert client.head().status == 200
        assert client.rest() == (200_000, "reset")


def fill(sock):
    """Sends until nobody on the way takes more."""
    sock.setblocking(False)
    while select.select([], [sock], [], 0.3)[1]:
        with contextlib.suppress(BlockingIOError):
            sock.send(BLOCK)
    sock.settimeout(15)


# carpool learns of the reset when it writes what waits for the peer, and reads then no more than the end of the stream.
@pytest.mark.parametrize("opening, response", [
    ("POST http://%s/ HTTP/1.0\r\nContent-Length: 1000000000\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n"),
    ("CONNECT %s HTTP/1.0\r\n\r\n", b""),
])
def test_a_reset_is_no_end_though_bytes_wait_for_the_peer(carpool, opening, response):
    c = carpool()
    server = tcp_server()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    with server, Narrow(c.address) as client:
        client.send((opening % ("127.0.0.1:%d" % server.getsockname()[1])).encode() + BLOCK * 100)
        peer = Stream(server.accept()[0])
        peer.exactly(100)  # a part of the request, or the beginning of what the tunnel carries
        peer.send(response + b"part")
        assert client.head().status == 200
        assert client.exactly(4) == b"part"
        fill(client.sock)
        peer.reset()
        assert client.rest() == (0, "reset")
