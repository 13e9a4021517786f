"""Upgrade with a real client and a real server library: after 101 the connection is a tunnel, counted to its end."""
import signal
import socket
import threading

import pytest
from harness.h2_client import DATA, END_STREAM, H2Client, block, frame, headers
from harness.h2_origin import H2Origin
from harness.h2_raw import RawClient
from harness.wait import until

client = pytest.importorskip("websockets.sync.client")
server = pytest.importorskip("websockets.sync.server")


@pytest.fixture
def echo():
    def talk(connection):
        for message in connection:
            connection.send(message)
    running = server.serve(talk, "127.0.0.1", 0)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    yield running.socket.getsockname()[1]
    running.shutdown()


def connect(carpool, port):
    return client.connect("ws://127.0.0.1:%d/chat" % port, sock=socket.create_connection(carpool.address, 10), proxy=None)


def test_messages_pass_both_ways_and_the_slot_is_held_to_the_end(carpool, echo):
    c = carpool(pool={"size": 4, "max_tunnels": 2})
    label = "http://127.0.0.1:%d" % echo
    with connect(c, echo) as ws:
        for message in ("short", "x" * 200_000, b"\x00\xff" * 5):
            ws.send(message)
            assert ws.recv(timeout=10) == message
        assert c.metric("carpool_pool_connections", origin=label, state="tunnel") == 1
        assert c.metric("carpool_pool_closed_total", origin=label) == 0
    until(lambda: c.metric("carpool_pool_closed_total", origin=label, cause="tunnel_ended") == 1, what="tunnel_ended")
    until(lambda: c.metric("carpool_pool_connections", origin=label) == 0, what="an empty pool")


def test_a_websocket_beyond_the_limit_waits_in_line_for_the_next_tunnel_that_ends(carpool, echo):
    c = carpool(pool={"size": 4, "max_tunnels": 1, "wait_timeout": "20s"})
    label = "http://127.0.0.1:%d" % echo
    opened = []
    with connect(c, echo):
        threading.Thread(target=lambda: opened.append(connect(c, echo)), daemon=True).start()
        until(lambda: c.metric("carpool_pool_waiting", origin=label) == 1, what="one that waits")
        assert c.metric("carpool_pool_connections", origin=label) == 1  # no connection for it yet
        assert not opened
    until(lambda: opened, what="the second tunnel")
    with opened[0] as ws:
        ws.send("hello")
        assert ws.recv(timeout=10) == "hello"


def test_a_websocket_beyond_the_limit_is_refused_where_nobody_may_wait(carpool, echo):
    c = carpool(pool={"size": 4, "max_tunnels": 1, "max_waiting": 0})
    with connect(c, echo), pytest.raises(Exception, match="503"):
        connect(c, echo)


def test_tunnels_are_never_lent_again_and_their_number_is_bounded(carpool, echo):
    c = carpool(pool={"size": 4, "max_tunnels": 2, "wait_timeout": "1s"})
    with connect(c, echo) as one, connect(c, echo) as two:
        one.send("1")
        two.send("2")
        assert (one.recv(timeout=10), two.recv(timeout=10)) == ("1", "2")
        with pytest.raises(Exception, match="503"):
            connect(c, echo)
    until(lambda: c.metric("carpool_pool_connections") == 0, what="an empty pool")
    with connect(c, echo) as three:
        three.send("3")
        assert three.recv(timeout=10) == "3"


def test_bytes_sent_right_behind_the_101_are_not_lost(origin, carpool):
    def eager(exchange):
        exchange.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x-test\r\n\r\nfirst words")
        exchange.send(b"; heard " + exchange.stream.exactly(5))
        return False
    o, c = origin(eager), carpool()
    with c.client() as raw:
        raw.ask("GET", o.url + "/", [("Connection", "Upgrade"), ("Upgrade", "x-test")])
        assert raw.response().status == 101
        raw.send(b"hello")
        assert raw.exactly(24) == b"first words; heard hello"
        assert raw.at_end()


