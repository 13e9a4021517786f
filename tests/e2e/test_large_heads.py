"""Heads of more than 64 KiB, up to carpool's limit, reach peers of both protocols; none leaves its receiver waiting."""
import pytest
from harness.h2_client import block, frame, headers, request
from harness.h2_origin import H2Origin
from harness.h2_raw import RawClient, RawOrigin
from harness.origin import Gate

CONTINUATION = 9
MORE = 16_000  # bytes of a header block in one frame
LARGE = {
    "one-field": [("x-0", "v" * 100_000)],
    "three-fields": [("x-%d" % i, "v" * 30_000) for i in range(3)],
    "many-fields": [("x-%d" % i, "v" * 180) for i in range(350)],
}


def lines(fields):
    return "".join("%s: %s\r\n" % field for field in fields).encode()


def of(fields):
    return [(n, v) for n, v in fields if n.startswith("x-")]


def read_to_end(client, stream):
    """Also reads the CONTINUATION frames behind HEADERS that end the stream."""
    return client.over(stream) and client.until(lambda: stream not in client.blocks)


@pytest.mark.parametrize("fields", LARGE.values(), ids=LARGE)
def test_a_large_head_and_large_trailers_of_a_response_reach_clients_of_both_protocols(origin, carpool, fields):
    replies = {
        "/head": b"HTTP/1.1 200 OK\r\n" + lines(fields) + b"Content-Length: 2\r\n\r\nok",
        "/interim": b"HTTP/1.1 103 Early Hints\r\n" + lines(fields) + b"\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        "/trailers": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n" + lines(fields) + b"\r\n",
    }
    o, c = origin(lambda exchange: exchange.send(replies[exchange.request.target])), carpool()
    for number, target in enumerate(replies):
        with c.client() as client:
            response = client.request("GET", o.url + target, [("TE", "trailers"), ("Connection", "TE")])
            assert (response.status, response.body) == (200, b"ok"), target
            assert of([*response.headers, *response.trailers, *(f for i in response.interim for f in i.headers)]) == fields, target
    with RawClient(c.address) as client:
        for number, target in enumerate(replies):
            stream = 2 * number + 1
            client.send(headers(stream, request(o.authority.encode(), target.encode(), more=[(b"te", b"trailers")])))
            assert read_to_end(client, stream) and (client.status(stream), client.data[stream]) == (200, b"ok"), target
            assert of([f for head in client.heads[stream] for f in head]) == fields, target


def in_frames(stream, head, size):
    """A header block that ends its stream, with so many bytes in each frame."""
    return frame(1, 1, stream, head[:size]) + b"".join(
        frame(CONTINUATION, 4 if at + size >= len(head) else 0, stream, head[at:at + size]) for at in range(size, len(head), size))


@pytest.mark.parametrize("size", [MORE, 3000])
def test_a_large_head_passes_from_an_http2_origin_to_an_http2_client(carpool, size):
    fields = LARGE["three-fields"]

    def script(peer, stream):
        head = block([(b":status", b"200"), *((n.encode(), v.encode()) for n, v in fields)])
        peer.send(in_frames(stream, head, size))
    o = RawOrigin(script)
    c = carpool(upstream={"protocols": ["h2"]})
    with RawClient(c.address) as client:
        client.send(headers(1, request(o.authority.encode())))
        assert read_to_end(client, 1) and of(client.heads[1][0]) == fields
    o.stop()


def test_a_head_in_many_frames_is_judged_by_its_size_alone(origin, carpool):
    o, c = origin(), carpool()
    small = request(o.authority.encode(), more=[(b"x-a", b"v" * 600)])
    large = request(o.authority.encode(), more=[(b"x-%d" % i, b"v" * 60_000) for i in range(3)])
    with RawClient(c.address) as client:
        client.send(in_frames(1, small, 20), in_frames(3, large, MORE))
        assert client.over(1) and client.status(1) == 200
        assert client.over(3) and client.status(3) == 431
        assert client.goaways == []
    assert len(o.seen) == 1


@pytest.mark.parametrize("count,size", [(1, 60_000), (90, 690), (1, 150_000)])
def test_the_largest_head_of_a_request_reaches_an_http2_origin(carpool, count, size):
    o = RawOrigin(lambda peer, stream: peer.send(headers(stream, block([(b":status", b"200")]))))
    c = carpool(upstream={"protocols": ["h2"]}, **({"listen": {"max_header_bytes": "256KiB"}} if size > 65536 else {}))
    fields = [("x-%d" % i, "v" * size) for i in range(count)]
    with c.client() as client:
        assert client.get(o.url + "/", *fields).status == 200
    assert of(o.asked[0][2].items()) == fields
    o.stop()


@pytest.mark.parametrize("workers", [1, 2])
def test_a_head_beyond_the_limit_of_its_http2_origin_harms_no_other_request(carpool, workers):
    """The library of the origin announces 64 KiB, and ends the connection because of a larger head."""
    gate = Gate()

    def held(stream):
        gate.enter()
        stream.reply(body=stream.pseudo[":path"].encode())
    o = H2Origin(held)
    c = carpool(workers=workers, upstream={"protocols": ["h2"]}, pool={"size": 1}, listen={"max_header_bytes": "256KiB"})
    with c.client() as waits:
        waits.ask("GET", o.url + "/waits")
        gate.wait_for(1)
        for _ in range(2):
            with c.client() as asks:
                told = asks.request("POST", o.url + "/large", headers=[("X-Large", "x" * 70_000)], body=b"body")
                assert told.status == 431 and "SETTINGS_MAX_HEADER_LIST_SIZE" in told.get("proxy-status")
        gate.open()
        assert waits.response().body == b"/waits"
        assert waits.get(o.url + "/fits", ("X-Large", "x" * 60_000)).status == 200
    o.stop()
    assert o.opened == 1 and [s.pseudo[":path"] for s in o.seen] == ["/waits", "/fits"]
    assert c.metric("carpool_pool_failures_total") == 0
