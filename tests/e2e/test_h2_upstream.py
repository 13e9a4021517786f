"""HTTP/2 to origins: sessions shared by many requests, the translation of each message, and every way a stream may end."""
import concurrent.futures
import ssl
import subprocess
import urllib.parse

import h2.errors
import h2.settings
import pytest
from harness.h2_client import H2Client
from harness.h2_origin import H2Origin
from harness.wait import until

PRIOR = {"protocols": ["h2"]}
NARROW, USUAL = 8 * 1024, 32 * 1024
MAX_STREAMS = h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS


@pytest.fixture
def h2_origin():
    started = []

    def start(*args, **more):
        started.append(H2Origin(*args, **more))
        return started[-1]
    yield start
    for one in started:
        one.stop()


@pytest.fixture
def context(pki):
    one = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    one.load_cert_chain(pki.server, pki.server_key)
    one.set_alpn_protocols(["h2"])
    return one


def at_once(count, work):
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, range(count)))


def held(gate):
    def handler(stream):
        gate.enter()
        stream.reply(body=stream.pseudo[":path"].encode())
    return handler


def connections(c, o):
    return c.get_json("/pools/%s/connections" % urllib.parse.quote(o.url, safe=""))["connections"]


@pytest.mark.parametrize("together", [False, True])
def test_the_session_of_a_second_loop_is_opened_for_that_reason(h2_origin, carpool, pki, context, gate, together):
    o = h2_origin(held(gate), tls=context)
    c = carpool(workers=2, upstream={"tls": {"ca_file": pki.ca}})
    with c.client() as one, c.client() as other:  # one on each loop
        if together:
            one.ask("GET", o.url + "/")
            other.ask("GET", o.url + "/")
            gate.open()
        else:
            gate.open()
            one.ask("GET", o.url + "/")
            assert one.response().status == 200
            other.ask("GET", o.url + "/")
        assert other.response().status == 200
        if together:
            assert one.response().status == 200
        until(lambda: len(connections(c, o)) == 2, what="a session of each loop")
    opened = {cause: n for cause, n in c.pool(o.url)["opened"].items() if n}
    assert opened == {"first": 1, "loop_local": 1}


def test_a_loop_with_a_session_of_its_own_uses_it(h2_origin, carpool, pki, context, gate):
    o = h2_origin(held(gate), tls=context)
    c = carpool(workers=2, upstream={"tls": {"ca_file": pki.ca}})
    with c.client() as one, c.client() as other:  # one on each loop
        for k in range(5):
            for client in (one, other):
                client.ask("GET", "%s/%d" % (o.url, k))
            gate.wait_for(2)
            until(lambda: [r["protocol"] for r in connections(c, o) if r["state"] != "connecting"] == ["h2"] * 2, what="a session of each loop")
            if k > 0:
                assert [r["streams"] for r in connections(c, o)] == [1, 1]
            gate.let(2)
            assert [client.response().body for client in (one, other)] == [b"/%d" % k] * 2


@pytest.mark.parametrize("workers", [1, 2])
def test_many_requests_share_one_connection_a_loop(h2_origin, carpool, pki, context, gate, workers):
    o = h2_origin(held(gate), tls=context)
    c = carpool(workers=workers, upstream={"tls": {"ca_file": pki.ca}})
    with c.client() as first:
        gate.let(1)
        assert first.get(o.url + "/first").body == b"/first"

    def one(i):
        with c.client() as client:
            return client.get("%s/%d" % (o.url, i)).body
    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        responses = [pool.submit(one, i) for i in range(32)]
        gate.wait_for(32)
        rows = [r for r in connections(c, o) if r["state"] != "connecting"]
        assert sum(r["streams"] for r in rows) == 32 and {r["protocol"] for r in rows} == {"h2"}
        assert o.opened <= workers
        gate.open()
    assert [a.result() for a in responses] == [b"/%d" % i for i in range(32)]


def test_one_session_serves_the_loops_that_the_cap_has_no_other_for(h2_origin, carpool):
    def echo(stream):
        stream.reply(body=stream.body + stream.pseudo[":path"].encode())
    o = h2_origin(echo)
    c = carpool(workers=2, upstream=PRIOR, pool={"size": 1, "wait_timeout": "20s"})

    def one(i):
        with c.client() as client:
            body = bytes([i]) * (i * 9000)
            for k in range(5):
                response = client.request("POST", "%s/%d-%d" % (o.url, i, k), body=body)
                assert response.status == 200 and response.body == body + b"/%d-%d" % (i, k)
    at_once(16, one)
    assert o.opened == 1
    assert c.pool(o.url)["borrows"] == 80


