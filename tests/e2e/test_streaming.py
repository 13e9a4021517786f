"""profile = "streaming": event streams, gRPC calls and upgraded connections may be silent; a receiver that does not read ends them as
before."""
import contextlib
import os
import pathlib
import signal
import socket
import struct
import threading

from harness.h2_client import H2Client
from harness.h2_origin import H2Origin
from harness.wait import until

IDLE = {"idle_timeout": "300ms"}
CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n"
STREAMS = 100


def chunk(text):
    return b"%x\r\n%s\r\n" % (len(text), text)


def talking(gate):
    """/quick answers at once; /switch switches protocols; any other target is the media type of a chunked response whose second part comes when the gate opens."""
    def handler(exchange):
        exchange.read_body()
        target = exchange.request.target
        if target == "/quick":
            return exchange.reply()
        if target == "/switch":
            exchange.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x-test\r\n\r\nfirst")
            gate.enter()
            exchange.send(b"second")
            return False
        exchange.send(CHUNKED % target[1:].encode() + chunk(b"first"))
        gate.enter()
        return exchange.send(chunk(b"second") + b"0\r\n\r\n")
    return handler


def begun(c, url, headers=()):
    """A client whose response has begun."""
    client = c.client()
    client.ask("GET", url, headers)
    assert client.head().status in (200, 101)
    return client


def silence_passes(c, o, times=3):
    """The program's own clock: as often, one after the other, a response that is no stream is ended by idle_timeout."""
    for _ in range(times):
        with c.client() as client:
            client.ask("GET", o.url + "/text/plain")
            response = client.response()
            assert response.status == 200 and not response.complete, "its silence ended it"


def test_an_event_stream_may_be_silent_and_other_responses_may_not(origin, carpool, gate):
    o, plain = origin(talking(gate)), origin(talking(gate))
    c = carpool(request=IDLE, origin=[{"uri": o.url, "profile": "streaming"}])
    streams = [begun(c, o.url + "/" + kind) for kind in ("text/event-stream", "Text/Event-Stream;x=y")]
    switched = begun(c, o.url + "/switch", [("Connection", "Upgrade"), ("Upgrade", "x-test")])
    silence_passes(c, o)
    with begun(c, plain.url + "/text/event-stream") as ended:
        ended.exactly(len(chunk(b"first")))
        assert not ended.more(), "without the profile"
    gate.open()
    for client in streams:
        assert client.exactly(len(chunk(b"first") + chunk(b"second"))) == chunk(b"first") + chunk(b"second")
        client.close()
    assert switched.exactly(11) == b"firstsecond"
    switched.close()


def test_each_event_arrives_before_the_next_is_sent(origin, carpool):
    told = threading.Semaphore(0)

    def ticks(exchange):
        exchange.send(CHUNKED % b"text/event-stream")
        for n in range(50):
            exchange.send(chunk(b"data: %d\n\n" % n))
            if not told.acquire(timeout=20):
                return False
        return exchange.send(b"0\r\n\r\n")
    o = origin(ticks)
    c = carpool(origin=[{"uri": o.url, "profile": "streaming"}])
    client = begun(c, o.url + "/")
    for n in range(50):
        text = chunk(b"data: %d\n\n" % n)
        assert client.exactly(len(text)) == text
        told.release()
    assert client.exactly(5) == b"0\r\n\r\n"
    client.close()
    with H2Client(c.address) as two:
        stream = two.ask(authority=o.authority)
        for n in range(50):
            until(lambda: two.responses[stream].body.endswith(b"data: %d\n\n" % n) or two.read(), what="event %d" % n)
            told.release()
        assert two.response(stream).ended


def test_a_grpc_call_may_be_silent_before_and_within_its_response(carpool):
    grpc = [("content-type", "application/grpc")]
    go = {name: threading.Event() for name in ("/head", "/body")}

    def handler(stream):
        path = stream.pseudo[":path"]
        if path == "/head":
            go[path].wait(30)
        stream.head(headers=grpc)
        if path == "/body":
            go[path].wait(30)
        stream.data(b"\0\0\0\0\0")
        stream.end([("grpc-status", "0")])
    o = H2Origin(handler)
    c = carpool(request={**IDLE, "response_header_timeout": "300ms"}, upstream={"protocols": ["h2"]},
                origin=[{"uri": o.url, "profile": "streaming"}])
    with H2Client(c.address) as client, H2Client(c.address) as other:
        calls = [client.ask(path, "POST", o.authority, grpc) for path in ("/head", "/body")]
        o.wait_for(lambda: len(o.seen) == 2)
        for _ in range(3):  # another kind of request to the same origin is ended each time
            assert other.get("/head", authority=o.authority).status == 504
        for event in go.values():
            event.set()
        for call in calls:
            response = client.response(call)
            assert (response.status, dict(response.trailers)["grpc-status"]) == (200, "0")
    o.stop()


