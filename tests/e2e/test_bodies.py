"""Bodies are streamed: memory is independent of their size, and a reader that stops stops its source."""
import os
import socket
import threading
import time
import zlib

import pytest
from harness.slow import Narrow
from harness.wait import until

MIB = 1 << 20
BLOCK = os.urandom(MIB)
GROWTH = 16 * MIB


@pytest.fixture
def blocks(full):
    """1 GiB, in the long form 10 GiB."""
    return 10240 if full else 1024


def checksum(count):
    crc = 0
    for _ in range(count):
        crc = zlib.crc32(BLOCK, crc)
    return crc


def read_blocks(stream, count, each=lambda: None):
    """Returns the checksum of this many blocks, read without keeping them."""
    crc = zlib.crc32(stream.buffer)
    left = count * MIB - len(stream.buffer)
    stream.buffer = b""
    room = bytearray(MIB)
    while left:
        got = stream.sock.recv_into(room, min(left, MIB))
        assert got, "%d bytes are missing" % left
        crc = zlib.crc32(memoryview(room)[:got], crc)
        before, left = left, left - got
        if before // (64 * MIB) != left // (64 * MIB):
            each()
    return crc


class Memory:
    def __init__(self, carpool):
        self._carpool, self._start, self.peak = carpool, carpool.rss(), 0

    def sample(self):
        self.peak = max(self.peak, self._carpool.rss() - self._start)


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_a_huge_response_passes_in_constant_memory(origin, carpool, blocks, framing):
    count = blocks if framing == "length" else blocks // 8

    def huge(exchange):
        if framing == "length":
            exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (count * MIB))
            for _ in range(count):
                exchange.send(BLOCK)
            return
        exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(count):
            exchange.send(b"%x\r\n%s\r\n" % (MIB, BLOCK))
        exchange.send(b"0\r\n\r\n")
    o, c = origin(huge), carpool()
    memory = Memory(c)
    with c.client() as client:
        client.ask("GET", o.url + "/huge")
        head = client.head()
        if framing == "length":
            assert int(head.get("content-length")) == count * MIB
            crc = read_blocks(client, count, memory.sample)
        else:
            crc = read_chunks(client, memory.sample)
    assert crc == checksum(count)
    assert memory.peak < GROWTH


def read_chunks(client, each):
    """Yields chunks as they arrive: a proxy may cut them anew."""
    crc, total = 0, 0
    while size := int(client.line(), 16):
        crc = zlib.crc32(client.exactly(size), crc)
        client.line()
        total += size
        if total % (64 * MIB) < size:
            each()
    return crc


def test_a_huge_request_passes_in_constant_memory(origin, carpool, blocks):
    def swallow(exchange):
        crc = read_blocks(exchange.stream, blocks)
        exchange.reply(body=b"%d" % crc)
    o, c = origin(swallow), carpool()
    memory = Memory(c)
    with c.client() as client:
        client.send(b"PUT %s/huge HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (o.url.encode(), blocks * MIB))
        for i in range(blocks):
            client.send(BLOCK)
            if i % 64 == 0:
                memory.sample()
        assert int(client.response().body) == checksum(blocks)
    assert memory.peak < GROWTH


def test_a_client_that_does_not_read_pauses_its_origin(origin, carpool):
    sent = [0]

    def endless(exchange):
        exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (1024 * MIB))
        while True:
            sent[0] += exchange.stream.sock.send(BLOCK)
    o, c = origin(endless), carpool()
    memory = Memory(c)
    clients = [c.client() for _ in range(4)]
    for client in clients:
        client.ask("GET", o.url + "/")

    def settled():
        """Waits until nothing has moved during many checks."""
        settled.looks = settled.looks + 1 if sent[0] == settled.last else 0
        settled.last = sent[0]
        return settled.looks >= 50
    settled.looks, settled.last = 0, -1
    until(settled, 20, "the origins' pause")
    memory.sample()
    assert memory.peak < GROWTH and sent[0] < 256 * MIB
    for client in clients:
        client.close()
    until(lambda: c.metric("carpool_pool_connections") == 0, what="the end of the broken connections")