@pytest.mark.parametrize("size", [1, 64])
def test_large_bodies_pass_both_ways_through_the_windows(h2_origin, carpool, size):
    big = bytes(range(256)) * 16384  # 4 MiB
    o = h2_origin(lambda stream: stream.reply(body=stream.body))
    c = carpool(workers=2, upstream=PRIOR, pool={"size": size})

    def one(i):
        with c.client() as client:
            return client.request("PUT", o.url + "/", body=big).body == big
    assert all(at_once(4, one))


def test_a_client_that_does_not_read_holds_up_only_its_own_stream(h2_origin, carpool):
    big = b"x" * (32 * 1024 * 1024)
    o = h2_origin(lambda stream: stream.reply(body=big if stream.pseudo[":path"] == "/big" else b"small"))
    c = carpool(workers=1, upstream=PRIOR)
    before = c.rss()
    with c.client() as slow, c.client() as quick:
        slow.ask("GET", o.url + "/big")
        slow.head()
        assert [quick.get(o.url + "/small").body for _ in range(50)] == [b"small"] * 50
        assert c.rss() - before < 8 * 1024 * 1024
    assert o.opened == 1
    o.wait_for(lambda: o.resets)
    assert o.resets == [(1, h2.errors.ErrorCodes.CANCEL)]


def test_a_stream_begins_with_a_narrow_window_and_is_given_a_wide_one_while_its_client_keeps_up(h2_origin, carpool):
    first, widest = [], []

    def respond(stream):
        def window():
            return stream.connection.c.local_flow_control_window(stream.id)
        first.append(window())
        widest.append(0)
        stream.head(200)
        for _ in range(512):
            stream.data(b"x" * 8192)
            widest[-1] = max(widest[-1], window())
        stream.data(b"", end=True)
    o = h2_origin(respond)
    c = carpool(workers=1, upstream=PRIOR)
    with c.client() as client:
        for _ in range(2):  # one stream's window is not the next one's
            assert len(client.get(o.url + "/").body) == 512 * 8192
    assert o.opened == 1 and first == [NARROW, USUAL]  # after a large response the next stream's window is enlarged with its request
    assert all(100 * 1024 < most <= 256 * 1024 for most in widest)


@pytest.mark.parametrize("size", [64, 1])  # 1: the streams of the second loop come by mail
def test_windows_are_opened_with_the_request_while_answers_are_large(h2_origin, carpool, size):
    windows = []

    def respond(stream):
        windows.append(stream.connection.c.local_flow_control_window(stream.id))
        stream.reply(body=b"x" * int(stream.pseudo[":path"][1:]))
    o = h2_origin(respond)
    c = carpool(workers=1 if size != 1 else 2, upstream=PRIOR, pool={"size": size})
    with c.client() as one, c.client() as other:
        sizes = [100_000, 100] + 16 * [100] + [100]
        for nth, bytes in enumerate(sizes):
            assert len((one, other)[nth % 2].get("%s/%d" % (o.url, bytes)).body) == bytes
    assert o.opened == 1 and windows == [NARROW] + 16 * [USUAL] + 2 * [NARROW]


def test_a_client_with_many_streams_open_has_narrow_windows_on_most_of_them(h2_origin, carpool, gate):
    windows = []

    def respond(stream):
        windows.append(stream.connection.c.local_flow_control_window(stream.id))
        if stream.pseudo[":path"] == "/held":
            gate.enter()
        stream.reply(body=b"x" * 100_000)
    o = h2_origin(respond)
    c = carpool(workers=1, upstream=PRIOR)
    with c.client() as client:
        assert len(client.get(o.url + "/").body) == 100_000
    with H2Client(c.address) as many:
        streams = [many.ask("/held", authority=o.authority) for _ in range(40)]
        gate.wait_for(40)
        assert windows.count(USUAL) <= 16 and windows.count(NARROW) >= 1 + 24
        gate.open()
        assert [len(many.response(stream).body) for stream in streams] == 40 * [100_000]


