#!/usr/bin/env python3
"""Measures what blocking requests cost the others on one HTTP/2 connection to the admin endpoint. One client sends a /readyz every
10 ms; in the busy windows the same connection also has, one after another in a stream each, scrapes and dumps (/pools) of 1,000
origins and /connections of one origin, which asks the loops. The strategies in turns, each in a process of its own: `adaptive` and
`execute_produce` run a request where its frame was read, `produce_execute` queues what blocks, `produce` runs all of it in the
producer. The last lines are the medians of the windows, as a table of docs/execution.md.

    tests/bench/admin_h2_p99.py [PROGRAM] [--rounds 5] [--seconds 6] [--kinds scrape dump connections]

A /readyz is timed from the time at which it should have been sent. Needs nginx. The machine must be quiet.
"""
import argparse
import collections
import contextlib
import os
import select
import socket
import statistics
import struct
import time

from p99_scene import LISTENERS, Program, ask, end_with, percentiles, scene

ORIGINS = 1000
STRATEGIES = ("adaptive", "execute_produce", "produce_execute", "produce")
CONFIG = "workers = 1\n" + LISTENERS + """[threads]
strategy = "%(strategy)s"
[metrics]
max_origins = 2000
"""
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST, SETTINGS, GOAWAY, WINDOW = 0, 1, 3, 4, 7, 8
END_STREAM, END_HEADERS, ACK = 1, 4, 1
EVERY = 0.01  # between two /readyz
WINDOW_SHARE = 32 * 1024  # received bytes until the window is returned


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def request(stream, path):
    text = path.encode()
    assert len(text) < 127
    block = b"\x82\x86\x04" + bytes([len(text)]) + text + b"\x01\x09localhost"  # GET, http, :path, :authority
    return frame(HEADERS, END_STREAM | END_HEADERS, stream, block)


class Connection:
    """One connection; parses frames and no fields, so that the client costs little. Calls done(kind, seconds) for each response."""

    def __init__(self, port, done):
        self.sock, self.done, self.buffer = socket.create_connection(("127.0.0.1", port)), done, b""
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.next, self.open, self.shared = 1, {}, 0
        self.sock.sendall(PREFACE + frame(SETTINGS, 0, 0))

    def ask(self, kind, path, since):
        self.open[self.next] = [kind, since, 0]
        self.sock.sendall(request(self.next, path))
        self.next += 2

    def serve(self, until):
        """Handles the input that arrives until then."""
        while (left := until - time.perf_counter()) > 0:
            if select.select([self.sock], [], [], left)[0]:
                self.read()

    def read(self):
        data = self.sock.recv(1 << 18)
        assert data, "the connection ended"
        self.buffer += data
        at, out = 0, b""
        while len(self.buffer) - at >= 9:
            size = int.from_bytes(self.buffer[at:at + 3], "big")
            if len(self.buffer) - at < 9 + size:
                break
            kind, flags, stream = struct.unpack_from(">BBI", self.buffer, at + 3)
            out += self.note(kind, flags, stream, size, self.buffer[at + 9:at + 10])
            at += 9 + size
        self.buffer = self.buffer[at:]
        if out:
            self.sock.sendall(out)

    def note(self, kind, flags, stream, size, first):
        assert kind not in (RST, GOAWAY), "stream %d: the server gave up" % stream
        if kind == SETTINGS and not flags & ACK:
            return frame(SETTINGS, ACK, 0)
        if kind not in (DATA, HEADERS):
            return b""
        assert kind == DATA or first == b"\x88", "a status other than 200"
        ended, out = flags & END_STREAM, b""
        if kind == DATA:
            out = self.consume(stream, size, ended)
        if ended:
            what, since, _ = self.open.pop(stream)
            self.done(what, time.perf_counter() - since)
        return out

    def consume(self, stream, size, ended):
        out, one = b"", self.open[stream]
        self.shared += size
        one[2] += size
        if self.shared >= WINDOW_SHARE:
            out, self.shared = frame(WINDOW, 0, 0, struct.pack(">I", self.shared)), 0
        if one[2] >= WINDOW_SHARE and not ended:
            out += frame(WINDOW, 0, stream, struct.pack(">I", one[2]))
            one[2] = 0
        return out


def window(port, seconds, origin, kinds):
    """Returns the times of each kind of request, in microseconds."""
    times = collections.defaultdict(list)
    paths = {"scrape": "/metrics", "dump": "/pools", "connections": "/pools/http%%3A%%2F%%2F127.1.0.7%%3A%d/connections" % origin}
    paths = {kind: paths[kind] for kind in kinds}

    def done(kind, took):
        times[kind].append(took * 1e6)
        if kind in paths and not over:
            connection.ask(kind, paths[kind], time.perf_counter())
    over = False
    connection = Connection(port, done)
    with contextlib.closing(connection.sock):
        begin = time.perf_counter()
        for kind in paths:
            connection.ask(kind, paths[kind], begin)
        for i in range(int(seconds / EVERY)):
            connection.serve(begin + i * EVERY)
            connection.ask("readyz", "/readyz", begin + i * EVERY)
        over = True
        while connection.open:
            connection.read()
    return times


def table(rows):
    """rows: strategy -> kind -> the windows' (p50, p99)."""
    cells = list(rows["adaptive"])
    lines = ["| `threads.strategy` | %s |" % " | ".join(cells), "|---|" + "--:|" * len(cells)]
    for strategy in STRATEGIES:
        medians = [[statistics.median(one[i] for one in rows[strategy][cell]) / 1000 for i in (0, 1)] for cell in cells]
        lines.append("| `%s` | %s |" % (strategy, " | ".join("%.2f / %.2f" % tuple(m) for m in medians)))
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", nargs="?", default="build/release/carpool")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=6)
    parser.add_argument("--kinds", nargs="+", default=["scrape", "dump", "connections"], choices=["scrape", "dump", "connections"])
    wanted = parser.parse_args()
    rows = {strategy: collections.defaultdict(list) for strategy in STRATEGIES}
    with scene() as (folder, origin, ends):
        programs = {}
        for strategy in STRATEGIES:
            programs[strategy] = Program(wanted.program, folder / (strategy + ".toml"), CONFIG, {"origin": origin, "strategy": strategy},
                                         ("http://127.%d.%d.7:%d/" % (1 + i // 250, i % 250, origin) for i in range(ORIGINS)))
            end_with(ends, programs[strategy].process)
        for i in range(wanted.rounds):
            for strategy in STRATEGIES if i % 2 == 0 else STRATEGIES[::-1]:
                quiet = window(programs[strategy].admin, wanted.seconds, origin, ())
                busy = window(programs[strategy].admin, wanted.seconds, origin, wanted.kinds)
                rows[strategy]["quiet"].append(percentiles(quiet["readyz"]))
                for kind, times in busy.items():
                    rows[strategy][kind].append(percentiles(times))
                print("%-16s quiet p50 %6d p99 %6d  busy %s   load %.1f" % (strategy, *rows[strategy]["quiet"][-1][:2], "  ".join(
                    "%s n %d p50 %d p99 %d" % (kind, len(times), *rows[strategy][kind][-1][:2]) for kind, times in busy.items()), os.getloadavg()[0]), flush=True)
        for strategy, program in programs.items():
            lines = ask(program.admin, "/metrics").decode().splitlines()
            print(strategy, *(line.removeprefix("carpool_exec_") for line in lines if line.startswith(("carpool_exec_tasks_total", "carpool_exec_handovers"))))
    print("milliseconds, p50 / p99\n" + table(rows))


if __name__ == "__main__":
    main()
