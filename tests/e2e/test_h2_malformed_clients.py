"""HTTP/2 clients that use every corner of the protocol, and some that violate it: valid input is served, a violation
costs the client its stream or its connection, and an origin never sees an incomplete message."""
import socket
import struct
import threading

import pytest
from harness.acceptor import Acceptor
from harness.h2_client import (CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PING, PRIORITY, RST, SETTINGS, WINDOW,
                               block, frame, headers, request)
from harness.h2_raw import PADDED, RawClient
from harness.origin import Gate, hello
from harness.ports import tcp_server
from harness.wait import until

PROTOCOL_ERROR, FLOW_CONTROL, CANCEL, CONNECT_ERROR = 1, 3, 8, 10
INITIAL_WINDOW, TABLE_SIZE = 4, 1
BIG = 200_000


def setting(code, value):
    return struct.pack(">HI", code, value)


def number(value):
    return value.to_bytes(4, "big")


def place(origin):
    return origin.authority.encode()


def echo(exchange):
    exchange.reply(body=exchange.read_body())


@pytest.fixture
def client(carpool):
    c = carpool(request={"idle_timeout": "5s"})
    with RawClient(c.address) as one:
        one.c = c
        yield one


def still_serves(client, o, stream=99):
    client.send(headers(stream, request(place(o), b"/after")))
    return client.over(stream) and client.status(stream) == 200


def test_padding_is_no_body_and_its_room_is_given_back(client, origin):
    o = origin(echo)
    client.send(frame(HEADERS, END_HEADERS | PADDED, 1, b"\x40" + request(place(o), method=b"POST") + bytes(0x40)))
    sent, window = 0, 65535
    client.until(lambda: client.acks)  # from here on it is carpool's output
    while sent < 3000:  # bytes of body, and 771 KB on the wire: more than any window
        client.send(frame(DATA, PADDED, 1, b"\xff" + b"x" + bytes(255)))
        sent, window = sent + 1, window - 257
        if window < 1000:
            had = client.windows[1]
            assert client.until(lambda: client.windows[1] > had)
            window += client.windows[1] - had
    client.send(frame(DATA, END_STREAM, 1))
    assert client.over(1) and client.data[1] == b"x" * 3000


def test_what_is_sent_on_streams_that_are_over_takes_no_room_from_the_others(client, origin):
    o = origin(echo)
    for stream in range(1, 81, 2):  # 40 uploads to an unknown origin, 1.2 MB: more than the connection's window
        client.send(headers(stream, request(b"127.0.0.1:1", method=b"POST"), end=False),
                    frame(DATA, 0, stream, bytes(15000)), frame(DATA, 0, stream, bytes(15000)))
        client.over(stream)
        if stream % 4 == 1:
            client.send(frame(RST, 0, stream, number(CANCEL)))
    assert client.until(lambda: client.windows[0] >= 600_000), "the connection's window was not given back"
    assert not client.goaways and still_serves(client, o)