def test_fields_of_the_connection_end_here_and_the_authority_names_the_origin(h2_origin, carpool):
    o = h2_origin()
    c = carpool(upstream=PRIOR)
    with c.client() as client:
        client.request("GET", o.url + "/a?b", [("Connection", "keep-alive, x-mine"), ("X-Mine", "1"), ("Keep-Alive", "5"),
                                               ("TE", "trailers, gzip"), ("Connection", "te"), ("Cookie", "a=1; b=2"),
                                               ("Proxy-Connection", "keep-alive"), ("X-Other", "Kept")])
    stream = o.seen[0]
    assert stream.pseudo == {":method": "GET", ":scheme": "http", ":authority": o.authority, ":path": "/a?b"}
    names = [n for n, _ in stream.fields]
    assert names == [n.lower() for n in names]
    assert not {"connection", "keep-alive", "x-mine", "proxy-connection", "host", "transfer-encoding"} & set(names)
    assert stream.field("te") == ["trailers"] and stream.field("x-other") == ["Kept"]
    assert "; ".join(stream.field("cookie")) == "a=1; b=2"
    assert stream.field("via")[0].startswith("1.1 carpool-")


def test_trailers_pass_both_ways(h2_origin, carpool):
    def respond(stream):
        stream.head(200)
        stream.data(b"body")
        stream.end([("x-sum", "7")])
    o = h2_origin(respond)
    c = carpool(upstream=PRIOR)
    with c.client() as client:
        client.send(b"POST %s/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: x-in\r\n\r\n"
                    b"3\r\nabc\r\n0\r\nX-In: 5\r\n\r\n" % o.url.encode())
        reply = client.response()
        assert reply.body == b"body" and reply.trailers == [("x-sum", "7")]
        assert client.get(o.url + "/").status == 200
    assert o.seen[0].body == b"abc" and o.seen[0].trailers == [("x-in", "5")]


def test_a_request_without_content_has_its_trailers(h2_origin, carpool):
    o = h2_origin(lambda stream: stream.reply())
    c = carpool(upstream=PRIOR, pool={"size": 1})
    with H2Client(c.address) as first, H2Client(c.address) as second:  # of the other loop than the session
        for client in first, second:
            stream = client.ask(method="POST", authority=o.authority, headers=[("content-length", "0")], end=False)
            client.h2.send_headers(stream, [("x-in", "5")], end_stream=True)
            client.flush()
            assert client.response(stream).status == 200
            stream = client.ask(method="POST", authority=o.authority, headers=[("content-length", "0")], end=False)
            client.send(stream, b"", end=True)
            assert client.response(stream).status == 200
    assert [request.trailers for request in o.seen] == [[("x-in", "5")], []] * 2 and o.opened == 1


def test_answers_without_a_body_leave_the_client_in_step(h2_origin, carpool):
    def respond(stream):
        path = stream.pseudo[":path"]
        if path == "/head":
            return stream.head(200, [("content-length", "12")], end=True)
        if path == "/304":
            return stream.head(304, [("etag", "x")], end=True)
        return stream.head(204 if path == "/204" else 200, end=True)
    o = h2_origin(respond)
    c = carpool(upstream=PRIOR)
    with c.client() as client:
        assert client.request("HEAD", o.url + "/head").get("content-length") == "12"
        assert client.get(o.url + "/204").get("content-length") is None
        assert client.get(o.url + "/304").status == 304
        empty = client.get(o.url + "/none")
        assert empty.body == b"" and empty.get("content-length") == "0"


def test_interim_answers_come_before_the_final_one(h2_origin, carpool):
    def respond(stream):
        stream.head(103, [("link", "</a.css>; rel=preload")])
        stream.reply()
    o = h2_origin(respond)
    c = carpool(upstream=PRIOR)
    with c.client() as client:
        reply = client.get(o.url + "/")
        assert [(m.status, m.get("link")) for m in reply.interim] == [(103, "</a.css>; rel=preload")]


@pytest.mark.parametrize("size", [1, 64])
def test_a_stream_that_is_reset_inside_its_answer_never_looks_complete(h2_origin, carpool, size):
    def respond(stream):
        if stream.pseudo[":path"] == "/good":
            return stream.reply()
        stream.head(200)
        stream.data(b"half")
        stream.reset(h2.errors.ErrorCodes.NO_ERROR)
    o = h2_origin(respond)
    c = carpool(workers=2, upstream=PRIOR, pool={"size": size})

    def one(i):
        with c.client() as client:
            good = client.get(o.url + "/good").status == 200
            return good and not client.get(o.url + "/bad").complete
    assert all(at_once(4, one))
    assert o.opened <= 2


