"""HTTP/2 clients that attack: their connection ends and is counted, other clients are served as before, and memory is bounded."""
import contextlib
import pathlib
import signal
import statistics
import struct
import subprocess
import sys
import time

import pytest
from h2.settings import SettingCodes
from harness import attacks, late
from harness.carpool import TSAN
from harness.h2_client import HEADERS, WINDOW, Attacker, frame, headers, request
from harness.h2_origin import H2Origin
from harness.wait import until
from harness.wire import Client

CALM = 0xb
GROWTH = (100 if TSAN else 5) * 1024 * 1024  # TSan keeps several bytes for each
HELD = 24 * 1024  # of a stream that nobody reads: a window of 8 KiB, for which a string that doubles may have reserved 16 KiB, and objects
RESERVE = 4 * 1024 * 1024  # what an idle process keeps differs by 1 to 2 MiB: the allocator gives back only what is free at the end of its heap
exactly = pytest.mark.skipif(TSAN, reason="time and memory are TSan's")
ROUNDS, PHASE = 8, 0.15
SLICE = 0.003  # seconds of CPU time taken by another process
ATTEMPTS = 20  # noise of the machine only ever adds


def place(origin):
    return origin.authority.encode()


def names(attack):
    return getattr(attack, "__name__", attack)


@pytest.fixture
def warm(carpool, origin):
    """(carpool, origin, resident bytes): normal serving is not counted as the attack's."""
    o, c = origin(), carpool(log={"access": False})
    for _ in range(200):
        with Client(c.address) as client:
            assert client.get("/", host=o.authority).status == 200
    return c, o, c.rss()


@pytest.mark.parametrize("attack,kind", attacks.KINDS.items(), ids=names)
def test_an_attack_ends_its_own_connection_and_leaves_nothing(warm, attack, kind):
    c, o, before = warm
    for _ in range(3):
        attacker = Attacker(c.address)
        attack(attacker, place(o))
        assert attacker.goaway() in (CALM, None)  # None: the reset of its socket arrived first
    until(lambda: c.metric("carpool_downstream_h2_abuse_total", kind=kind) == 3, what="the count of attacks")
    assert c.rss() - before <= GROWTH


