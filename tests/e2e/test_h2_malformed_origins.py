"""HTTP/2 origins that use every corner of the protocol, and some that violate it: no incomplete response looks
complete, no request is sent twice without a proof, and one stream's failure affects no other."""
import struct
import threading
import time

import pytest
from harness.h2_client import (CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PING, PRIORITY, PUSH, RST, SETTINGS, H2Client,
                               WINDOW, block, frame, headers)
from harness.h2_client import request as head_of
from harness.h2_raw import PADDED, RawClient, RawOrigin
from harness.wait import until
from harness.wire import Gone

PRIOR = {"protocols": ["h2"]}
NO_ERROR, INTERNAL, REFUSED, CANCEL, CALM = 0, 2, 7, 8, 11
MAX_STREAMS, INITIAL_WINDOW, MAX_FRAME, TABLE_SIZE = 3, 4, 5, 1


def setting(code, value):
    return struct.pack(">HI", code, value)


def number(value):
    return value.to_bytes(4, "big")


def status(code, *more):
    return block([(b":status", code), *more])


def reply(stream, body=b"ok"):
    return headers(stream, status(b"200"), end=False) + frame(DATA, END_STREAM, stream, body)


def goaway(last, code=NO_ERROR):
    return frame(GOAWAY, 0, 0, number(last) + number(code))


# One loop; and two that share one session, so that the streams of one come by mail.
@pytest.fixture(params=[{"workers": 1}, {"workers": 2, "pool": {"size": 1}}], ids=["one-loop", "two-loops"])
def odd(request, carpool):
    """odd(what(peer, stream, path)) -> (carpool, origin): what() responds, and None means an ordinary response."""
    started = []

    def start(what, settings=b"", generous=True):
        def script(peer, stream):
            path = dict(peer.heads[stream][0])[":path"]
            said = what(peer, stream, path) if path != "/plain" else None
            peer.send(reply(stream) if said is None else said)
        o = RawOrigin(script, settings, generous)
        started.append(o)
        return carpool(upstream=PRIOR, **request.param), o
    yield start
    for o in started:
        o.stop()


def whole(client, o, path="/odd", method="GET", **more):
    """Returns the response, or None if the client can tell that it is incomplete."""
    try:
        response = client.request(method, o.url + path, **more)
    except Gone:
        return None
    return response if response.complete else None


def final(client, o, **more):
    """Returns the final response, after those of 1xx."""
    response = whole(client, o, **more)
    while response is not None and response.status < 200:
        response = client.response(more.get("method", "GET"))
    return response


def paths(o):
    return [fields[":path"] for _, _, fields in o.asked]