def test_what_a_goaway_leaves_out_is_replayed_whatever_it_is(h2_origin, carpool):
    def respond(stream):
        if stream.connection.number == 1 and stream.id > 1:
            return stream.connection.goaway(1)
        stream.reply(body=stream.body)
    o = h2_origin(respond)
    c = carpool(workers=1, upstream=PRIOR)
    with c.client() as client:
        assert client.request("POST", o.url + "/", body=b"one").body == b"one"
        assert client.request("POST", o.url + "/", body=b"two").body == b"two"
    assert c.metric("carpool_retries_total", proof="goaway") == 1
    assert c.metric("carpool_pool_closed_total", cause="goaway") == 1
    assert not c.metric("carpool_upstream_h2_resets_total", origin=o.url)  # no stream was reset


def test_a_refused_stream_is_replayed_whatever_it_is(h2_origin, carpool):
    refused = []

    def respond(stream):
        if not refused:
            refused.append(stream.id)
            return stream.reset(h2.errors.ErrorCodes.REFUSED_STREAM)
        stream.reply(body=stream.body)
    o = h2_origin(respond)
    c = carpool(workers=1, upstream=PRIOR)
    with c.client() as client:
        assert client.request("POST", o.url + "/", body=b"one").body == b"one"
    assert c.metric("carpool_retries_total", proof="refused_stream") == 1


def test_a_stream_that_fails_otherwise_is_not_sent_again(h2_origin, carpool):
    o = h2_origin(lambda stream: stream.reset(h2.errors.ErrorCodes.INTERNAL_ERROR))
    c = carpool(workers=1, upstream=PRIOR)
    with c.client() as client:
        reply = client.get(o.url + "/")
        assert reply.status == 502 and "INTERNAL_ERROR" in reply.get("proxy-status")
    assert len(o.seen) == 1
    assert c.metric("carpool_upstream_h2_resets_total", code="INTERNAL_ERROR", origin=o.url) == 1


def test_a_misdirected_request_is_asked_once_more(h2_origin, carpool):
    o = h2_origin(lambda stream: stream.reply(status=421 if len(o.seen) == 1 or stream.field("x-always") else 200))
    c = carpool(workers=1, upstream=PRIOR)
    with c.client() as client:
        assert client.get(o.url + "/").status == 200
        assert len(o.seen) == 2
        assert client.get(o.url + "/", ("X-Always", "1")).status == 421
    assert len(o.seen) == 4


def test_the_origins_limit_of_streams_is_kept(h2_origin, carpool, gate):
    o = h2_origin(held(gate), settings={MAX_STREAMS: 4})
    c = carpool(workers=1, upstream=PRIOR, pool={"size": 2, "wait_timeout": "20s"})
    gate.let(1)
    with c.client() as client:
        client.get(o.url + "/")

    def one(i):
        with c.client() as client:
            return client.get("%s/%d" % (o.url, i)).status
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        responses = [pool.submit(one, i) for i in range(12)]
        gate.wait_for(8)
        until(lambda: c.metric("carpool_pool_waiting", origin=o.url) == 4, what="four waiting requests")
        gate.open()
    assert [a.result() for a in responses] == [200] * 12
    assert o.opened == 2 and c.metric("carpool_retries_total") == 0


def test_an_answer_before_the_requests_end_reaches_the_client(h2_origin, carpool):
    o = h2_origin(early=lambda stream: stream.reply(status=413, body=b"no"))
    c = carpool(workers=1, upstream=PRIOR)
    with c.client() as client:
        client.send(b"POST %s/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n" % o.url.encode() + bytes(1000))
        reply = client.response()
        assert reply.status == 413 and reply.body == b"no" and not reply.keeps_alive()
    o.wait_for(lambda: o.resets)


def falls_silent(gate):
    def handler(stream):
        if stream.pseudo[":path"] == "/stuck":
            stream.connection.lock.acquire()  # this connection reads and sends nothing any more
            gate.enter()
        stream.reply()
    return handler


def test_an_origin_that_stopped_answering_is_found_dead_in_seconds(h2_origin, carpool, gate):
    o = h2_origin(falls_silent(gate))
    c = carpool(workers=1, upstream=PRIOR)
    with c.client() as client:
        reply = client.request("POST", o.url + "/stuck", body=b"x")
        assert reply.status == 502 and "PING" in reply.get("proxy-status")
        assert client.get(o.url + "/").status == 200
    assert o.opened == 2 and c.metric("carpool_pool_closed_total", cause="unhealthy") == 1


