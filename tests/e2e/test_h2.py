"""HTTP/2 clients with prior knowledge and HTTP/1.1 origins: the translation of each form of a request."""
import signal
import socket
import threading

import h2.settings
from harness.h2_client import HEADERS, PING, PREFACE, H2Client, block, frame, headers, request
from harness.h2_raw import ACK, RawClient
from harness.origin import Gate, hello
from harness.ports import free_port, tcp_server
from harness.wait import until
from harness.wire import Client

BIG = 700_000


def place(origin):
    """Returns its :authority."""
    return "127.0.0.1:%d" % origin.port


def behind(gate):
    """Responds once the gate is open."""
    def wait(exchange):
        gate.enter()
        exchange.reply()
    return wait


def test_a_request_reaches_its_authority_and_its_answer_comes_back(carpool, origin):
    o, c = origin(hello), carpool()
    with H2Client(c.address) as client:
        response = client.get("/x?q", authority=place(o), headers=[("cookie", "a=1"), ("cookie", "b=2"), ("te", "trailers")])
    assert response.status == 200 and response.ended
    seen = o.seen[-1].message
    assert seen.target == "/x?q" and seen.get("host") == place(o)
    assert seen.get("cookie") == "a=1; b=2"
    assert seen.get("te") == "trailers" and "TE" in seen.get("connection")
    assert c.metric("carpool_requests_total", code="200") == 1


def test_a_listener_with_an_origin_sends_everything_there(carpool, origin):
    o = origin(hello)
    c = carpool(listen={"origin": "http://" + o.authority})
    with H2Client(c.address) as client:
        for authority in (place(o), "%s:%d" % c.address, "localhost:%d" % c.address[1]):
            assert client.get("/y", authority=authority).status == 200, authority
    assert {seen.message.get("host") for seen in o.seen} == {place(o)}


def test_an_authority_that_contradicts_host_is_misdirected(carpool, origin):
    o, c = origin(hello), carpool()
    with H2Client(c.address) as client:
        client.h2.config.validate_outbound_headers = False
        client.h2.config.normalize_outbound_headers = False
        response = client.get("/", authority=place(o), headers=[("host", "other.test")])
        assert response.status == 421
        assert client.get("/", authority=place(o), headers=[("host", place(o))]).status == 200
    assert len(o.seen) == 1


def test_a_connect_whose_authority_contradicts_host_is_misdirected(carpool):
    with tcp_server() as server:
        target, c = b"127.0.0.1:%d" % server.getsockname()[1], carpool()
        said = {b"other.test": 421, b"127.0.0.1:1": 421, target: 200, b"127.0.0.1": 200}
        with RawClient(c.address) as client:
            for stream, host in zip(range(1, 9, 2), said):
                fields = [(b":method", b"CONNECT"), (b":authority", target), (b"host", host)]
                client.send(headers(stream, block(fields), end=False))
                assert client.until(lambda stream=stream: client.heads[stream]) and client.status(stream) == said[host], host


def test_many_streams_of_one_client_are_answered_each_with_its_own(carpool, origin):
    gate = Gate()

    def echo(exchange):
        gate.enter()
        exchange.reply(body=exchange.request.target.encode())
    o, c = origin(echo), carpool()
    with H2Client(c.address) as client:
        streams = {client.ask("/%d" % i, authority=place(o)): i for i in range(40)}
        gate.wait_for(40)
        gate.open()
        for stream, i in streams.items():
            assert client.response(stream).body == b"/%d" % i


def test_streams_beyond_the_limit_of_a_connection_are_refused_and_counted(carpool, origin):
    gate = Gate()
    o, c = origin(behind(gate)), carpool(pool={"wait_timeout": "60s"})
    with RawClient(c.address) as client:
        client.send(b"".join(headers(1 + 2 * i, request(place(o).encode())) for i in range(300)))
        until(lambda: c.metric("carpool_downstream_limits_total", limit="streams") == 50, what="those above 250")
        gate.open()
        until(lambda: c.metric("carpool_requests_total", origin=o.url, code="200") == 250, what="the responses to the others")


