#!/usr/bin/env python3
"""A thousand origins come and go while everything expires within a second: after the warm-up memory, descriptors,
threads and pools stay where they are.

    tests/soak/soak.py [--seconds 60] [--origins 1000] [--program PATH]

Each origin is an address of its own in 127.0.0.0/8 before one server, so each has its own pool. A window of them moves over
the thousand, so that origins fall idle, their pools end, and they come back. Reloads happen throughout, each with another size for every pool. The
first half warms up; in the second half each value is sampled, and the median of its last third may differ from that of its
first third by 2 %. Of the memory the lowest is taken instead, and only growth counts: the answer to each question of ours about
a thousand pools is some megabytes for a moment, which are gone at one sample and not at the next. Prints one line a value; exits
with 1 when one drifts."""
import argparse
import asyncio
import os
import pathlib
import re
import resource
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
ALLOWED = 0.02
SIZES = (2, 64)


async def serve(reader, writer):
    try:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(ANSWER)
    except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
        writer.close()


async def rest(over, seconds):
    """Until the soak is over, or so long: a pace, nothing is waited for."""
    try:
        await asyncio.wait_for(over.wait(), seconds)
    except asyncio.TimeoutError:
        pass


class Client:
    """One connection to carpool that asks one origin after the other."""

    def __init__(self, address, port, origins, latencies):
        self.address, self.port, self.origins, self.latencies = address, port, origins, latencies

    async def run(self, number, over):
        reader, writer = await asyncio.open_connection(*self.address)
        nth = number
        while not over.is_set():
            # The window is 100 wide and comes round in ten seconds: each origin rests for most of the time.
            origin = (int(time.monotonic() * self.origins / 10) + nth * 7 % 100) % self.origins
            self.latencies.append(await ask(reader, writer, origin, self.port))
            nth += 13
            await rest(over, 0.002)
        writer.close()


async def ask(reader, writer, origin, port):
    """The seconds that one request to the so many-th origin takes."""
    host = "127.%d.%d.%d:%d" % (1 + origin // 250 // 250, origin // 250 % 250, 1 + origin % 250, port)
    began = time.monotonic()
    writer.write(("GET http://%s/ HTTP/1.1\r\nHost: %s\r\n\r\n" % (host, host)).encode())
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(head.decode(errors="replace"))
    await reader.readexactly(5)
    return time.monotonic() - began


async def cold_and_warm(carpool, port, origins):
    """The first request of an origin that was never asked before, which makes its pool and dials, and its second one."""
    reader, writer = await asyncio.open_connection(*carpool.address)
    cold, warm = [], []
    for origin in range(origins, origins + 400):
        cold.append(await ask(reader, writer, origin, port))
        warm.append(await ask(reader, writer, origin, port))
    writer.close()
    print("a request to an unknown origin p50 %.2f ms, p99 %.2f ms; the next one p50 %.2f ms, p99 %.2f ms" % tuple(
        1e3 * sorted(times)[len(times) * share // 100] for times in (cold, warm) for share in (50, 99)))


def look(carpool, rows):
    proc = pathlib.Path("/proc/%d" % carpool.process.pid)
    status = dict(line.split(":", 1) for line in (proc / "status").read_text().splitlines() if ":" in line)
    # Connections come and go with the load; what stays open beside them must not grow.
    return {"resident KiB": int(status["VmRSS"].split()[0]),
            "descriptors beside connections": len(os.listdir(proc / "fd")) - sum(row["active"] for row in rows),
            "threads": int(status["Threads"]), "pools": len(rows)}


async def sample(carpool, until, over, samples):
    loop = asyncio.get_running_loop()
    while time.monotonic() < until - 2:
        await rest(over, 1)
        data = await loop.run_in_executor(None, carpool.get_json, "/pools")
        rows = data.get("pools", data) if isinstance(data, dict) else data
        samples.append(look(carpool, rows))
        if len(samples) % 5 == 4:
            await loop.run_in_executor(None, resize, carpool, SIZES[len(samples) // 5 % 2])
    over.set()


def resize(carpool, size):
    """Another cap for every pool, by a reload."""
    text = re.sub(r"(?m)^size *= *\d+$", "size = %d" % size, carpool.config.read_text())
    fresh = carpool.config.with_suffix(".new")
    fresh.write_text(text)
    fresh.rename(carpool.config)
    answer = carpool.admin("POST", "/reload")
    if answer.status != 200:
        raise RuntimeError(answer.body.decode(errors="replace"))


def drifted(samples):
    """What moved, after the warm-up."""
    late = samples[len(samples) // 2:]
    third = max(1, len(late) // 3)
    wrong = []
    for name in late[0]:
        of = min if name.startswith("resident") else statistics.median
        first, last = (of([s[name] for s in part]) for part in (late[:third], late[-third:]))
        drift = (last - first) / max(first, 1)
        # /pools and /proc are read one after the other, and pools end as they are looked through: a few are no leak.
        noise = name.startswith(("descriptors", "pools")) and abs(last - first) <= 16
        bad = (drift if name.startswith("resident") else abs(drift)) > ALLOWED and not noise
        print("%-31s %9.0f -> %9.0f  %+.2f %%%s" % (name, first, last, 100 * drift, "  DRIFTS" if bad else ""))
        wrong += [name] * bad
    return wrong


async def soak(carpool, port, args):
    server = await asyncio.start_server(serve, "0.0.0.0", port, backlog=4096)
    latencies, samples, over, until = [], [], asyncio.Event(), time.monotonic() + args.seconds
    clients = [Client(carpool.address, port, args.origins, latencies).run(n, over) for n in range(16)]
    await asyncio.gather(sample(carpool, until, over, samples), *clients)
    await cold_and_warm(carpool, port, args.origins)
    server.close()
    print("%d requests to %d origins, p50 %.1f ms, p99 %.1f ms" % (
        len(latencies), args.origins, 1e3 * statistics.median(latencies), 1e3 * sorted(latencies)[len(latencies) * 99 // 100]))
    return drifted(samples)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--origins", type=int, default=1000)
    parser.add_argument("--program", type=pathlib.Path)
    args = parser.parse_args()
    if args.program:
        os.environ["CARPOOL"] = str(args.program.resolve())
    from harness.carpool import Carpool
    from harness.ports import free_port
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        carpool = Carpool(folder, pool={"size": SIZES[1], "expire_time": "1s", "total": {"max_origins": 1024, "origin_idle_timeout": "3s"}},
                          log={"level": "warn", "access": False})
        try:
            wrong = asyncio.run(soak(carpool, free_port(), args))
        finally:
            carpool.stop()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
