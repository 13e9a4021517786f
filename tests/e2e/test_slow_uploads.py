"""A request's body is read before its connection is borrowed, so that slow clients hold no slot of an origin; and it
must arrive at listen.body_min_rate."""
import threading

import pytest
from harness.h2_client import H2Client
from harness.h2_origin import H2Origin
from harness.h2_raw import RawOrigin
from harness.wait import until

MIB = 1 << 20


def length(exchange):
    exchange.reply(body=b"%d" % len(exchange.read_body()))


def put(o, size, *more):
    return b"PUT %s/up HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n%s\r\n" % (o.url.encode(), size, b"".join(more))


def slow_bodies(c):
    return c.metric("carpool_downstream_given_up_total", reason="slow_body")


def test_slow_bodies_hold_no_connection(origin, carpool):
    o, c = origin(length), carpool(workers=1, pool={"size": 2})
    slow = [c.client() for _ in range(20)]
    for client in slow:
        client.send(put(o, 4096) + bytes(10))
    with c.client() as other:
        assert other.get(o.url + "/other").status == 200
    assert o.targets() == ["/other"] and c.metric("carpool_pool_borrows_total") == 1
    for client in slow:
        client.send(bytes(4086))
        assert client.response().body == b"4096"
        client.close()


def test_a_client_that_resets_inside_such_a_body_leaves_nothing_behind(origin, carpool):
    o, c = origin(length), carpool()
    client = c.client()
    client.send(put(o, 4096) + bytes(10))
    until(lambda: c.metric("carpool_downstream_connections") == 1, what="the client")
    client.reset()
    until(lambda: c.metric("carpool_downstream_connections") == 0, what="its end")
    assert c.metric("carpool_pool_borrows_total") == 0 and o.opened == 0


def test_a_large_body_travels_when_the_buffer_is_full(origin, carpool):
    o, c = origin(length), carpool(request={"replay_buffer": "4KiB"}, listen={"body_min_rate": "1GiB", "body_grace": "60s"})
    with c.client() as client:
        client.send(put(o, MIB) + bytes(4095))
        with c.client() as other:
            assert other.get(o.url + "/other").status == 200
        assert o.targets() == ["/other"]
        client.send(bytes(1))
        until(lambda: o.targets() == ["/other", "/up"], what="its head at the origin")
        client.send(bytes(MIB - 4096))
        assert client.response().body == b"%d" % MIB


def test_a_large_body_that_streams_does_not_wait_for_the_buffer(origin, carpool):
    o, c = origin(length), carpool()
    with c.client() as client:
        client.send(put(o, MIB) + bytes(1000))
        until(lambda: o.targets() == ["/up"], what="its head at the origin")
        client.send(bytes(MIB - 1000))
        assert client.response().body == b"%d" % MIB


def test_an_early_answer_still_comes_before_the_end_of_a_large_body(origin, carpool):
    def refuse(exchange):
        exchange.reply(413, b"no")
        return False
    o, c = origin(refuse), carpool()
    with c.client() as client:
        client.send(put(o, MIB) + bytes(1000))
        response = client.response()
        assert (response.status, response.keeps_alive()) == (413, False)


def test_a_chunked_body_does_not_wait(origin, carpool):
    o, c = origin(length), carpool()
    with c.client() as client:
        client.send(b"PUT %s/up HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n" % o.url.encode())
        until(lambda: o.targets() == ["/up"], what="its head at the origin")
        client.send(b"0\r\n\r\n")
        assert client.response().body == b"1"


def test_a_client_that_expects_100_is_told_by_its_origin(origin, carpool):
    def agree(exchange):
        exchange.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        length(exchange)
    o, c = origin(agree), carpool()
    with c.client() as client:
        client.send(put(o, 5, b"Expect: 100-continue\r\n"))
        assert client.head().status == 100
        client.send(b"12345")
        assert client.response().body == b"5"


def test_a_stream_of_http_2_does_not_wait(origin, carpool):
    o, c = origin(length), carpool()
    with H2Client(c.address) as client:
        stream = client.ask("/up", "PUT", o.authority, [("content-length", "5")], end=False)
        until(lambda: o.targets() == ["/up"], what="its head at the origin")
        client.send(stream, b"12345", end=True)
        assert client.response(stream).body == b"5"


