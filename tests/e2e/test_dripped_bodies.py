"""Clients that send a byte of a body without a Content-Length now and then: each holds a connection of the origin only while no other
request waits for it."""
import contextlib

from harness.h2_client import H2Client
from harness.h2_origin import SETTINGS, H2Origin
from harness.slow import dripping
from harness.wait import until

CLIENTS, CONNECTIONS = 30, 4
SLOW = {"body_grace": "300ms", "loopback_client": "connection"}


def length(exchange):
    exchange.reply(body=b"%d" % len(exchange.read_body()))


def post(o, target="/drip"):
    return b"POST %s%s HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n" % (o.url.encode(), target.encode())


def slow_bodies(c):
    return c.metric("carpool_downstream_given_up_total", reason="slow_body")


def arrived(o):
    return o.targets().count("/drip")


def test_clients_that_drip_chunks_do_not_keep_others_from_the_origin(origin, carpool):
    o, c = origin(length), carpool(listen=SLOW, pool={"size": CONNECTIONS, "wait_timeout": "20s"})
    clients = [c.client() for _ in range(CLIENTS)]
    for client in clients:
        client.send(post(o))
    until(lambda: arrived(o) >= CONNECTIONS, what="as many bodies as the origin has connections")

    def send():
        for client in clients:
            with contextlib.suppress(OSError):
                client.send(b"1\r\ny\r\n")
    with dripping(send):
        with c.client() as other:
            assert other.get(o.url + "/other").status == 200
    assert slow_bodies(c) > 0
    until(lambda: any(row["status"] == 408 for row in c.access_log()), what="its line in the access log")
    assert all("body_min_rate while a request waited" in str(row) for row in c.access_log() if row["status"] == 408)
    for client in clients:
        client.close()


def test_streams_of_http_2_that_drip_do_not_keep_others_from_the_origin(origin, carpool):
    o, c = origin(length), carpool(listen=SLOW, pool={"size": CONNECTIONS, "wait_timeout": "20s"})
    with H2Client(c.address) as client, c.client() as other:
        streams = [client.ask("/drip", "POST", o.authority, end=False) for _ in range(CLIENTS)]
        for stream in streams:
            client.send(stream, b"x")
        until(lambda: arrived(o) >= CONNECTIONS, what="as many bodies as the origin has connections")

        def send():
            for stream in streams:
                with contextlib.suppress(Exception):  # the stream was answered
                    client.send(stream, b"y")
        with dripping(send):
            assert other.get(o.url + "/other").status == 200
        assert client.until(lambda: any(client.responses[s].headers for s in streams))
        assert {client.responses[s].status for s in streams if client.responses[s].headers} == {408}


def test_streams_that_drip_do_not_keep_others_from_an_origin_of_http_2(carpool):
    o = H2Origin(settings={SETTINGS.MAX_CONCURRENT_STREAMS: 2})
    c = carpool(listen=SLOW, pool={"size": 1, "wait_timeout": "20s"}, origin=[{"uri": o.url, "upstream": {"protocols": ["h2"]}}])
    with c.client() as one, c.client() as two, c.client() as other:
        for client in (one, two):
            client.send(post(o))
        until(lambda: c.metric("carpool_pool_leases") == 2, what="both streams")
        assert other.get(o.url + "/other").status == 200
        assert slow_bodies(c) == 1, "one request waited"
    o.stop()


def test_a_body_that_drips_lives_on_while_nobody_waits(origin, carpool):
    o, c = origin(length), carpool(listen={**SLOW, "body_min_rate": "1MiB"}, pool={"size": 1})
    with c.client() as client:
        client.send(post(o))
        until(lambda: arrived(o) == 1, what="its head at the origin")
        with dripping(lambda: client.send(b"1\r\ny\r\n")):
            for _ in range(5):  # the program's own clock: bodies with a length, which end
                with c.client() as slow:
                    slow.send(b"PUT %s/ HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nx" % o.url.encode())
                    assert slow.response().status == 408
        client.send(b"0\r\n\r\n")
        assert client.response().status == 200
    assert slow_bodies(c) == 5


def test_an_exchange_in_both_directions_lives_on_though_others_wait(origin, carpool):
    def echo(exchange):
        if exchange.request.target != "/drip":
            return exchange.reply()
        exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")
        exchange.read_body()
        exchange.send(b"4\r\nlast\r\n0\r\n\r\n")
    o, c = origin(echo), carpool(listen=SLOW, pool={"size": 1, "wait_timeout": "2s"})
    with c.client() as client, c.client() as other:
        client.send(post(o))
        assert client.head().status == 200
        assert other.get(o.url + "/other").status == 503
        client.send(b"0\r\n\r\n")
        until(lambda: b"last" in client.buffer or not client.more(), what="the end of the response")
        assert b"last" in client.buffer
    assert slow_bodies(c) == 0