def test_a_refused_upgrade_is_an_ordinary_exchange(origin, carpool):
    o, c = origin(), carpool()
    with c.client() as raw:
        response = raw.get(o.url + "/", ("Connection", "Upgrade"), ("Upgrade", "websocket"))
        assert (response.status, response.body) == (200, b"ok")
        assert raw.get(o.url + "/again").status == 200
    assert o.opened == 1


ASK = [("Connection", "Upgrade"), ("Upgrade", "x-test")]
SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x-test\r\n\r\n"


def test_bytes_behind_the_101_are_bare_though_the_request_was_chunked(origin, carpool):
    def switch(exchange):
        assert exchange.read_body() == b"body"
        exchange.send(SWITCH)
        exchange.send(exchange.stream.exactly(5))
        return False
    o, c = origin(switch), carpool()
    with c.client() as raw:
        raw.send(b"GET %s/ HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x-test\r\nTransfer-Encoding: chunked\r\n\r\n"
                 b"4\r\nbody\r\n0\r\n\r\n" % o.url.encode())
        assert raw.response().status == 101
        raw.send(b"HELLO")
        assert raw.exactly(5) == b"HELLO"
        assert raw.at_end()


@pytest.mark.parametrize("framing", [b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", b"Content-Length: 10\r\n\r\nabc"],
                         ids=["chunked", "length"])
def test_a_101_inside_the_requests_body_switches_nothing(origin, carpool, framing):
    def switch(exchange):
        exchange.send(SWITCH)
        return exchange.stream.at_end() and False
    o, c = origin(switch), carpool()
    with c.client() as raw:
        raw.send(b"POST %s/ HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x-test\r\n" % o.url.encode() + framing)
        response = raw.response()
        assert response.status == 502 and "inside the request's body" in response.get("proxy-status")
        assert raw.at_end()


def test_a_second_key_is_400_and_reaches_no_origin(origin, carpool):
    o, c = origin(), carpool()
    with c.client() as raw:
        response = raw.get(o.url + "/", ("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Key", "a"),
                         ("sec-websocket-key", "b"))
        assert response.status == 400 and "Sec-WebSocket-Key" in response.get("proxy-status")
    with H2Client(c.address) as h2:
        stream = h2.ask(method="CONNECT", authority=o.authority, headers=[("sec-websocket-key", "a")], end=False,
                        pseudo=[(":protocol", "websocket")])
        assert h2.response(stream).status == 400
    assert not o.seen


def test_an_extended_connect_that_no_origin_can_get_is_501_and_reaches_none(origin, carpool):
    o = origin()
    for protocols, protocol in ((["h2"], "websocket"), (["h1"], "h2c")):
        c = carpool(origin=[{"uri": o.url, "upstream": {"protocols": protocols}}])
        with H2Client(c.address) as h2:
            stream = h2.ask(method="CONNECT", authority=o.authority, end=False, pseudo=[(":protocol", protocol)])
            response = h2.response(stream)
            assert response.status == 501 and ":protocol" in response.get("proxy-status")
    assert not o.seen and o.opened == 0


def test_an_origin_that_does_not_respond_to_an_extended_connect_is_504(origin, carpool, gate):
    def silent(exchange):
        return gate.enter() and False
    o, c = origin(silent), carpool(request={"response_header_timeout": "300ms"})
    with H2Client(c.address) as h2:
        stream = h2.ask(method="CONNECT", authority=o.authority, end=False, pseudo=[(":protocol", "websocket")])
        response = h2.response(stream)
        assert response.status == 504 and "http_response_timeout" in response.get("proxy-status")
    until(lambda: o.seen, what="the request at the origin")
    assert len(o.seen) == 1


def test_a_101_that_does_not_answer_the_handshake_of_an_extended_connect_is_502_of_the_origin(origin, carpool):
    def wrong(exchange):
        exchange.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                      b"Sec-WebSocket-Accept: d3Jvbmc=\r\n\r\n")
        return False
    o, c = origin(wrong), carpool()
    with H2Client(c.address) as h2:
        stream = h2.ask(method="CONNECT", authority=o.authority, end=False, pseudo=[(":protocol", "websocket")])
        response = h2.response(stream)
        assert response.status == 502 and "Sec-WebSocket-Accept" in response.get("proxy-status")
    until(lambda: c.metric("carpool_requests_total", origin=o.url, code="502") == 1, what="a failure of the origin")
    until(lambda: [row["fault"] for row in c.access_log()] == ["Sec-WebSocket-Accept does not match the key"], what="its line")