def test_a_window_may_shrink_below_nothing_and_opens_again(carpool, origin):
    o = origin(lambda exchange: exchange.reply(body=bytes(range(250)) * (BIG // 250)))
    with RawClient(carpool().address, generous=False) as client:
        client.send(headers(1, request(place(o))))
        assert client.until(lambda: len(client.data[1]) >= 40_000)
        client.send(frame(SETTINGS, 0, 0, setting(INITIAL_WINDOW, 0)), frame(WINDOW, 0, 0, number(BIG)))
        assert client.until(lambda: client.acks == 2)  # that of the first SETTINGS, and this one's
        here = len(client.data[1])
        assert here <= 65535
        client.send(frame(WINDOW, 0, 1, number(here - 1)), frame(PING, 0, 0, b"12345678"))
        assert client.until(lambda: client.frames[-1][0] == PING)
        assert len(client.data[1]) == here, "the window is still one byte below nothing"
        client.send(frame(WINDOW, 0, 1, number(BIG)))
        assert client.over(1) and client.data[1] == bytes(range(250)) * (BIG // 250)


def test_priorities_unknown_frames_and_pieces_of_a_head_change_nothing(client, origin):
    o = origin(echo)
    head = request(place(o), b"/pieces", b"POST", [(b"x-long", b"v" * 20_000)])
    cut = [head[:1], head[1:2], b"", head[2:9000], head[9000:]]
    client.send(frame(PRIORITY, 0, 7, number(3) + b"\x10"), frame(0xfa, 0xff, 0, b"who knows"),
                frame(HEADERS, 0x20, 1, number(0x80000000 | 7) + b"\xff" + cut[0]),
                *[frame(CONTINUATION, 0, 1, piece) for piece in cut[1:-1]], frame(CONTINUATION, END_HEADERS, 1, cut[-1]),
                frame(0x10, 0, 0, number(1) + b"u=7"), frame(DATA, 0, 1, b"ab"), frame(0xfb, 0, 1, b"between"),
                frame(PRIORITY, 0, 1, number(5) + b"\x01"), frame(DATA, 0, 1), frame(DATA, END_STREAM, 1, b"c"))
    assert client.over(1) and client.data[1] == b"abc"
    assert o.seen[-1].message.get("x-long") == "v" * 20_000


@pytest.mark.parametrize("lasts", [[0], [1], [2], [0x7fffffff], [0x7fffffff, 0], [0, 0x7fffffff]])
def test_a_client_that_announces_its_end_gets_the_response_that_it_waits_for(client, origin, gate, lasts):
    def held(exchange):
        gate.enter()
        exchange.reply(body=b"late")
    o = origin(held)
    client.send(headers(1, request(place(o))), *[frame(GOAWAY, 0, 0, number(last) + number(0)) for last in lasts], frame(PING, 0, 0, b"12345678"))
    assert client.until(lambda: (PING, 1, 0) in client.frames)
    gate.open()
    assert client.over(1) and client.data[1] == b"late" and not client.goaways
    assert not client.until(lambda: client.goaways) and client.closed, "nothing more is to come"


def test_the_table_of_compression_may_become_nothing_between_two_requests(client, origin):
    o = origin(lambda exchange: exchange.reply(headers=[("x-same", "again")]))
    for stream, size in (1, 4096), (3, 0), (5, 0), (7, 4096), (9, 100):
        client.decoder.max_allowed_table_size = max(size, 4096)  # the first value may still be in use
        client.send(frame(SETTINGS, 0, 0, setting(TABLE_SIZE, size)), headers(stream, request(place(o))))
        assert client.over(stream) and dict(client.heads[stream][0])["x-same"] == "again"


@pytest.mark.parametrize("rest", [
    headers(1, block([(b":path", b"/other")])),
    headers(1, block([(b"x-ok", b"1"), (b":status", b"200")])),
    headers(1, block([(b"x-ok", b"1")]), end=False),
    headers(1, block([(b"Upper", b"1")])),
    headers(1, block([(b"connection", b"close")])),
    frame(DATA, END_STREAM, 1, b"more than five"),
    frame(DATA, END_STREAM, 1, b"few"),
    frame(DATA, 0, 1, b"five!") + frame(DATA, END_STREAM, 1, b"!"),
], ids=["path-in-trailers", "status-in-trailers", "trailers-without-end", "upper-case-trailer", "connection-trailer", "too-long",
        "too-short", "one-too-long"])
def test_a_body_that_breaks_a_rule_is_no_message_to_the_origin(client, origin, rest):
    whole = []

    def handler(exchange):
        exchange.read_body()
        whole.append(exchange)
        exchange.reply()
    o = origin(handler)
    client.send(headers(1, request(place(o), method=b"POST", more=[(b"content-length", b"5")]), end=False),
                frame(DATA, 0, 1, b"five!") if rest[3] == HEADERS else b"", rest)
    assert not client.over(1) and client.resets[1] == PROTOCOL_ERROR
    assert still_serves(client, o)
    assert [x.request.target for x in whole] == ["/after"]


@pytest.mark.parametrize("more", [
    [(b"content-length", b"5")], [(b"content-length", b"0"), (b"content-length", b"1")], [(b"content-length", b"-1")],
    [(b"te", b"gzip")], [(b"keep-alive", b"1")], [(b"x", b"a\nb")], [(b"x", b" a")], [(b":path", b"/x")], [(b"", b"x")],
], ids=["length-and-no-body", "two-lengths", "negative-length", "te", "keep-alive", "line-feed", "white-space", "pseudo-behind",
        "no-name"])
def test_a_head_that_breaks_a_rule_ends_its_stream_alone(client, origin, more):
    o = origin(hello)
    client.send(headers(1, request(place(o), more=more)))
    assert not client.over(1) and client.resets[1] == PROTOCOL_ERROR
    assert still_serves(client, o) and o.targets() == ["/after"]


def logged(client, code):
    until(lambda: client.c.access_log(), what="the request's line")
    row, = client.c.access_log()
    assert row["status"] == code and client.c.metric("carpool_requests_total", code=str(code)) == 1
    return row


@pytest.mark.parametrize("rest,rule", [
    (frame(DATA, 0, 1, b"five!") + headers(1, block([(b"Upper", b"1")])), "a field name that is not a token in lower case"),
    (frame(DATA, END_STREAM, 1, b"few"), "the content is shorter than Content-Length"),
    (frame(WINDOW, 0, 1, number(0x7fffffff)), "FLOW_CONTROL_ERROR"),
    (frame(PING, 0, 1, bytes(8)), "PROTOCOL_ERROR (PING: stream_id != 0)"),
], ids=["trailers", "length", "window", "connection"])
def test_the_log_names_the_rule_that_a_client_broke_in_the_midst_of_its_request(client, origin, rest, rule):
    began = threading.Event()
    o = origin(lambda exchange: began.set() or exchange.read_body())
    client.send(headers(1, request(place(o), b"/up", method=b"POST", more=[(b"content-length", b"5")]), end=False))
    assert began.wait(10)
    client.send(rest)
    row = logged(client, 400)
    assert (row["target"], row["fault"]) == ("/up", "the client violated HTTP/2: " + rule)


@pytest.mark.parametrize("rest,rule", [
    (lambda place: headers(1, request(place, more=[(b"te", b"gzip")])), "TE with a value other than trailers"),
    (lambda place: headers(1, request(place, method=b"POST", more=[(b"content-length", b"5")]), end=False) +
     frame(DATA, END_STREAM, 1, b"few"), "the content is shorter than Content-Length"),
], ids=["head", "body-in-the-same-read"])
def test_a_request_that_never_began_is_logged_with_the_rule_that_its_client_broke(client, origin, rest, rule):
    o = origin(hello)
    client.send(rest(place(o)))
    assert logged(client, 400)["fault"] == "the client violated HTTP/2: " + rule and not o.targets()


def test_a_request_that_its_client_resets_is_no_violation(client, origin):
    began = threading.Event()
    o = origin(lambda exchange: began.set() or exchange.read_body())
    client.send(headers(1, request(place(o), method=b"POST"), end=False))
    assert began.wait(10)
    client.send(frame(RST, 0, 1, number(PROTOCOL_ERROR)))
    assert logged(client, 499)["fault"] == "the client closed its connection"


def test_a_trace_that_ends_here_reflects_its_authority_as_host(client, origin):
    o = origin(hello)
    client.send(headers(1, request(place(o), b"/t", method=b"TRACE", more=[(b"max-forwards", b"0"), (b"cookie", b"secret")])))
    assert client.over(1) and client.data[1] == b"TRACE /t HTTP/2.0\r\nHost: " + place(o) + b"\r\nmax-forwards: 0\r\n\r\n"


def test_a_method_that_is_too_long_is_501(client, origin):
    o = origin(hello)
    client.send(headers(1, request(place(o), method=b"M" * 65)))
    assert client.over(1) and client.status(1) == 501 and not o.targets()
    assert b"the method is longer than 64 bytes" in client.data[1]


def test_an_answer_in_the_midst_of_an_upload_is_whole_and_the_rest_is_not_wanted(client, origin):
    o = origin(lambda exchange: exchange.reply(413, b"too much") or False if exchange.request.method == "POST" else hello(exchange))
    client.send(headers(1, request(place(o), method=b"POST"), end=False), frame(DATA, 0, 1, bytes(10_000)))
    assert client.over(1) and client.status(1) == 413 and client.data[1] == b"too much"
    assert client.until(lambda: 1 in client.resets) and client.resets[1] == 0
    client.send(frame(DATA, END_STREAM, 1, bytes(5000)))  # crossed the reset
    assert still_serves(client, o) and not client.goaways


@pytest.mark.parametrize("reply,status,fields", [
    (b"HTTP/1.1 204 No Content\r\n\r\n", 204, {}),
    (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 77\r\nETag: \"x\"\r\n\r\n", 304, {"etag": '"x"'}),
    (b"HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n", 205, {}),
    (b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", 204, {}),
])
def test_answers_without_a_body_end_with_their_head(client, origin, reply, status, fields):
    o = origin(lambda exchange: exchange.send(reply) if exchange.request.target == "/" else exchange.reply())
    client.send(headers(1, request(place(o))))
    assert client.over(1) and client.status(1) == status and not client.data[1]
    assert fields.items() <= dict(client.heads[1][-1]).items()
    assert DATA not in [kind for kind, _, stream in client.frames if stream == 1]
    assert still_serves(client, o)


def test_head_keeps_the_length_and_has_no_body(client, origin):
    o = origin(lambda exchange: exchange.reply(body=b"x" * 1234))
    client.send(headers(1, request(place(o), method=b"HEAD")))
    assert client.over(1) and dict(client.heads[1][0])["content-length"] == "1234" and not client.data[1]
    assert still_serves(client, o)


@pytest.mark.parametrize("reply", [
    b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\nzz\r\n",
], ids=["length", "chunks", "broken-chunk"])
def test_an_answer_that_breaks_off_resets_its_stream_and_no_other(client, origin, reply):
    o = origin(lambda exchange: exchange.send(reply) and None or False if exchange.request.target == "/" else exchange.reply())
    client.send(headers(1, request(place(o))))
    assert not client.over(1) and client.resets[1] != 0
    assert still_serves(client, o)


def test_a_request_that_is_reset_before_its_end_frees_what_it_held(client, origin):
    gate = Gate()

    def handler(exchange):
        gate.enter()
        exchange.read_body()
        exchange.reply()
    o = origin(handler)
    for stream in range(1, 21, 2):
        client.send(headers(stream, request(place(o), method=b"POST"), end=False), frame(DATA, 0, stream, b"some"))
    gate.wait_for(10)
    client.send(*[frame(RST, 0, stream, number(CANCEL)) for stream in range(1, 21, 2)])
    until(lambda: client.c.metric("carpool_pool_connections", state="borrowed") == 0, what="every connection given back")
    gate.open()
    assert still_serves(client, o)


# ---- CONNECT, plain and extended ----

@pytest.fixture
def peer():
    """A listener of a tunnel's other end: peer(talk) -> its authority."""
    acceptors = []

    def start(talk):
        server = tcp_server()

        def take(sock):
            sock.settimeout(20)
            threading.Thread(target=talk, args=(sock,), daemon=True).start()
        acceptors.append(Acceptor(server, take))
        return b"127.0.0.1:%d" % server.getsockname()[1]
    yield start
    for acceptor in acceptors:
        acceptor.stop()


def connect(authority, more=()):
    return block([(b":method", b"CONNECT"), (b":authority", authority), *more])


def test_a_tunnel_whose_peer_is_cut_off_is_reset_and_one_that_ended_is_not(client, peer):
    def cut(sock):
        sock.sendall(b"some")
        sock.recv(1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()

    def end(sock):
        sock.sendall(b"all")
        sock.shutdown(socket.SHUT_WR)
        sock.recv(1)
        sock.close()
    client.send(headers(1, connect(peer(cut)), end=False), headers(3, connect(peer(end)), end=False))
    assert client.until(lambda: client.data[1] == b"some")
    client.send(frame(DATA, 0, 1, b"x"))
    assert not client.over(1) and client.resets[1] in (CONNECT_ERROR, CANCEL)
    assert client.over(3) and client.data[3] == b"all" and 3 not in client.resets
    client.send(frame(DATA, END_STREAM, 3, b"y"))
    until(lambda: client.c.metric("carpool_pool_connections", state="tunnel") == 0, what="the tunnels' end")


def test_a_tunnel_that_its_client_resets_ends_at_the_peer(client, peer):
    seen = []

    def talk(sock):
        sock.sendall(b"hello")
        try:
            while data := sock.recv(100):
                seen.append(data)
            seen.append("end")
        except ConnectionError:
            seen.append("reset")
    client.send(headers(1, connect(peer(talk)), end=False))
    assert client.until(lambda: client.data[1] == b"hello")
    client.send(frame(RST, 0, 1, number(CANCEL)))
    until(lambda: seen, what="the peer's end")
    until(lambda: client.c.metric("carpool_pool_connections") == 0, what="the slot given back")


@pytest.mark.parametrize("fields", [
    [(b":method", b"CONNECT"), (b":authority", b"a.test:80"), (b":path", b"/")],
    [(b":method", b"CONNECT"), (b":authority", b"a.test:80"), (b":scheme", b"http")],
    [(b":method", b"CONNECT"), (b":path", b"/"), (b":scheme", b"http")],
    [(b":method", b"CONNECT"), (b":authority", b"a.test:80"), (b"content-length", b"5")],
    [(b":method", b"GET"), (b":authority", b"a.test"), (b":path", b"/"), (b":scheme", b"http"), (b":protocol", b"websocket")],
    [(b":method", b"CONNECT"), (b":authority", b"a.test"), (b":path", b"/"), (b":protocol", b"websocket")],
    [(b":method", b"CONNECT"), (b":authority", b"a.test"), (b":scheme", b"http"), (b":protocol", b"websocket")],
    [(b":method", b"CONNECT"), (b":path", b"/"), (b":scheme", b"http"), (b":protocol", b"websocket")],
], ids=["path", "scheme", "no-authority", "length", "protocol-of-get", "no-scheme", "no-path", "nowhere"])
def test_a_malformed_connect_ends_its_stream_alone(client, origin, fields):
    o = origin(hello)
    client.send(headers(1, block(fields), end=False))
    assert not client.over(1) and client.resets[1] == PROTOCOL_ERROR
    assert still_serves(client, o)


@pytest.mark.parametrize("status,reply", [
    (502, b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage"),
    (502, b"HTTP/1.1 204 No Content\r\n\r\n"),
    (403, b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno"),
    (426, b"HTTP/1.1 426 Upgrade Required\r\nUpgrade: other\r\nConnection: Upgrade\r\nContent-Length: 0\r\n\r\n"),
])
def test_an_origin_that_does_not_switch_opens_no_tunnel(client, origin, status, reply):
    o = origin(lambda exchange: exchange.send(reply) if exchange.request.target == "/chat" else exchange.reply())
    client.send(headers(1, block([(b":method", b"CONNECT"), (b":scheme", b"http"), (b":authority", place(o)), (b":path", b"/chat"),
                                  (b":protocol", b"websocket"), (b"sec-websocket-version", b"13")]), end=False))
    assert client.over(1) and client.status(1) == status
    assert still_serves(client, o)