BROKEN_HEADS = {
    "interim-that-ends": headers(1, status(b"103"), end=True),
    "switching": headers(1, status(b"101"), end=False),
    "no-status": headers(1, block([(b"x", b"1")])),
    "two-statuses": headers(1, status(b"200", (b":status", b"200"))),
    "status-behind": headers(1, block([(b"x", b"1"), (b":status", b"200")])),
    "odd-status": headers(1, status(b"2000")),
    "request-field": headers(1, status(b"200", (b":path", b"/"))),
    "upper-case": headers(1, status(b"200", (b"X-Up", b"1"))),
    "line-feed": headers(1, status(b"200", (b"x", b"a\r\nset-cookie: b"))),
    "connection": headers(1, status(b"200", (b"connection", b"close"))),
    "transfer-encoding": headers(1, status(b"200", (b"transfer-encoding", b"chunked"))),
    "length-and-no-body": headers(1, status(b"200", (b"content-length", b"5"))),
    "two-lengths": headers(1, status(b"200", (b"content-length", b"5"), (b"content-length", b"6")), end=False),
    "body-first": frame(DATA, END_STREAM, 1, b"body"),
    "window-of-nothing": frame(WINDOW, 0, 1, number(0)),
    "reset-no-error": frame(RST, 0, 1, number(NO_ERROR)),
    "reset-cancel": frame(RST, 0, 1, number(CANCEL)),
    "push": frame(PUSH, END_HEADERS, 1, number(2) + head_of(b"a.test")),
    "body-of-the-connection": frame(DATA, 0, 0, b"x"),
    "continuation-alone": frame(CONTINUATION, END_HEADERS, 1, status(b"200")),
    "broken-compression": frame(HEADERS, END_HEADERS | END_STREAM, 1, b"\xff\xff\xff\xff\xff\xff"),
    "frame-too-large": frame(DATA, END_STREAM, 1, bytes(16385)),
    "interim-then-end": headers(1, status(b"103"), end=False) + frame(DATA, END_STREAM, 1),
    "interim-then-body": headers(1, status(b"103"), end=False) + frame(DATA, END_STREAM, 1, b"HTTP/1.1 200 OK\r\n\r\n"),
    "interim-then-body-then-head": headers(1, status(b"103"), end=False) + frame(DATA, 0, 1, b"HTTP/1.1 200 OK\r\n\r\n")
    + headers(1, status(b"200")),
    "interim-then-padding": headers(1, status(b"103"), end=False) + frame(DATA, PADDED | END_STREAM, 1, b"\x03" + bytes(3)),
    "interim-then-trailers": headers(1, status(b"103"), end=False) + headers(1, block([(b"x", b"1")])),
}


@pytest.mark.parametrize("said", BROKEN_HEADS.values(), ids=BROKEN_HEADS)
def test_an_answer_that_is_none_is_502_and_its_request_is_not_sent_again(odd, said):
    c, o = odd(lambda peer, stream, path: said)
    with c.client() as client:
        response = final(client, o, method="POST", body=b"once")
        assert response.status == 502 and response.get("proxy-status").startswith("carpool")
        assert whole(client, o, "/plain").body == b"ok"
    assert paths(o) == ["/odd", "/plain"]
    until(lambda: c.metric("carpool_pool_connections", state="borrowed") == 0, what="every stream given back")


@pytest.mark.parametrize("code, method", [(b"200", "GET"), (b"204", "GET"), (b"200", "HEAD")], ids=["length-0", "204", "head"])
def test_a_stream_without_a_body_ends_with_its_trailers(odd, code, method):
    length = [(b"content-length", b"0")] if code == b"200" else []

    def what(peer, stream, path):
        peer.send(headers(stream, status(code, *length), end=False))
        threading.Timer(0.1, lambda: peer.send(headers(stream, block([(b"grpc-status", b"0")])))).start()
        return b""
    c, o = odd(what)
    with H2Client(c.address) as h2:
        response = h2.response(h2.ask(method=method, authority=o.authority))
        assert response.status == int(code) and response.body == b""
        assert dict(response.trailers) == {"grpc-status": "0"}
    until(lambda: len(c.access_log()) == 1, what="its line")
    assert "fault" not in c.access_log()[0], "the client did not leave"


BROKEN_BODIES = {
    "pseudo-in-trailers": headers(1, status(b"200"), end=False) + frame(DATA, 0, 1, b"abc") + headers(1, status(b"200")),
    "trailers-without-end": headers(1, status(b"200"), end=False) + headers(1, block([(b"x", b"1")]), end=False),
    "connection-in-trailers": headers(1, status(b"200"), end=False) + headers(1, block([(b"connection", b"close")])),
    "too-long": headers(1, status(b"200", (b"content-length", b"3")), end=False) + frame(DATA, END_STREAM, 1, b"abcd"),
    "too-short": headers(1, status(b"200", (b"content-length", b"5")), end=False) + frame(DATA, END_STREAM, 1, b"abcd"),
    "short-by-trailers": headers(1, status(b"200", (b"content-length", b"5")), end=False) + frame(DATA, 0, 1, b"abcd")
    + headers(1, block([(b"x", b"1")])),
    "reset": headers(1, status(b"200"), end=False) + frame(DATA, 0, 1, b"abc") + frame(RST, 0, 1, number(NO_ERROR)),
    "refused-too-late": headers(1, status(b"200"), end=False) + frame(DATA, 0, 1, b"abc") + frame(RST, 0, 1, number(REFUSED)),
    "goaway-too-late": headers(1, status(b"200"), end=False) + frame(DATA, 0, 1, b"abc") + goaway(0),
    "head-twice": headers(1, status(b"200"), end=False) + headers(1, status(b"200"), end=False) + frame(DATA, END_STREAM, 1),
}