def test_a_connection_on_which_a_request_timed_out_must_show_life_before_the_next(h2_origin, carpool, gate):
    o = h2_origin(falls_silent(gate))
    c = carpool(workers=1, upstream=PRIOR, request={"response_header_timeout": "1500ms"})
    with c.client() as client, c.client() as other:
        assert client.request("POST", o.url + "/stuck", body=b"x").status == 504
        c.replace_config(c.config.read_text().replace('"1500ms"', '"30s"'))  # the next one has time for a new connection
        assert c.admin("POST", "/reload").status == 200
        # Sooner than the idle time after which every connection is checked.
        assert other.request("POST", o.url + "/", body=b"y").status == 200, "nothing was sent before the sign of life"
    assert o.opened == 2 and c.metric("carpool_pool_closed_total", cause="unhealthy") == 1


def test_an_upgrade_goes_to_a_connection_of_http11(origin, carpool, pki, context):
    context.set_alpn_protocols(["h2", "http/1.1"])

    def switch(exchange):
        chosen = exchange.stream.sock.selected_alpn_protocol().encode()
        exchange.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n" + chosen)
        return False
    o, c = origin(switch, tls=context), carpool(upstream={"tls": {"ca_file": pki.ca}})
    with c.client() as client:
        assert client.get(o.url + "/", ("Connection", "Upgrade"), ("Upgrade", "websocket")).status == 101
        assert client.exactly(8) == b"http/1.1"


def test_an_upgrade_that_only_http2_is_configured_for_goes_on_as_the_request_that_it_is_without(h2_origin, carpool):
    seen = []

    def handler(stream):
        seen.append(dict(stream.headers))
        stream.reply(status=426)
    o, c = h2_origin(handler), carpool(upstream=PRIOR)
    with c.client() as client:
        reply = client.get(o.url + "/", ("Connection", "Upgrade"), ("Upgrade", "websocket"), ("X-Other", "1"))
        assert reply.status == 426 and reply.keeps_alive()
    assert "upgrade" not in seen[0] and seen[0]["x-other"] == "1"


def test_an_upgrade_to_an_origin_without_http11_fails_with_the_reason(carpool, pki):
    server = subprocess.Popen(["openssl", "s_server", "-accept", "127.0.0.1:0", "-cert", pki.server, "-key", pki.server_key,
                               "-alpn", "h2"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        port = next(line for line in server.stdout if line.startswith("ACCEPT")).rsplit(":", 1)[1].strip()
        c = carpool(upstream={"tls": {"ca_file": pki.ca}})
        with c.client() as client:
            reply = client.get("https://127.0.0.1:%s/" % port, ("Connection", "Upgrade"), ("Upgrade", "websocket"))
            assert reply.status == 502
            assert "error=tls_protocol_error" in reply.get("proxy-status") and "HTTP/1.1" in reply.get("proxy-status")
    finally:
        server.kill()
        server.communicate()


def test_prior_knowledge_of_an_origin_that_has_none_is_a_failed_dial(origin, carpool):
    o, c = origin(), carpool(upstream=PRIOR)
    with c.client() as client:
        reply = client.get(o.url + "/")
        assert reply.status == 502 and "no HTTP/2 session" in reply.get("proxy-status")


@pytest.mark.parametrize("given_up, status, opened", [(2, 200, 3), (100, 502, 3)])
def test_a_connection_that_its_origin_gives_up_before_a_request_is_replaced(h2_origin, carpool, given_up, status, opened):
    o = h2_origin(greet=lambda connection: connection.goaway(0) if connection.number <= given_up else None)
    c = carpool(upstream=PRIOR)
    with c.client() as client:
        assert client.request("POST", o.url + "/", body=b"x").status == status
    assert (o.opened, len(o.seen)) == (opened, int(status == 200))
    assert sum(c.pool(o.url)["opened"].values()) == 1, "the dials of one connection share its slot"


def test_nginx_serves_over_http2(nginx, carpool, pki):
    c = carpool(workers=2, upstream={"tls": {"ca_file": pki.ca}})
    url = "https://localhost:%d" % nginx.h2_port
    with c.client() as client:
        assert client.get(url + "/hello").status == 200  # its protocol is known from here on

    def one(i):
        with c.client() as client:
            assert client.get(url + "/hello").body == b"hello over https\n"
            assert client.get(url + "/big").body == bytes(range(256)) * 4096
            assert client.request("POST", url + "/sink", body=b"x" * 300000).body.startswith(b"got 300000")
    at_once(8, one)
    assert c.pool(url)["created"] <= 2
