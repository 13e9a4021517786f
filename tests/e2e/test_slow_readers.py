"""Clients that read a byte of a large response now and then: each holds a connection of the origin only while no other request waits for it."""
import contextlib
import socket

from harness.h2_client import H2Client, headers, request
from harness.h2_raw import RawClient
from harness.slow import Narrow, dripping
from harness.wait import until

CLIENTS, CONNECTIONS = 12, 4
SIZE = 30 << 20  # more than the buffers of the kernel and of carpool
SLOW = {"body_grace": "300ms", "loopback_client": "connection"}


def large(exchange):
    if exchange.request.target != "/large":
        return exchange.reply()
    with contextlib.suppress(OSError):
        exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % SIZE)
        for _ in range(SIZE >> 20):
            exchange.send(bytes(1 << 20))


def slow_readers(c):
    return c.metric("carpool_downstream_given_up_total", reason="slow_reader")


def arrived(o):
    return o.targets().count("/large")


def reading(clients):
    """Each client reads a byte several times in a second."""
    def read():
        for client in clients:
            with contextlib.suppress(OSError):
                client.sock.recv(1)
    return dripping(read)


def test_clients_that_read_slowly_do_not_keep_others_from_the_origin(origin, carpool):
    o, c = origin(large), carpool(listen=SLOW, pool={"size": CONNECTIONS, "wait_timeout": "20s"})
    clients = [Narrow(c.address) for _ in range(CLIENTS)]
    for client in clients:
        client.send(b"GET %s/large HTTP/1.1\r\nHost: x\r\n\r\n" % o.url.encode())
    until(lambda: arrived(o) >= CONNECTIONS, what="as many responses as the origin has connections")
    with reading(clients), c.client() as other:
        assert other.get(o.url + "/other").status == 200
    assert slow_readers(c) > 0

    def ended():
        return [row for row in c.access_log() if "body_min_rate while a request waited" in str(row)]
    until(ended, what="its line in the access log")
    assert all(row["status"] == 200 and 0 < row["bytes_out"] < SIZE for row in ended())
    for client in clients:
        client.close()


def test_streams_whose_windows_open_slowly_do_not_keep_others_from_the_origin(origin, carpool):
    o, c = origin(large), carpool(listen=SLOW, request={"idle_timeout": "2s"}, pool={"size": 2, "wait_timeout": "20s"})
    with H2Client(c.address) as client, c.client() as other:
        client.h2.increment_flow_control_window(1 << 24)
        streams = [client.ask("/large", authority=o.authority) for _ in range(2)]
        until(lambda: arrived(o) == 2, what="both responses")

        def open_slowly():
            for stream in streams:
                client.h2.increment_flow_control_window(1, stream)
                client.flush()
        with dripping(open_slowly):
            assert other.get(o.url + "/other").status == 200
        assert slow_readers(c) == 1, "one request waited"
        assert client.until(lambda: any(client.responses[s].reset is not None for s in streams)), "an end that is visible"


def test_a_client_that_reads_slowly_goes_on_while_nobody_waits(origin, carpool):
    o, c = origin(large), carpool(listen={**SLOW, "body_min_rate": "1MiB"}, pool={"size": 1})
    with Narrow(c.address) as client:
        client.send(b"GET %s/large HTTP/1.1\r\nHost: x\r\n\r\n" % o.url.encode())
        until(lambda: arrived(o) == 1, what="the response")
        for _ in range(5):  # the program's own clock: bodies with a length, which end
            with c.client() as slow:
                slow.send(b"PUT %s/ HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nx" % o.url.encode())
                assert slow.response().status == 408
        client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        assert len(client.response().body) == SIZE
    assert slow_readers(c) == 0


def test_a_client_that_is_faster_than_the_rate_goes_on_though_others_wait(origin, carpool):
    def endless(exchange):
        if exchange.request.target != "/large":
            return exchange.reply()
        with contextlib.suppress(OSError):
            exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (1 << 40))
            while True:
                exchange.send(bytes(1 << 20))
    o, c = origin(endless), carpool(listen={**SLOW, "body_grace": "5s"}, pool={"size": 1, "wait_timeout": "6s"})
    with Narrow(c.address) as client, c.client() as other:
        client.send(b"GET %s/large HTTP/1.1\r\nHost: x\r\n\r\n" % o.url.encode())
        until(lambda: arrived(o) == 1, what="the response")
        other.ask("GET", o.url + "/other")
        until(lambda: c.metric("carpool_pool_waiting", origin=o.url) == 1, what="the other request in the queue")
        while c.metric("carpool_pool_waiting", origin=o.url):  # for longer than body_grace
            client.sock.recv(1 << 16)  # far more than 500 bytes a second
        assert other.response().status == 503
    assert slow_readers(c) == 0


def test_a_response_for_which_a_client_opens_no_window_ends_no_other_request_of_its_connection(origin, carpool, gate):
    def handler(exchange):
        if exchange.request.target == "/silent":
            gate.enter()
        exchange.reply(body=b"x" * 1000 if exchange.request.target == "/large" else b"ok")
    o, c = origin(handler), carpool(listen={"idle_timeout": "500ms"})
    with RawClient(c.address, settings=b"\0\4\0\0\0\x0a", generous=False) as client:  # a window of ten bytes
        place = o.authority.encode()
        client.send(headers(1, request(place, b"/large")), headers(3, request(place, b"/silent")))
        assert not client.over(1) and len(client.data[1]) == 10
        gate.open()
        assert client.over(3) and client.data[3] == b"ok" and not client.goaways