@pytest.mark.parametrize("said", BROKEN_BODIES.values(), ids=BROKEN_BODIES)
def test_an_answer_that_breaks_off_never_looks_complete(odd, said):
    c, o = odd(lambda peer, stream, path: said)
    with c.client() as client:
        response = whole(client, o)
        assert response is None or response.status == 502
    with c.client() as client:
        assert whole(client, o, "/plain").body == b"ok"
    assert paths(o) == ["/odd", "/plain"]


def test_frames_that_say_nothing_to_us_are_passed_over(odd):
    c, o = odd(lambda peer, stream, path: frame(0xa, 0, 0, b"\0\0h2=\":1\"") + frame(0xc, 0, 0, b"") + frame(0xfa, 0xff, stream, b"?")
               + frame(PRIORITY, 0, stream, number(0) + b"\x10") + frame(HEADERS, PADDED, stream, b"\x07" + status(b"103") + bytes(7))
               + frame(CONTINUATION, END_HEADERS, stream) + headers(stream, status(b"200", (b"x", b"y" * 30000))[:16000], end=False)[:4]
               + bytes([0]) + number(stream) + status(b"200", (b"x", b"y" * 30000))[:16000]
               + frame(CONTINUATION, END_HEADERS, stream, status(b"200", (b"x", b"y" * 30000))[16000:])
               + frame(DATA, 0, stream) + frame(0xfb, 1, stream) + frame(DATA, PADDED, stream, b"\x03a\0\0\0")
               + frame(SETTINGS, 0, 0, setting(0x77, 1)) + frame(DATA, PADDED | END_STREAM, stream, b"\0b"))
    with c.client() as client:
        response = whole(client, o)
        assert response.body == b"ab" and response.get("x") == "y" * 30000 and [i.status for i in response.interim] == [103]


def test_the_room_of_padding_is_given_back(odd):
    def pad(peer, stream, path):
        peer.send(headers(stream, status(b"200"), end=False))
        window, had = 32 * 1024, 0
        for _ in range(2000):   # 2 kB of body, 512 KB on the wire
            if window < 300:
                assert peer.until(lambda: peer.windows[stream] > had)
                window, had = window + peer.windows[stream] - had, peer.windows[stream]
            peer.send(frame(DATA, PADDED, stream, b"\xffx" + bytes(255)))
            window -= 257
        return frame(DATA, END_STREAM, stream)
    c, o = odd(pad)
    with c.client() as client:
        assert whole(client, o).body == b"x" * 2000


def test_a_window_may_shrink_below_nothing_in_the_midst_of_an_upload(odd):
    def shrink(peer, stream, path):
        assert peer.until(lambda: len(peer.data[stream]) == 1000)
        peer.send(frame(SETTINGS, 0, 0, setting(INITIAL_WINDOW, 10)))
        assert peer.until(lambda: peer.acks >= 1 and peer.frames.count((SETTINGS, 1, 0)) == 2)
        peer.send(frame(WINDOW, 0, stream, number(990)), frame(PING, 0, 0, b"12345678"))
        assert peer.until(lambda: peer.frames[-1][0] == PING) and len(peer.data[stream]) == 1000
        peer.send(frame(WINDOW, 0, 0, number(300_000)))
        for _ in range(30):
            had = len(peer.data[stream])
            peer.send(frame(WINDOW, 0, stream, number(10_000)))
            assert peer.until(lambda: len(peer.data[stream]) == min(had + 10_000, 300_000)) and len(peer.data[stream]) <= 300_000
        return None
    c, o = odd(shrink, settings=setting(INITIAL_WINDOW, 1000), generous=False)
    with c.client() as client:
        assert whole(client, o, method="PUT", body=bytes(300_000)).body == b"ok"


