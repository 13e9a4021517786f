#!/usr/bin/env python3
"""A thousand origins appear and expire within a second: nothing of them remains between the loads.

    tests/soak/soak.py [--seconds 60] [--origins 1000] [--program PATH]

Each origin is an address of its own in 127.0.0.0/8 before one server, so each has its own pool. A window of them moves over
the thousand, so that origins become idle, their pools end, and they are used again. Reloads happen throughout, each with another
size for every pool. The load comes in rounds with an idle phase after each, which lasts until the last pool has ended. The number
of pools under load depends on the machine, the idle values on carpool alone. The idle phases after half of the rounds and after
all of them are compared, once unused memory has been returned to the kernel: the heap in use may grow by 256 KiB at most, anonymous
memory by 1.5 MiB; the numbers of descriptors and threads must not change. Prints one line per value; exits with 1 if one grows.

What grows without a leak: malloc keeps up to seven free blocks of each of 64 sizes for each thread, and counts them as in use.
Those of rare sizes arrive one by one: 30 to 104 KiB between the two phases, 3 to 22 KiB with glibc.malloc.tcache_count=0. Each lies
in a page that cannot be returned: up to 0.5 MiB of anonymous memory. A leak of 1 KiB for each pool is 3 MiB after 30 seconds. Pages of
files are not compared: code is mapped when it first runs."""
import argparse
import asyncio
import contextlib
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
ALLOWED = {"anonymous KiB": 1536, "heap KiB": 256}
ROUNDS = 6
HALF = ROUNDS // 2 - 1
REST = 60  # seconds that the last pool may take to end, and memory to go back
STILL = 8  # seconds without a further return of memory: the process has checked and found nothing worth returning
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
            # The window is 100 wide and wraps around in ten seconds: each origin is idle most of the time.
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
    """The first request of an origin that has no pool, which makes it and dials, and its second one."""
    reader, writer = await asyncio.open_connection(*carpool.address)
    cold, warm = [], []
    for origin in range(min(origins, 400)):
        cold.append(await ask(reader, writer, origin, port))
        warm.append(await ask(reader, writer, origin, port))
    writer.close()
    print("a request to an unknown origin p50 %.2f ms, p99 %.2f ms; the next one p50 %.2f ms, p99 %.2f ms" % tuple(
        1e3 * sorted(times)[len(times) * share // 100] for times in (cold, warm) for share in (50, 99)))


def descriptors(carpool):
    """Without the netlink socket that each thread keeps from the first time that it asks for the owner of a client."""
    proc = pathlib.Path("/proc/%d" % carpool.process.pid)
    queries = {"socket:[%s]" % line.split()[9] for line in (proc / "net/netlink").read_text().splitlines()[1:]}
    found = 0
    for name in os.listdir(proc / "fd"):
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            found += os.readlink(proc / "fd" / name) not in queries
    return found


def look(carpool, rows, heap):
    proc = pathlib.Path("/proc/%d" % carpool.process.pid)
    status = dict(line.split(":", 1) for line in (proc / "status").read_text().splitlines() if ":" in line)
    return {"resident KiB": int(status["VmRSS"].split()[0]), "anonymous KiB": int(status["RssAnon"].split()[0]),
            "heap KiB": heap["used"] >> 10, "descriptors": descriptors(carpool), "threads": int(status["Threads"]), "pools": len(rows)}


async def asked(carpool, path):
    """Asked beside the load, as an operator would."""
    return await asyncio.get_running_loop().run_in_executor(None, carpool.get_json, path)


async def pools(carpool):
    return (await asked(carpool, "/pools"))["pools"]


async def heap(carpool):
    return (await asked(carpool, "/overload"))["heap"]


async def load(carpool, port, origins, until, latencies):
    """One round; what it looked like shortly before its end."""
    over, looks = asyncio.Event(), 0
    clients = asyncio.gather(*[Client(carpool.address, port, origins, latencies).run(n, over) for n in range(16)])
    while not clients.done() and time.monotonic() < until:
        await rest(over, 1)
        looks += 1
        under_load = look(carpool, await pools(carpool), await heap(carpool))
        if looks % 5 == 4:
            await asyncio.get_running_loop().run_in_executor(None, resize, carpool, SIZES[looks // 5 % 2])
    over.set()
    await clients
    return under_load


async def is_idle(carpool):
    """Once the last pool has ended."""
    deadline = time.monotonic() + REST
    while rows := await pools(carpool):
        if time.monotonic() > deadline:
            raise RuntimeError("%d pools still there after %d s without a request, such as %s" % (len(rows), REST, rows[0]))
        await rest(asyncio.Event(), 0.2)
    seen = look(carpool, rows, await heap(carpool))
    for _ in range(20):  # the connections of those who asked are closed one after the other
        seen["descriptors"] = min(seen["descriptors"], descriptors(carpool))
        await rest(asyncio.Event(), 0.05)
    return seen


async def memory_has_gone_back(carpool):
    deadline = time.monotonic() + REST
    returned, still_since = -1, time.monotonic()
    while time.monotonic() - still_since < STILL:
        if time.monotonic() > deadline:
            raise RuntimeError("after %d s at rest memory still goes back to the kernel" % REST)
        now = (await heap(carpool))["returned"]
        if now != returned:
            returned, still_since = now, time.monotonic()
        await rest(asyncio.Event(), 0.5)


def resize(carpool, size):
    """Another cap for every pool, by a reload."""
    text = re.sub(r"(?m)^size *= *\d+$", "size = %d" % size, carpool.config.read_text())
    fresh = carpool.config.with_suffix(".new")
    fresh.write_text(text)
    fresh.rename(carpool.config)
    response = carpool.admin("POST", "/reload")
    if response.status != 200:
        raise RuntimeError(response.body.decode(errors="replace"))


def series(looks, name):
    return " ".join(str(look[name]) for look in looks)


def grown(rests, loads):
    """Returns the values that grew between the idle phase after half of the rounds and the last one: the first rounds warm up."""
    wrong = []
    for name, first in rests[HALF].items():
        bad = name != "resident KiB" and rests[-1][name] - first > ALLOWED.get(name, 0)
        print("%-14s at rest %s, under load %s%s" % (name, series(rests, name), series(loads, name), "  GROWS" if bad else ""))
        wrong += [name] * bad
    return wrong


async def soak(carpool, args):
    server = await asyncio.start_server(serve, "0.0.0.0", 0, backlog=4096)
    port, latencies, loads, rests = server.sockets[0].getsockname()[1], [], [], []
    for number in range(ROUNDS):
        loads.append(await load(carpool, port, args.origins, time.monotonic() + args.seconds / ROUNDS, latencies))
        rests.append(await is_idle(carpool))
        if number in (HALF, ROUNDS - 1):
            await memory_has_gone_back(carpool)
            rests[-1] = await is_idle(carpool)
    await cold_and_warm(carpool, port, args.origins)
    server.close()
    print("%d requests to %d origins, p50 %.1f ms, p99 %.1f ms" % (
        len(latencies), args.origins, 1e3 * statistics.median(latencies), 1e3 * sorted(latencies)[len(latencies) * 99 // 100]))
    return grown(rests, loads)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--origins", type=int, default=1000)
    parser.add_argument("--program", type=pathlib.Path)
    args = parser.parse_args()
    if args.program:
        os.environ["CARPOOL"] = str(args.program.resolve())
    from harness.carpool import Carpool
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        carpool = Carpool(folder, pool={"size": SIZES[1], "expire_time": "1s", "total": {"max_origins": 1024, "origin_idle_timeout": "3s"}},
                          threads={"min": 2, "max": 2}, log={"level": "warn", "access": False})
        try:
            wrong = asyncio.run(soak(carpool, args))
        finally:
            carpool.stop()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