def test_a_head_that_does_not_end_is_counted_and_is_the_reason_why_the_other_requests_end(carpool, origin):
    gate = Gate()
    o, c = origin(behind(gate)), carpool(listen={"header_timeout": "300ms"})
    line = request(place(o).encode())
    with RawClient(c.address) as client:
        client.send(headers(1, line))
        gate.wait_for(1)
        client.send(frame(HEADERS, 0, 3, line))
        until(lambda: len(c.access_log()) == 2, what="a line for each")
    said = {row["status"]: row["fault"] for row in c.access_log()}
    assert said == {408: "header_timeout passed inside a request's head",
                    499: "listen.header_timeout passed inside another request's head while waiting for the response head"}
    assert c.metric("carpool_requests_total", origin="none", code="408") == 1
    gate.open()


def test_bodies_pass_both_ways_through_the_windows(carpool, origin):
    def echo(exchange):
        exchange.read_body()
        exchange.reply(body=exchange.request.body)
    o, c = origin(echo), carpool()
    data = bytes(range(256)) * (BIG // 256)
    for length in (True, False):
        with H2Client(c.address) as client:
            stream = client.ask("/up", "POST", place(o), [("content-length", str(len(data)))] if length else [], end=False)
            client.send(stream, data, end=True)
            assert client.response(stream).body == data


def test_head_errors_and_empty_answers_end_their_streams(carpool, origin):
    o, c = origin(hello), carpool()
    with H2Client(c.address) as client:
        response = client.get("/", "HEAD", place(o))
        assert response.status == 200 and response.body == b"" and response.ended
        response = client.get("/", authority="127.0.0.1:%d" % free_port())
        assert response.status == 502 and "connection_refused" in response.get("proxy-status")


def test_a_client_that_takes_its_request_back_frees_its_connection(carpool, origin):
    gate = Gate()
    o, c = origin(behind(gate)), carpool()
    with H2Client(c.address) as client:
        stream = client.ask("/", authority=place(o))
        gate.wait_for(1)
        client.h2.reset_stream(stream)
        client.flush()
        until(lambda: c.metric("carpool_requests_total", code="499") == 1, what="the request's end")
        gate.open()
        assert client.get("/again", authority=place(o)).status == 200
    assert c.metric("carpool_pool_connections", state="borrowed") == 0


def test_connect_is_a_tunnel_with_two_ends(carpool):
    with tcp_server() as server:
        def serve():
            peer, _ = server.accept()
            with peer:
                data = b""
                while more := peer.recv(4096):
                    data += more
                peer.sendall(b"got " + data)  # after the client's END_STREAM
        threading.Thread(target=serve, daemon=True).start()
        c = carpool()
        with H2Client(c.address) as client:
            target = "127.0.0.1:%d" % server.getsockname()[1]
            stream = client.ask(method="CONNECT", authority=target, end=False)
            client.send(stream, b"early ")
            client.until(lambda: client.responses[stream].headers)
            assert client.responses[stream].status == 200
            client.send(stream, b"late", end=True)
            response = client.response(stream)
            assert response.body == b"got early late" and response.reset is None


def test_bytes_sent_before_a_tunnel_stands_arrive_unchanged(carpool):
    early = b"".join(b"%07d\n" % row for row in range(3000))
    got = []
    with tcp_server() as server:
        def serve():
            peer, _ = server.accept()
            with peer:
                data = b""
                while more := peer.recv(65536):
                    data += more
                got.append(data)
                peer.sendall(b"%d" % len(data))
        threading.Thread(target=serve, daemon=True).start()
        c = carpool()
        with H2Client(c.address) as client:
            stream = client.ask(method="CONNECT", authority="127.0.0.1:%d" % server.getsockname()[1], end=False)
            client.send(stream, early, end=True)
            assert client.response(stream).body == b"%d" % len(early)
            assert got == [early]


def test_websocket_by_extended_connect_meets_an_origin_of_http1(carpool):
    server = __import__("pytest").importorskip("websockets.sync.server")
    frames = __import__("websockets.frames", fromlist=["Frame"])

    def talk(connection):
        for message in connection:
            connection.send(message.upper())
    running = server.serve(talk, "127.0.0.1", 0)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    try:
        c = carpool()
        with H2Client(c.address) as client:
            client.until(lambda: client.settings)
            assert client.settings[h2.settings.SettingCodes.ENABLE_CONNECT_PROTOCOL] == 1
            stream = client.ask("/chat", "CONNECT", "127.0.0.1:%d" % running.socket.getsockname()[1],
                                [("sec-websocket-version", "13")], end=False, pseudo=[(":protocol", "websocket")])
            client.until(lambda: client.responses[stream].headers)
            assert client.responses[stream].status == 200
            assert client.responses[stream].get("sec-websocket-accept") is None
            client.send(stream, frames.Frame(frames.Opcode.TEXT, b"hello").serialize(mask=True))
            client.until(lambda: len(client.responses[stream].body) >= 7)
            assert client.responses[stream].body.endswith(b"HELLO")
            client.send(stream, frames.Frame(frames.Opcode.CLOSE, b"\x03\xe8").serialize(mask=True), end=True)
            client.response(stream)
    finally:
        running.shutdown()


def test_a_preface_in_pieces_and_a_method_that_begins_like_it(carpool, origin):
    o, c = origin(hello), carpool()
    with socket.create_connection(c.address, 20) as sock:
        for i in range(len(PREFACE)):
            sock.sendall(PREFACE[i:i + 1])
        sock.sendall(b"\0\0\0\4\0\0\0\0\0")
        assert sock.recv(9)[3] == 4
    with Client(c.address) as client:
        client.sock.sendall(b"P")
        client.sock.sendall(b"RI")
        client.sock.sendall(b"NT /x HTTP/1.1\r\nHost: %s\r\n\r\n" % place(o).encode())
        assert client.response().status == 200


def test_an_end_that_waits_for_a_window_does_not_keep_its_stream(carpool, origin):
    held, rest = Gate(), Gate()

    def handler(exchange):
        if exchange.request.target == "/held":
            held.enter()
            return exchange.reply()
        exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        rest.enter()
        return exchange.send(b"0\r\n\r\n")
    o, c = origin(handler), carpool(listen={"idle_timeout": "300ms"})
    authority = place(o).encode()
    with RawClient(c.address, settings=b"\0\4" + (5).to_bytes(4, "big"), generous=False) as client:
        client.send(headers(1, request(authority, b"/held")), headers(3, request(authority, b"/")))
        held.wait_for(1)
        assert client.until(lambda: client.data[3] == b"hello")
        rest.open()
        assert client.until(lambda: 3 in client.resets), "its window does not open"
        held.open()
        assert client.over(1) and client.status(1) == 200


def test_draining_says_goaway_twice_and_finishes_what_runs(carpool, origin):
    gate = Gate()
    o, c = origin(behind(gate)), carpool()
    with H2Client(c.address) as client:
        stream = client.ask("/", authority=place(o))
        gate.wait_for(1)
        c.signal(signal.SIGTERM)
        client.until(lambda: len(client.goaways) == 2)
        assert [code for _, code in client.goaways] == [0, 0]
        assert client.goaways[0][0] == 2**31 - 1 and client.goaways[1][0] == stream
        gate.open()
        assert client.response(stream).status == 200
        client.until(lambda: client.closed)
    assert c.wait() == 0


class LateClient(RawClient):
    """Keeps the acknowledgement of a PING back."""
    ping = None

    def note(self, kind, flags, stream, payload):
        if kind == PING and not flags & ACK:
            self.ping = payload
        else:
            super().note(kind, flags, stream, payload)


def test_a_request_that_the_final_goaway_excludes_reaches_no_origin(carpool, origin):
    """It crosses the GOAWAY, and its client would send it again elsewhere."""
    gate = Gate()
    o, c = origin(behind(gate)), carpool()
    with LateClient(c.address) as client:
        client.send(*[headers(stream, request(place(o).encode(), b"/%d" % stream)) for stream in (1, 3)])
        gate.wait_for(2)
        gate.let(1)
        assert client.until(lambda: client.ended)  # its connection to the origin is idle
        c.signal(signal.SIGTERM)
        assert client.until(lambda: client.ping)
        client.send(frame(PING, ACK, 0, client.ping) + headers(5, request(place(o).encode(), b"/late", b"POST")))
        assert client.until(lambda: len(client.goaways) == 2) and client.goaways[1] == (3, 0)
        gate.open()
        assert client.over(1) and client.over(3)
        client.until(lambda: False)
        assert not client.heads[5] and not client.resets
    assert sorted(seen.message.target for seen in o.seen) == ["/1", "/3"]
    assert c.wait() == 0