@pytest.mark.parametrize("final", [1, 3])
def test_a_goaway_in_two_steps_loses_nothing(odd, final):
    """The first refuses nothing; the second, once both requests have arrived, announces which of them will get a response."""
    def leave(peer, stream, path):
        if stream == 1:
            return goaway(0x7fffffff)
        answered = [s for s in (1, 3) if s <= final]
        return goaway(final) + b"".join(reply(s, b"of %d" % s) for s in answered)
    second = []

    def script(peer, stream, path):
        if len(o.peers) > 1:
            second.append(path)
            return None
        return leave(peer, stream, path)
    c, o = odd(script)
    with RawClient(c.address) as client:
        # In one write: the second is in flight before the first GOAWAY is read.
        client.send(*[headers(s, head_of(o.authority.encode(), b"/%d" % s, b"POST", [(b"content-length", b"0")])) for s in (1, 3)])
        assert client.over(1) and client.over(3)
        assert client.data[1] == b"of 1" and client.data[3] in (b"of 3", b"ok")
    assert second == ([] if final == 3 else ["/3"])
    assert c.metric("carpool_retries_total", proof="goaway") == len(second)


@pytest.mark.parametrize("code", [NO_ERROR, CALM, INTERNAL])
def test_a_goaway_below_a_request_sends_it_elsewhere_whatever_its_reason(odd, code):
    c, o = odd(lambda peer, stream, path: goaway(0, code) if len(o.peers) == 1 else None)
    with c.client() as client:
        assert whole(client, o, method="POST", body=b"twice").body == b"ok"
    assert paths(o) == ["/odd", "/odd"]


@pytest.mark.parametrize("refusal", [lambda stream: frame(RST, 0, stream, number(REFUSED)), lambda stream: headers(stream, status(b"421"))],
                         ids=["refused_stream", "misdirected"])
def test_a_session_that_refuses_a_request_does_not_get_it_again_while_others_use_it(carpool, refusal):
    def script(peer, stream):
        path = dict(peer.heads[stream][0])[":path"]
        if path == "/long":
            return peer.send(headers(stream, status(b"200"), end=False))
        return peer.send(refusal(stream) if peer is o.peers[0] else reply(stream))
    o, c = RawOrigin(script), carpool(upstream=PRIOR, workers=1)
    with RawClient(c.address) as client:
        client.send(headers(1, head_of(o.authority.encode(), b"/long")))
        assert client.until(lambda: client.heads[1])
        client.send(*[headers(stream, head_of(o.authority.encode(), b"/%d" % stream, b"POST"), end=False) + frame(DATA, END_STREAM, stream, b"x")
                      for stream in range(3, 23, 2)])
        assert all(client.over(stream) and client.status(stream) == 200 for stream in range(3, 23, 2))
    o.stop()
    asked = paths(o)
    assert all(asked.count("/%d" % stream) == 2 for stream in range(3, 23, 2)), asked
    assert c.metric("carpool_pool_opened_total", cause="replay") >= 1


@pytest.mark.parametrize("last", [2, 4])
def test_a_goaway_with_an_even_last_stream_excludes_those_above_it(odd, last):
    def what(peer, stream, path):
        return goaway(last) + (b"" if stream > last else reply(stream)) if path == "/odd" and peer is o.peers[0] else None
    c, o = odd(what)
    with c.client() as client:
        assert whole(client, o, "/plain").status == whole(client, o).status == 200
    assert paths(o) == ["/plain", "/odd"] + ["/odd"] * (last == 2)


