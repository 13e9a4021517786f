"""Clients of HTTP/2 that attack: their connection ends and is counted, the others are served as before, and memory
stays where it was."""
import statistics
import threading
import time

import pytest
from harness.h2_client import (CONTINUATION, DATA, END_HEADERS, HEADERS, PING, RST, SETTINGS, WINDOW, Attacker, block, frame,
                               headers, request, text)
from harness.wait import until
from harness.wire import Client

CALM = 0xb
GROWTH = 5 * 1024 * 1024
PLENTY = 20_000


def place(origin):
    return origin.authority.encode()


def numbers():
    return range(1, 2 * PLENTY, 2)


def rapid_reset(attacker, authority):
    head = request(authority)
    for stream in numbers():
        if not attacker.send(headers(stream, head) + frame(RST, 0, stream, b"\0\0\0\x08")):
            return


def made_you_reset(attacker, authority):
    head = request(authority)
    for stream in numbers():
        if not attacker.send(headers(stream, head) + frame(WINDOW, 0, stream, b"\x7f\xff\xff\xff")):
            return


def continuations(attacker, authority):
    attacker.send(frame(HEADERS, 1, 1, request(authority)))
    while attacker.send(frame(CONTINUATION, 0, 1, block([(b"x", b"y")])) * 100):
        pass


def settings(attacker, _):
    for _ in range(PLENTY):
        if not attacker.send(frame(SETTINGS, 0, 0) * 10):
            return


def pings(attacker, _):
    for _ in range(PLENTY):
        if not attacker.send(frame(PING, 0, 0, b"12345678") * 10):
            return


def empty_data(attacker, authority):
    attacker.send(headers(1, request(authority, method=b"POST"), end=False))
    for _ in range(PLENTY):
        if not attacker.send(frame(DATA, 0, 1) * 10):
            return


def hpack_bomb(attacker, authority):
    entry = b"\x40" + text(b"x") + text(b"v" * 4000)
    for stream in range(1, 40, 2):
        bomb = request(authority) + (entry if stream == 1 else b"") + b"\xbe" * 8000
        if not attacker.send(frame(HEADERS, 1 | END_HEADERS, stream, bomb)):
            return


ATTACKS = [(rapid_reset, "resets"), (made_you_reset, "resets"), (continuations, "continuations"), (settings, "control"),
           (pings, "control"), (empty_data, "control"), (hpack_bomb, "header_list")]


class Others(threading.Thread):
    """A client that asks on and on, and how long it waits."""

    def __init__(self, carpool, origin):
        super().__init__(daemon=True)
        self.carpool, self.origin, self.stopped, self.times, self.wrong = carpool, origin, False, [], 0

    def run(self):
        with Client(self.carpool.address) as client:
            while not self.stopped:
                start = time.monotonic()
                self.wrong += client.get("/", host=self.origin.authority).status != 200
                self.times.append(time.monotonic() - start)

    def stop(self):
        self.stopped = True
        self.join(20)


@pytest.mark.parametrize("attack,kind", ATTACKS, ids=[a.__name__ for a, _ in ATTACKS])
def test_an_attack_ends_its_own_connection_alone(carpool, origin, attack, kind):
    o, c = origin(), carpool(log={"access": False})
    for _ in range(200):  # what serving costs anyway is not the attack's
        with Client(c.address) as client:
            assert client.get("/", host=o.authority).status == 200
    before = c.rss()
    others = Others(c, o)
    others.start()
    until(lambda: len(others.times) > 50, what="others being served")
    for _ in range(3):
        attacker = Attacker(c.address)
        attack(attacker, place(o))
        assert attacker.goaway() in (CALM, None)  # None: the reset of its socket overtook it
    others.stop()
    assert others.wrong == 0
    until(lambda: c.metric("carpool_downstream_h2_abuse_total", kind=kind) == 3, what="the count of attacks")
    assert c.rss() - before <= GROWTH
    assert max(others.times) < 2 and statistics.median(others.times) < 0.1


def test_readers_that_never_read_cost_little_and_are_ended(carpool, origin):
    body = b"x" * 3_000_000
    o = origin(lambda exchange: exchange.reply(body=body))
    c = carpool(listen={"idle_timeout": "2s"}, request={"idle_timeout": "2s"}, log={"access": False})
    with Client(c.address) as client:
        assert len(client.get("/", host=o.authority).body) == len(body)
    before = c.rss()
    reader = Attacker(c.address, settings=b"\0\x04\0\0\0\0")  # a window of nothing
    reader.send(b"".join(headers(stream, request(place(o))) for stream in range(1, 101, 2)))
    until(lambda: c.metric("carpool_pool_borrows_total") >= 51, what="the origin being asked")
    assert c.rss() - before <= GROWTH
    assert reader.goaway() in (0, CALM)
    until(lambda: c.metric("carpool_pool_connections", state="borrowed") == 0, what="every connection given back")
    assert c.rss() - before <= GROWTH