class Campaign:
    """Runs one attack after the other, in a process of its own."""

    def __init__(self, attack, c, o):
        self.process = subprocess.Popen(
            [sys.executable, "-B", "-m", "harness.attacks", attack.__name__, *map(str, c.address), o.authority],
            cwd=pathlib.Path(__file__).parent, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(30)

    def against(self, target):
        self.process.stdin.write(target + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"


def ask_on(client, o, times):
    end = time.monotonic() + PHASE
    while time.monotonic() < end:
        start = time.monotonic()
        assert client.get("/", host=o.authority).status == 200
        times.append(time.monotonic() - start)


def p99(times):
    return statistics.quantiles(times, n=100)[98]


def compare(campaign, client, o):
    """Returns (p99 without an attack, p99 under attack). Phases alternate, and in those without an attack the machine is as busy with an
    attack on a sink."""
    quiet, attacked = [], []
    for _ in range(ROUNDS):
        for target, times in ("sink", quiet), ("carpool", attacked):
            campaign.against(target)
            ask_on(client, o, times)
    return p99(quiet), p99(attacked)


@exactly
@pytest.mark.parametrize("attack", attacks.KINDS, ids=names)
def test_others_wait_at_most_twice_as_long_while_an_attack_goes_on(warm, attack):
    c, o, before = warm
    seen = []
    with Campaign(attack, c, o) as campaign, Client(c.address) as client:
        while not seen or (seen[-1][1] > 2 * seen[-1][0] + SLICE and len(seen) < ATTEMPTS):
            seen.append(compare(campaign, client, o))
    print("%s: %s" % (attack.__name__, ", ".join("p99 %.2f ms, attacked %.2f ms" % (1e3 * q, 1e3 * a) for q, a in seen)))
    quiet, attacked = seen[-1]
    assert attacked <= 2 * quiet + SLICE
    assert c.metric("carpool_downstream_h2_abuse_total", kind=attacks.KINDS[attack]) > 0
    assert c.rss() - before <= GROWTH


class Unread:
    """A client that sends many requests and reads no byte of any response."""

    def __init__(self, c, o, times=50):
        self.c, before = c, c.metric("carpool_pool_borrows_total")
        self.reader = Attacker(c.address, settings=b"\0\x04\0\0\0\0")  # a window of zero
        self.reader.send(b"".join(headers(stream, request(place(o))) for stream in range(1, 2 * times, 2)))
        until(lambda: c.metric("carpool_pool_borrows_total") >= before + times, what="the origin being asked")

    def leave(self):
        self.reader.sock.close()
        until(lambda: self.c.metric("carpool_pool_connections", state="borrowed") == 0, what="every connection given back")


@exactly
@pytest.mark.skipif(late.enabled, reason="its origin accepts late, so others wait for connections")
def test_others_wait_at_most_twice_as_long_for_readers_that_never_read(carpool, origin):
    o = origin(lambda exchange: exchange.reply(body=b"x" * (300_000 if exchange.request.get("via").startswith("2") else 100)))
    c = carpool(log={"access": False})
    with Client(c.address) as client:
        Unread(c, o).leave()
        before, seen = c.rss(), []
        while not seen or (seen[-1][1] > 2 * seen[-1][0] + SLICE and len(seen) < ATTEMPTS):
            quiet, attacked = [], []
            for _ in range(ROUNDS):
                ask_on(client, o, quiet)
                unread = Unread(c, o)
                ask_on(client, o, attacked)
                assert c.rss() - before <= GROWTH
                unread.leave()
            seen.append((p99(quiet), p99(attacked)))
    assert seen[-1][1] <= 2 * seen[-1][0] + SLICE, seen


# As many as a client may have open. Two loops and one connection: the streams of one of them come from the other by mail.
@exactly
@pytest.mark.parametrize("times", [50, 249])
@pytest.mark.parametrize("workers,size", [(1, 64), (2, 64), (2, 1)])
def test_readers_that_never_read_hold_a_narrow_window_where_the_origin_speaks_http2_too(carpool, workers, size, times):
    o = H2Origin(lambda stream: stream.reply(body=b"x" * 3_000_000), settings={SettingCodes.MAX_CONCURRENT_STREAMS: 300})
    try:
        c = carpool(workers=workers, upstream={"protocols": ["h2"]}, pool={"size": size, "max_streams": 300}, log={"access": False})
        with contextlib.ExitStack() as clients:
            for _ in range(2 * workers):  # by each loop: a client that stays makes the next one come to another
                client = clients.enter_context(Client(c.address))
                assert len(client.get("/", host=o.authority).body) == 3_000_000
        before = c.rss()
        for _ in range(2 * workers):
            unread = Unread(c, o, times)
            with Client(c.address) as client:  # the responses to all others arrived before this one's
                assert len(client.get("/", host=o.authority).body) == 3_000_000
            assert c.rss() - before <= times * HELD + RESERVE
            unread.leave()
    finally:
        o.stop()


@exactly
@pytest.mark.parametrize("times", [50, 249])
def test_readers_that_never_read_cost_little_and_are_ended(carpool, origin, times):
    body = b"x" * 3_000_000
    o = origin(lambda exchange: exchange.reply(body=body))
    c = carpool(pool={"size": 256}, listen={"idle_timeout": "2s"}, request={"idle_timeout": "2s"}, log={"access": False})
    with Client(c.address) as client:
        assert len(client.get("/", host=o.authority).body) == len(body)
    before = c.rss()
    reader = Unread(c, o, times).reader
    assert c.rss() - before <= GROWTH
    assert reader.goaway() in (0, CALM)
    until(lambda: c.metric("carpool_pool_connections", state="borrowed") == 0, what="every connection given back")
    assert c.rss() - before <= GROWTH


def test_a_client_that_reads_nothing_and_leaves_a_head_unfinished_is_ended(carpool, origin):
    o = origin(lambda exchange: exchange.reply(body=b"x" * 20_000_000))
    c = carpool(listen={"header_timeout": "300ms", "idle_timeout": "3s"}, request={"idle_timeout": "3s"})
    wide = (1 << 31) - 1
    attacker = Attacker(c.address, settings=struct.pack(">HI", SettingCodes.INITIAL_WINDOW_SIZE, wide))
    attacker.send(frame(WINDOW, 0, 0, struct.pack(">I", wide - 65_535)) + headers(1, request(place(o))))
    until(lambda: c.metric("carpool_pool_connections", state="borrowed") == 1, what="the origin being asked")
    attacker.send(frame(HEADERS, 0, 3, request(place(o))))
    until(lambda: c.metric("carpool_downstream_connections") == 0, what="the end of the connection")
    until(lambda: c.metric("carpool_pool_connections", state="borrowed") == 0, what="every connection given back")


def test_a_burst_of_requests_leaves_others_their_turn(carpool):
    # All of them are there before carpool looks, and those of HTTP/2 came first. The access log is in the order of service.
    c, streams = carpool(workers=1), 100
    line = request(b"a.test", method=b"OPTIONS", more=[(b"max-forwards", b"0")])
    crowd = [Attacker(c.address) for _ in range(10)]
    with c.client() as other:
        assert other.request("OPTIONS", "http://first.test/", [("Max-Forwards", "0")]).status == 200
        c.signal(signal.SIGSTOP)
        for attacker in crowd:
            attacker.send(b"".join(headers(1 + 2 * i, line) for i in range(streams)))
        other.ask("OPTIONS", "http://other.test/", [("Max-Forwards", "0")])
        c.signal(signal.SIGCONT)
        assert other.response().status == 200
        until(lambda: len(c.access_log()) > len(crowd) * streams, what="a line for each request")
    targets = [row["target"] for row in c.access_log()]
    assert targets.index("http://other.test/") < len(targets) / 2
    for attacker in crowd:
        attacker.sock.close()