def test_the_reason_that_an_origin_gives_for_its_end_is_passed_on(odd):
    def leave(peer, stream, path):
        peer.send(goaway(stream, CALM))
        peer.close()
        return b""
    c, o = odd(leave)
    with c.client() as client:
        told = whole(client, o, method="POST", body=b"once")
    assert told.status == 502 and "the origin ended the HTTP/2 session: ENHANCE_YOUR_CALM" in told.get("proxy-status")
    assert paths(o) == ["/odd"]


def test_an_answer_before_the_end_of_its_request_frees_its_stream(odd):
    """The origin opens no window for the rest of the upload, and allows one stream."""
    resets = []

    def refuse(peer, stream, path):
        assert peer.until(lambda: len(peer.data[stream]) == 65535)
        peer.send(headers(stream, status(b"413")))
        assert peer.until(lambda: stream in peer.resets)
        resets.append(peer.resets[stream])
        return b""
    c, o = odd(refuse, settings=setting(MAX_STREAMS, 1), generous=False)
    for _ in range(2):
        with c.client() as client:
            assert whole(client, o, method="POST", body=bytes(100_000)).status == 413
        with c.client() as client:
            assert whole(client, o, "/plain").body == b"ok"
        o.peers[0].send(frame(WINDOW, 0, 0, number(65535)))
    assert resets == [CANCEL, CANCEL] and len(o.peers) == 1


def test_an_end_without_error_behind_a_whole_answer_keeps_it_whole(odd):
    c, o = odd(lambda peer, stream, path: reply(stream, b"enough") + frame(RST, 0, stream, number(NO_ERROR)))
    with RawClient(c.address) as client:
        client.send(headers(1, head_of(o.authority.encode(), b"/odd", b"POST"), end=False), frame(DATA, 0, 1, bytes(5000)))
        assert client.over(1) and client.data[1] == b"enough"
        client.send(headers(3, head_of(o.authority.encode(), b"/plain")))
        assert client.over(3) and client.data[3] == b"ok" and not client.goaways
    with c.client() as client:
        client.ask("POST", o.url + "/odd", headers=[("Content-Length", "100000")])
        client.send(bytes(1000))
        assert client.response("POST").body == b"enough"
    assert len(o.peers) == 1


@pytest.mark.parametrize("method,said,body,length", [
    ("HEAD", lambda s: headers(s, status(b"200", (b"content-length", b"1234"))), b"", "1234"),
    ("HEAD", lambda s: headers(s, status(b"200", (b"content-length", b"1234")), end=False) + frame(DATA, END_STREAM, s), b"", "1234"),
    ("GET", lambda s: headers(s, status(b"304", (b"content-length", b"1234"))), b"", None),
    ("GET", lambda s: headers(s, status(b"204")), b"", None),
    ("GET", lambda s: headers(s, status(b"204"), end=False) + frame(DATA, END_STREAM, s), b"", None),
    ("GET", lambda s: headers(s, status(b"200"), end=False) + headers(s, block([(b"x-t", b"1")])), b"", None),
    ("GET", lambda s: headers(s, status(b"200", (b"content-length", b"0")), end=False) + frame(DATA, END_STREAM, s), b"", "0"),
], ids=["head", "head-empty-data", "304", "204", "204-empty-data", "trailers-only", "length-0"])
def test_answers_without_a_body_leave_their_client_in_step(odd, method, said, body, length):
    c, o = odd(lambda peer, stream, path: said(stream))
    with c.client() as client:
        for _ in range(2):
            response = whole(client, o, method=method)
            assert response.status < 400 and response.body == body
            assert length is None or response.get("content-length") == length
        assert whole(client, o, "/plain").body == b"ok"
    assert len(o.peers) == 1