def test_a_websocket_offered_in_a_second_upgrade_field_is_forwarded(origin, carpool):
    def switches(exchange):
        exchange.send(SWITCH)
        return False
    o, c = origin(switches), carpool()
    with c.client() as raw:
        raw.send(b"GET %s/ HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nUpgrade: x-test\r\n\r\n" % o.url.encode())
        assert raw.response().status == 101
    assert o.seen[0].message.get("upgrade") == "x-test"


@pytest.mark.parametrize("scheme", ["ws", "WS"])
def test_ws_in_absolute_form_is_http(origin, carpool, scheme):
    o, c = origin(), carpool()
    with c.client() as raw:
        assert raw.get(o.url.replace("http", scheme) + "/x").status == 200
    assert o.seen[0].message.target == "/x"
    until(lambda: c.metric("carpool_requests_total", origin=o.url) == 1, what="a request of the http origin")


@pytest.mark.parametrize("ends", [False, True], ids=["open", "ended"])
def test_an_h2_tunnel_keeps_the_order_of_bytes_from_before_and_behind_its_opening(origin, carpool, ends):
    """The program is stopped while the 101 and late bytes arrive, so that it reads both in one iteration."""
    gate, switched, heard = threading.Event(), threading.Event(), []

    def switch(exchange):
        gate.wait(10)
        exchange.send(SWITCH)
        switched.set()
        heard.append(exchange.stream.exactly(14))
        if ends:
            assert exchange.stream.at_end()
        exchange.send(b"done")
        return False
    o, c = origin(switch), carpool(workers=1)
    with RawClient(c.address) as client:
        client.send(headers(1, block([(b":method", b"CONNECT"), (b":protocol", b"x-test"), (b":scheme", b"http"),
                                      (b":authority", o.authority.encode()), (b":path", b"/")]), end=False),
                    frame(DATA, 0, 1, b"EARLY-1;"))
        until(lambda: o.seen, what="the request")
        c.signal(signal.SIGSTOP)
        gate.set()
        assert switched.wait(10)
        client.send(frame(DATA, END_STREAM if ends else 0, 1, b"LATE-2"))
        c.signal(signal.SIGCONT)
        assert client.until(lambda: client.data[1] == b"done")
    assert heard == [b"EARLY-1;LATE-2"]


def test_an_upgrade_that_an_origin_without_http11_refuses_fails_no_other_request(carpool, pki, context, gate):
    context.set_alpn_protocols(["h2"])

    class Http2Only(H2Origin):
        """Answers a client that does not offer HTTP/2 as RFC 7301 requires, when the gate opens."""
        def _serve(self, sock):
            if b"\x02h2" in sock.recv(4096, socket.MSG_PEEK):
                return super()._serve(sock)
            gate.enter()
            sock.sendall(bytes([21, 3, 3, 0, 2, 2, 120]))
            sock.close()
    o = Http2Only(tls=context)
    try:
        c = carpool(pool={"size": 1}, upstream={"tls": {"ca_file": pki.ca}})
        with c.client() as first, c.client() as second:
            first.ask("GET", o.url + "/", [("Connection", "Upgrade"), ("Upgrade", "websocket")])
            gate.wait_for(1)
            second.ask("GET", o.url + "/")
            until(lambda: c.metric("carpool_pool_waiting", origin=o.url) == 2, what="both waiting")
            gate.open()
            refused = first.response()
            assert refused.status == 502 and "only HTTP/1.1 was offered" in refused.get("proxy-status")
            assert second.response().status == 200
        assert c.metric("carpool_pool_probing", origin=o.url) == 0
    finally:
        o.stop()