def test_a_client_that_takes_nothing_is_ended_though_it_has_a_stream(origin, carpool):
    def floods(exchange):
        exchange.send(CHUNKED % b"text/event-stream")
        try:
            while True:
                exchange.send(chunk(b"x" * 65536))
        except OSError:
            return False
    o = origin(floods)
    c = carpool(request=IDLE, origin=[{"uri": o.url, "profile": "streaming"}])
    client = begun(c, o.url + "/")
    until(lambda: any("request.idle_timeout passed" in row.get("fault", "") for row in c.access_log()), what="the end of it")
    assert c.metric("carpool_downstream_given_up_total", reason="unread") == 1
    client.close()


def keepalive_of(c, remote):
    """Whether the kernel probes carpool's connections to this address (the timer of /proc/net/tcp)."""
    key = "%08X:%04X" % (struct.unpack("=I", socket.inet_aton(remote[0]))[0], remote[1])
    own = set()
    for entry in pathlib.Path("/proc/%d/fd" % c.process.pid).iterdir():
        with contextlib.suppress(FileNotFoundError):  # carpool closed it meanwhile
            own.add(os.readlink(entry))
    with open("/proc/net/tcp") as table:
        rows = {line.split()[9]: line.split() for line in table}  # by its inode: a row may be read twice
    return [row[5][:2] for inode, row in rows.items() if row[2] == key and row[3] == "01" and "socket:[%s]" % inode in own]


def test_both_ends_of_a_stream_are_probed_by_the_kernel(origin, carpool, gate):
    o = origin(talking(gate))
    c = carpool(origin=[{"uri": o.url, "profile": "streaming"}])
    with begun(c, o.url + "/text/event-stream") as client:
        client.exactly(len(chunk(b"first")))
        until(lambda: keepalive_of(c, client.sock.getsockname()) == ["02"], what="a keep-alive timer on the client's connection")
        assert keepalive_of(c, remote=("127.0.0.1", o.port)) == ["02"]


def test_a_drain_ends_streams_last_and_visibly(origin, carpool, gate):
    events = threading.Event()

    def both(exchange):
        if exchange.request.target == "/running":
            gate.enter()
            return exchange.reply()
        exchange.send(CHUNKED % b"text/event-stream" + chunk(b"first"))
        events.wait(30)
        exchange.send(chunk(b"second"))
        return exchange.stream.more() and False  # it never ends its stream
    o = origin(both)
    c = carpool(shutdown_grace="5s", origin=[{"uri": o.url, "profile": "streaming"}])
    stream, running = begun(c, o.url + "/"), c.client()
    running.ask("GET", o.url + "/running")
    gate.wait_for(1)
    c.signal(signal.SIGTERM)
    until(lambda: c.admin("GET", "/readyz").status == 503, what="readyz 503")
    gate.let(1)
    assert running.response().status == 200
    events.set()
    assert stream.exactly(len(chunk(b"first") + chunk(b"second"))).endswith(chunk(b"second")), "it outlives the others"
    assert c.wait(20) == 0
    assert not stream.more(), "its end shows: there was no last chunk"
    running.close()
    stream.close()


def test_many_streams_stay_beside_other_requests_and_cost_little_memory(origin, carpool, gate):
    o = origin(talking(gate))
    c = carpool(pool={"size": STREAMS + 10}, request=IDLE, origin=[{"uri": o.url, "profile": "streaming"}])
    with c.client() as client:
        assert client.get(o.url + "/quick").status == 200
        before = c.rss()
        streams = [begun(c, o.url + "/text/event-stream") for _ in range(STREAMS)]
        for _ in range(200):
            assert client.get(o.url + "/quick").status == 200
        silence_passes(c, o, 2)
        assert (c.rss() - before) / STREAMS < 48 * 1024, "bytes for each stream, both connections included"
    gate.open()
    for stream in streams:
        assert stream.exactly(len(chunk(b"first") + chunk(b"second"))).endswith(chunk(b"second"))
        stream.close()