@pytest.mark.parametrize("method,said", [
    ("HEAD", headers(1, status(b"200", (b"content-length", b"4")), end=False) + frame(DATA, END_STREAM, 1, b"body")),
    ("GET", headers(1, status(b"204"), end=False) + frame(DATA, END_STREAM, 1, b"body")),
    ("GET", headers(1, status(b"304"), end=False) + frame(DATA, END_STREAM, 1, b"body")),
], ids=["head", "204", "304"])
def test_a_body_where_none_may_be_reaches_no_client(odd, method, said):
    c, o = odd(lambda peer, stream, path: said)
    with c.client() as client:
        client.ask(method, o.url + "/odd")
        try:
            assert not client.response(method).body and (client.ask("GET", o.url + "/plain") or client.response()).body == b"ok"
        except (Gone, ConnectionError):
            pass
        assert b"body" not in client.buffer
    with c.client() as client:
        assert whole(client, o, "/plain").body == b"ok"


def test_settings_that_change_between_requests_are_kept(odd):
    changes = [setting(TABLE_SIZE, 0), setting(MAX_FRAME, 20000), setting(TABLE_SIZE, 65536), setting(INITIAL_WINDOW, 0),
               setting(INITIAL_WINDOW, 65535), setting(6, 1000), setting(TABLE_SIZE, 1) + setting(TABLE_SIZE, 4096)]

    def change(peer, stream, path):
        return frame(SETTINGS, 0, 0, changes[int(path[1:])]) + reply(stream, dict(peer.heads[stream][0])["x-same"].encode())
    c, o = odd(change)
    with c.client() as client:
        for i in range(len(changes)):
            assert whole(client, o, "/%d" % i, headers=[("X-Same", "again")]).body == b"again"
    assert len(o.peers) == 1


@pytest.mark.parametrize("said", [setting(INITIAL_WINDOW, 0x80000000), setting(MAX_FRAME, 100), setting(2, 2), b"\0\3\0"],
                         ids=["window", "frame", "push", "cut"])
def test_settings_that_no_peer_may_send_end_the_session_and_nothing_else(odd, said):
    c, o = odd(lambda peer, stream, path: frame(SETTINGS, 0, 0, said))
    with c.client() as client:
        told = whole(client, o, method="POST", body=b"once")
        assert told.status == 502
        assert "error=http_protocol_error" in told.get("proxy-status") and "violated HTTP/2: " in told.get("proxy-status")
        assert whole(client, o, "/plain").body == b"ok"
    assert paths(o) == ["/odd", "/plain"]


def test_sixty_four_informational_heads_pass_and_one_more_is_502(odd):
    many = {"/64": 64, "/65": 65}
    c, o = odd(lambda peer, stream, path: headers(stream, status(b"103"), end=False) * many[path] + reply(stream))
    with RawClient(c.address) as client:
        for stream, path in ((1, b"/64"), (3, b"/65")):
            client.send(headers(stream, head_of(o.authority.encode(), path)))
            assert client.over(stream)
        assert client.status(1) == 200 and len(client.heads[1]) == 65
        told = dict(client.heads[3][-1])
        assert client.status(3) == 502 and "more than 64 informational" in told["proxy-status"]
    assert paths(o) == ["/64", "/65"]
    assert c.metric("carpool_upstream_bounds_total", bound="informational") == 1
    until(lambda: c.metric("carpool_pool_connections", state="borrowed") == 0, what="every stream given back")


@pytest.mark.parametrize("reads", [True, False])
def test_unending_informational_heads_cost_little_memory_and_end_in_502(odd, reads):
    large = status(b"103", (b"link", b"x" * 15000))
    c, o = odd(lambda peer, stream, path: headers(stream, large, end=False) * 4000)  # 60 MB
    with c.client() as client:
        client.get(o.url + "/plain")
        before = c.rss()
        client.ask("GET", o.url + "/odd")
        until(lambda: c.metric("carpool_upstream_bounds_total", bound="informational") == 1, what="the bound")
        assert c.rss() - before < 8 << 20
        if reads:
            response = client.response()
            while response.status < 200:
                response = client.response()
            assert response.status == 502 and "informational" in response.get("proxy-status")