@pytest.mark.parametrize("size", [4096, MIB])
def test_a_body_that_is_too_slow_is_408(origin, carpool, size):
    o, c = origin(length), carpool(listen={"body_min_rate": "1KiB", "body_grace": "300ms"})
    with c.client() as client:
        client.send(put(o, size) + bytes(10))
        response = client.response()
        assert response.status == 408 and "body_min_rate" in response.get("proxy-status")
        assert client.at_end()
    assert slow_bodies(c) == 1 and o.opened == 0


def test_a_body_that_turns_slow_gives_its_connection_back(origin, carpool):
    o, c = origin(length), carpool(listen={"body_min_rate": "1MiB", "body_grace": "300ms"})
    with c.client() as client:
        client.send(put(o, 10 * MIB) + bytes(64 * 1024))
        until(lambda: o.targets() == ["/up"], what="its head at the origin")
        assert client.response().status == 408
    until(lambda: c.metric("carpool_pool_connections") == 0, what="the end of its connection")
    assert slow_bodies(c) == 1


def test_a_body_of_an_origin_of_http_2_is_no_faster_for_it(carpool):
    o = H2Origin()
    c = carpool(listen={"body_min_rate": "1MiB", "body_grace": "300ms"}, origin=[{"uri": o.url, "upstream": {"protocols": ["h2"]}}])
    with c.client() as client:
        client.send(put(o, 10 * MIB) + bytes(64 * 1024))
        assert client.response().status == 408
    assert slow_bodies(c) == 1
    o.stop()


def test_time_in_which_the_origin_does_not_read_does_not_count(origin, carpool, gate):
    def late(exchange):
        gate.enter()
        length(exchange)
    o, c = origin(late), carpool(listen={"body_min_rate": "100KiB", "body_grace": "300ms"})
    with c.client() as client:
        threading.Thread(target=client.send, args=(put(o, 30 * MIB) + bytes(30 * MIB),), daemon=True).start()
        gate.wait_for(1)
        for _ in range(3):  # the program's own clock: bodies that are too slow
            with c.client() as slow:
                slow.send(put(o, 100) + b"x")
                assert slow.response().status == 408
        gate.open()
        assert client.response().body == b"%d" % (30 * MIB)


def test_a_stream_may_be_as_slow_as_it_likes(origin, carpool):
    o, c = origin(length), carpool(listen={"body_min_rate": "1MiB", "body_grace": "100ms"})
    with c.client() as client:
        client.send(b"PUT %s/up HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n" % o.url.encode())
        until(lambda: o.targets() == ["/up"], what="its head at the origin")
        with c.client() as slow:
            slow.send(put(o, 100) + b"x")
            assert slow.response().status == 408
        client.send(b"0\r\n\r\n")
        assert client.response().body == b"1"


def fill(client, stream):
    """Sends as much of a body as the windows allow, now and after what carpool has read of it."""
    client.until(lambda: client.settings)
    sent = 0
    while size := min(client.h2.local_flow_control_window(stream), 16384, MIB - sent):
        client.h2.send_data(stream, bytes(size))
        client.flush()
        sent += size
        if client.h2.local_flow_control_window(stream) == 0:
            client.ping()
    return sent


def test_uploads_that_wait_for_a_connection_do_not_block_the_one_that_has_it(origin, carpool):
    o, c = origin(length), carpool(workers=1, pool={"size": 1, "wait_timeout": "60s"})
    with H2Client(c.address) as client:
        first, *others = [client.ask("/%d" % n, "PUT", o.authority, end=False) for n in range(12)]
        until(lambda: o.targets() == ["/0"], what="its head at the origin")
        sent = [fill(client, stream) for stream in others]
        client.send(first, bytes(MIB), end=True)
        assert client.response(first).body == b"%d" % MIB
        for stream, size in zip(others, sent):
            client.send(stream, bytes(MIB - size), end=True)
            assert client.response(stream).body == b"%d" % MIB


def test_uploads_that_an_origin_does_not_read_do_not_block_those_to_others(origin, carpool):
    shut = RawOrigin(lambda peer, stream: None, settings=b"\0\4\0\0\0\0", generous=False)  # a window of zero
    o, c = origin(length), carpool(origin=[{"uri": shut.url, "upstream": {"protocols": ["h2"]}}])
    with H2Client(c.address) as client:
        for stream in [client.ask("/", "PUT", shut.authority, end=False) for _ in range(12)]:
            fill(client, stream)
        until(lambda: len(shut.asked) == 12, what="their heads at the origin")
        up = client.ask("/up", "PUT", o.authority, end=False)
        client.send(up, bytes(MIB), end=True)
        assert client.response(up).body == b"%d" % MIB
    shut.stop()