def test_an_origin_that_does_not_read_pauses_its_client(origin, carpool):
    enough = threading.Event()

    def stubborn(exchange):
        enough.wait(30)
        return False
    o, c = origin(stubborn), carpool()
    memory = Memory(c)
    with c.client() as client:
        client.send(b"PUT %s/ HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (o.url.encode(), 1024 * MIB))
        client.sock.settimeout(1)
        sent = 0
        with pytest.raises(TimeoutError):
            while sent < 256 * MIB:
                sent += client.sock.send(BLOCK)
        memory.sample()
        enough.set()
    assert memory.peak < GROWTH


# ---- a body that arrives before its connection ----

@pytest.fixture
def busy(origin, gate):
    """An origin whose only connection is held until the gate opens, and the exchange that holds it."""
    def handler(exchange):
        exchange.read_body()
        if exchange.request.target == "/held":
            gate.enter()
        exchange.reply(body=b"%d" % len(exchange.request.body))
    o = origin(handler)

    def keep(c):
        holder = c.client()
        holder.ask("GET", o.url + "/held")
        gate.wait_for(1)
        return holder
    return o, keep


def waits(c, o):
    until(lambda: c.metric("carpool_pool_waiting", origin=o.url) == 1, what="a request in line")


def upload(client, o, size):
    """Sends on a thread of its own: the body may exceed what is read now."""
    head = b"PUT %s/ HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (o.url.encode(), size)
    threading.Thread(target=client.send, args=(head + BLOCK[:size],), daemon=True).start()


@pytest.mark.parametrize("size", [32, 120, 400, 1024])
def test_a_body_that_came_while_its_request_stood_in_line_is_sent_to_its_end(busy, carpool, gate, size):
    o, keep = busy
    c = carpool(pool={"size": 1, "wait_timeout": "60s"})
    with keep(c) as holder, c.client() as client:
        upload(client, o, size * 1024)
        waits(c, o)
        gate.open()
        assert holder.response().status == 200
        assert client.response().body == b"%d" % (size * 1024)


def test_a_body_behind_its_head_arrives_though_nothing_is_kept_for_a_replay(busy, carpool, gate):
    o, keep = busy
    c = carpool(pool={"size": 1, "wait_timeout": "60s"}, request={"replay_buffer": "0"})
    with keep(c) as holder, c.client() as client:
        client.send(b"PUT %s/ HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n" % o.url.encode())
        waits(c, o)
        client.send(b"0123456789")
        gate.open()
        assert holder.response().status == 200
        assert client.response().body == b"10"


def test_a_body_cut_short_by_its_client_is_answered_and_that_is_the_end(origin, carpool):
    o, c = origin(), carpool(listen={"idle_timeout": "60s"})
    with c.client() as client:
        client.send(b"PUT %s/ HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc" % o.url.encode())
        client.sock.shutdown(socket.SHUT_WR)
        assert client.response().status == 400
        assert client.at_end()


# ---- clients that read slowly ----

def test_the_end_of_a_response_waits_for_a_client_that_pauses(origin, carpool):
    def until_close(exchange):
        exchange.send(b"HTTP/1.1 200 OK\r\n\r\n" + b"z" * int(exchange.request.target[1:]))
        return False
    o, c = origin(until_close), carpool(listen={"idle_timeout": "1s"})
    sizes = range(2_600_000, 3_100_000, 40_000)  # around what kernels take, so that some end in the proxy's own memory
    clients = {size: Narrow(c.address) for size in sizes}
    for size, client in clients.items():
        client.send(b"GET %s/%d HTTP/1.0\r\n\r\n" % (o.url.encode(), size))
    for _ in range(3):  # the program's own clock: idle clients are closed
        with c.client() as is_idle:
            assert is_idle.get(o.url + "/1").status == 200
            with c.client() as other:
                assert other.at_end()
    for size, client in clients.items():
        with client:
            client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, MIB)
            assert len(client.response().body) == size


def test_a_client_that_reads_slowly_but_steadily_is_not_silent(origin, carpool):
    def large(exchange):
        exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (30 * MIB) + BLOCK * 30)
    o = origin(large)

    def served(idle):
        """Returns whether the response continues for five idle timeouts."""
        c = carpool(request={"idle_timeout": "%dms" % (idle * 1000)})
        with Narrow(c.address) as client:
            client.send(b"GET %s/ HTTP/1.1\r\nHost: x\r\n\r\n" % o.url.encode())
            end = time.monotonic() + 5 * idle

            def a_little():
                try:
                    return time.monotonic() > end or not client.sock.recv(5000)
                except ConnectionResetError:
                    return True
            until(a_little, seconds=10 * idle + 10, what="five idle timeouts")
            client.reset()
        return time.monotonic() > end and "fault" not in c.tail()
    # A machine with too much to do stops the reader itself for longer than a short timeout.
    assert any(served(idle) for idle in (0.3, 1.2, 4.8))
