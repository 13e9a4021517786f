#!/usr/bin/env python3
"""Is the advice of /pools/{origin}/advice kept? Thirty generated loads: steady, bursty, diurnal, a slow origin, and HTTP/2.

    tests/bench/advice.py [--program PATH] [--only KIND] [--loads 30] [--seconds 6]

Each load runs three times against a carpool of its own: with a small pool, whose advice for a stated wait is taken; with the
advised size; and with half of it. The promise holds if the waits that the access log reports have a 99th percentile of at most
twice the stated wait with the advised size, and more than that with half of it. Prints one row a load, and the sums."""
import argparse
import asyncio
import json
import math
import os
import pathlib
import random
import resource
import sys
import tempfile
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

import h2.config  # noqa: E402
import h2.connection  # noqa: E402
import h2.events  # noqa: E402

KINDS = ("steady", "bursty", "diurnal", "slow", "h2")
STREAMS = 4  # of each HTTP/2 connection
TOLERANCE = 2


async def pace(seconds):
    """The load's own time: nothing is waited for."""
    try:
        await asyncio.wait_for(asyncio.Event().wait(), max(seconds, 0))
    except asyncio.TimeoutError:
        pass


class Load:
    """One generated load: what the clients do and how long the origin takes."""

    def __init__(self, kind, number):
        self.kind, self.number = kind, number
        draw = self.draw = random.Random("%s %d" % (kind, number))
        self.hold = draw.choice((0.02, 0.03, 0.05, 0.08))
        self.rate = draw.choice((60, 100, 150))
        if kind == "slow":
            self.hold, self.rate = draw.choice((0.2, 0.3, 0.5)), draw.choice((20, 30, 40))
        self.clients = draw.choice((16, 24, 40))
        self.wait = draw.choice((0.01, 0.02, 0.04)) if kind != "slow" else draw.choice((0.05, 0.1))

    def service(self):
        """Returns how long the origin takes for one request: half of it is fixed, half is exponential."""
        return self.hold * (0.5 + 0.5 * self.draw.expovariate(1))

    def arrivals(self, seconds):
        """Returns the times of requests from outside: one Poisson process."""
        times, now = [], 0.0
        while now < seconds:
            rate = self.rate
            if self.kind == "diurnal":
                rate *= 1 + 0.9 * math.sin(2 * math.pi * now / seconds)
            now += self.draw.expovariate(max(rate, 1))
            times.append(now)
        return times


async def serve_h1(load, reader, writer):
    try:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            await pace(load.service())
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
        writer.close()


async def serve_h2(load, reader, writer):
    wire = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
    wire.initiate_connection()
    writer.write(wire.data_to_send())

    async def respond(stream):
        await pace(load.service())
        wire.send_headers(stream, [(":status", "200"), ("content-length", "2")])
        wire.send_data(stream, b"ok", end_stream=True)
        writer.write(wire.data_to_send())
    tasks = set()
    try:
        while data := await reader.read(65536):
            for event in wire.receive_data(data):
                if isinstance(event, h2.events.RequestReceived):
                    tasks.add(asyncio.ensure_future(respond(event.stream_id)))
            writer.write(wire.data_to_send())
    except (asyncio.CancelledError, ConnectionError):
        pass
    writer.close()


class Clients:
    """Keep-alive connections to carpool; each request uses an idle one."""

    def __init__(self, address, target):
        self.address, self.target, self.free = address, target, []

    async def ask(self):
        reader, writer = self.free.pop() if self.free else await asyncio.open_connection(*self.address)
        writer.write(b"GET %s HTTP/1.1\r\nHost: o\r\n\r\n" % self.target)
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(head.decode())
        await reader.readexactly(2)
        self.free.append((reader, writer))

    async def burst(self, load):
        """Each client asks some times, one after the other, and then the application is still for a while."""
        async def one():
            for _ in range(6):
                await self.ask()
        await asyncio.gather(*[one() for _ in range(load.clients)])

    async def run(self, load, seconds):
        if load.kind == "bursty":
            for _ in range(4):
                await self.burst(load)
                await pace(seconds / 5)
            return
        begin, asked = asyncio.get_running_loop().time(), []
        for when in load.arrivals(seconds):
            await pace(begin + when - asyncio.get_running_loop().time())
            asked.append(asyncio.ensure_future(self.ask()))
        await asyncio.gather(*asked)


def waits(carpool):
    """Returns the waits of all requests, as the access log reports them."""
    found = []
    for line in list(carpool.output):
        if '"wait_seconds"' in line or '"status":200' in line:
            found.append(json.loads(line).get("wait_seconds", 0))
    return sorted(found)


async def play(load, size, seconds, advise):
    """Returns the advice, or None, and the 99th percentile of the waits with this size."""
    from harness.carpool import Carpool
    server = await asyncio.start_server(lambda r, w: (serve_h2 if load.kind == "h2" else serve_h1)(load, r, w), "127.0.0.1", 0, backlog=512)
    origin = "http://127.0.0.1:%d" % server.sockets[0].getsockname()[1]
    protocols = ["h2"] if load.kind == "h2" else ["h1"]
    with tempfile.TemporaryDirectory(prefix="advice-") as folder:
        carpool = Carpool(folder, pool={"size": size, "max_streams": STREAMS, "wait_timeout": "60s", "max_waiting": 4096},
                          upstream={"protocols": protocols})
        try:
            await Clients(carpool.address, origin.encode() + b"/").run(load, seconds)
            loop = asyncio.get_running_loop()
            path = "/pools/%s/advice?wait=%dms" % (urllib.parse.quote(origin, safe=""), load.wait * 1000)
            said = await loop.run_in_executor(None, carpool.get_json, path) if advise else None
        finally:
            carpool.stop()
        server.close()
        measured = waits(carpool)
    return said, measured[math.ceil(len(measured) * 0.99) - 1]


def judge(load, seconds):
    small = max(1, math.ceil(load.rate * load.hold / 2)) if load.kind != "h2" else 1
    said, before = asyncio.run(play(load, small, seconds, True))
    size = said["advice"]["recommended"]["size"]
    _, kept = asyncio.run(play(load, size, seconds, False))
    _, half = asyncio.run(play(load, max(1, size // 2), seconds, False)) if size > 1 else (None, math.inf)
    limit = TOLERANCE * load.wait
    row = (load.kind, load.number, load.wait * 1e3, small, before * 1e3, size, kept * 1e3, half * 1e3, kept <= limit, half > limit)
    print("%-8s %2d  wait %4.0f ms  size %2d: %6.1f ms  advised %3d: %6.1f ms  half: %6.1f ms  %s %s" % (
        *row[:8], "kept" if row[8] else "NOT KEPT", "tight" if row[9] else "GENEROUS"), flush=True)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path)
    parser.add_argument("--only", choices=KINDS)
    parser.add_argument("--loads", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=6)
    args = parser.parse_args()
    if args.program:
        os.environ["CARPOOL"] = str(args.program.resolve())
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    rows = [judge(Load(kind, n), args.seconds) for n in range(args.loads // len(KINDS)) for kind in KINDS if args.only in (None, kind)]
    print("%d loads: kept %d, half of it does not %d" % (len(rows), sum(r[8] for r in rows), sum(r[9] for r in rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