def test_informational_heads_put_the_header_timeout_off_to_twice_of_it_at_most(carpool):
    """One each 200 ms: the limit of 1 s alone would never pass between two of them."""
    over = threading.Event()

    def drip(peer, stream):
        while not over.wait(0.2) and peer.send(headers(stream, status(b"102"), end=False)):
            pass
    o, c = RawOrigin(drip), carpool(upstream=PRIOR, workers=1, request={"response_header_timeout": "1s"})
    try:
        with c.client() as client:
            began = time.monotonic()
            response = final(client, o)
            took = time.monotonic() - began
            assert response.status == 504 and "response_header_timeout" in response.get("proxy-status")
            assert 1.9 < took < 15, "the limit, and as much again; without this bound it never ends"
    finally:
        over.set()
        o.stop()


@pytest.mark.parametrize("response,told", [
    (lambda s: frame(RST, 0, s, number(13)), "HTTP_1_1_REQUIRED"),
    (lambda s: goaway(0, 13), "HTTP_1_1_REQUIRED"),
    (lambda s: frame(RST, 0, s, number(REFUSED)), "REFUSED_STREAM"),
    (lambda s: goaway(0), "GOAWAY excluded the request"),
], ids=["http-1-1-required", "goaway-http-1-1-required", "refused", "goaway"])
def test_one_request_makes_no_more_connections_than_max_retries_and_eight(carpool, response, told):
    o, c = RawOrigin(lambda peer, stream: peer.send(response(stream))), carpool(upstream=PRIOR, workers=1)
    try:
        with c.client() as client:
            said = whole(client, o)
            assert said.status == 502 and told in said.get("proxy-status")
        assert len(o.peers) <= 1 + 8
        if told == "HTTP_1_1_REQUIRED":
            assert len(o.peers) == 1, "what it asks for is not configured"
        else:
            assert c.metric("carpool_upstream_bounds_total", bound="attempts") == 1
    finally:
        o.stop()


def test_an_origin_of_http_2_that_requires_http_1_1_is_not_asked_again_whatever_may_be_repeated(carpool):
    o = RawOrigin(lambda peer, stream: peer.send(frame(RST, 0, stream, number(13))))
    c = carpool(upstream=PRIOR, workers=1, request={"retry_on": ["reset", "connect-failure"], "max_retries": 3})
    try:
        with c.client() as client:
            said = whole(client, o)
            assert said.status == 502 and "HTTP_1_1_REQUIRED" in said.get("proxy-status")
        assert len(o.peers) == 1, "no connection for HTTP/1.1"
    finally:
        o.stop()


@pytest.mark.parametrize("later", [False, True], ids=["at-first", "lowered-at-once"])
def test_an_origin_that_allows_no_stream_is_dialed_once(carpool, later):
    none = setting(MAX_STREAMS, 0)
    o = RawOrigin(lambda peer, stream: None, b"" if later else none, script_at_start=lambda peer: later and peer.send(
        frame(SETTINGS, 0, 0, none)))
    c = carpool(upstream=PRIOR, workers=1, pool={"connect_timeout": "2s"})
    try:
        with c.client() as client:
            response = whole(client, o)
            assert response.status == 502 and "no HTTP/2 stream" in response.get("proxy-status")
        assert len(o.peers) == 1
    finally:
        o.stop()


def test_a_request_waits_for_an_origin_that_allows_its_first_stream_late(carpool):
    o = RawOrigin(lambda peer, stream: peer.send(reply(stream)), setting(MAX_STREAMS, 0))
    c = carpool(upstream=PRIOR, workers=1)
    try:
        with c.client() as client:
            client.send(b"GET %s/ HTTP/1.1\r\nHost: a\r\n\r\n" % o.url.encode())
            until(lambda: o.peers and o.peers[0].acks, what="the session")
            assert c.metric("carpool_pool_connections", origin=o.url, state="connecting") == 1
            o.peers[0].send(frame(SETTINGS, 0, 0, setting(MAX_STREAMS, 1)))
            assert client.response().status == 200
        assert len(o.peers) == 1
    finally:
        o.stop()
