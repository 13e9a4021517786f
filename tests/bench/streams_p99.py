#!/usr/bin/env python3
"""Measures the effect of event streams on other requests: 2,000 requests a second through one worker in windows, in turns without streams ("alone"),
beside 500 streams that bypass the program ("direct": what their origin and their clients cost on the same processors), and beside 500 streams through
it from an origin with profile = "streaming" ("beside"). Each stream has one event a second, at a time of its own, or all at one time with --together.
The last lines are the medians of the windows' p50, p99 and p99.9, and the growth of the program's memory (RSS) by the streams.

    tests/bench/streams_p99.py [PROGRAM] [--streams 500] [--windows 6] [--seconds 5] [--together]

Needs nginx and h2load.
"""
import argparse
import collections
import contextlib
import os
import selectors
import socket
import statistics
import threading
import time

from p99_scene import LISTENERS, Program, end_with, free_port, percentiles, scene

CONFIG = "workers = 1\n" + LISTENERS + """[[origin]]
uri = "http://127.0.0.1:%(streams)d"
profile = "streaming"
[origin.pool]
size = %(most)d
"""
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
EVENT = b"10\r\ndata: it ticks.\n\r\n"
assert len(b"data: it ticks.\n") == 16


class Ticker:
    """An origin that answers each connection with an event stream. `tick`: seconds between two times at which events are sent, each time to an
    equal share of the streams, so that each stream has one event a second."""

    def __init__(self, tick):
        self.server = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port, self.socks = self.server.getsockname()[1], set()
        self.tick, self.turn = tick, collections.deque()
        self.selector, self.change = selectors.DefaultSelector(), threading.Condition()
        self.selector.register(self.server, selectors.EVENT_READ)
        threading.Thread(target=self.run, daemon=True).start()

    def until(self, count):
        with self.change:
            self.change.wait_for(lambda: len(self.socks) >= count)

    def run(self):
        due, credit = time.monotonic() + self.tick, 0.0
        while True:
            for key, _ in self.selector.select(max(0, due - time.monotonic())):
                self.ready(key.fileobj)
            if time.monotonic() >= due:
                due += self.tick
                credit += len(self.socks) * self.tick
                while credit >= 1:
                    credit -= 1
                    self.send_next()

    def ready(self, sock):
        if sock is self.server:
            self.selector.register(sock.accept()[0], selectors.EVENT_READ)
            return
        with contextlib.suppress(ConnectionError):
            if sock.recv(65536):
                sock.sendall(HEAD)
                self.turn.append(sock)
                with self.change:
                    self.socks.add(sock)
                    self.change.notify()
                return
        self.selector.unregister(sock)
        self.socks.discard(sock)
        sock.close()

    def send_next(self):
        while self.turn:
            sock = self.turn.popleft()
            if sock in self.socks:
                self.turn.append(sock)
                with contextlib.suppress(ConnectionError):
                    sock.sendall(EVENT)
                return


class Listeners:
    """Clients of the ticker at a port, the program's or the ticker's own, which read what comes."""

    def __init__(self, port, ticker, count):
        self.selector, self.events, self.lost, self.going = selectors.DefaultSelector(), 0, 0, True
        for _ in range(count):
            sock = socket.create_connection(("127.0.0.1", port))
            sock.sendall(b"GET http://127.0.0.1:%d/ HTTP/1.1\r\nHost: x\r\n\r\n" % ticker.port)
            self.selector.register(sock, selectors.EVENT_READ)
        ticker.until(count)
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while self.going:
            for key, _ in self.selector.select(0.1):
                data = key.fileobj.recv(65536)
                self.events += data.count(b"data:")
                if not data:
                    self.lost += 1
                    self.selector.unregister(key.fileobj)

    def end(self):
        self.going = False
        self.thread.join()
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()


def rss(process):
    with open("/proc/%d/status" % process.pid) as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", nargs="?", default="build/release/carpool")
    parser.add_argument("--streams", type=int, default=500)
    parser.add_argument("--windows", type=int, default=6, help="of each kind")
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--together", action="store_true", help="the events of all streams are sent at one time")
    wanted = parser.parse_args()
    ticker = Ticker(1 if wanted.together else 0.01)
    with scene() as (folder, origin, ends):
        any_port = free_port()
        text = CONFIG.replace("%(any)d", str(any_port))
        program = Program(wanted.program, folder / "carpool.toml", text,
                          {"origin": origin, "streams": ticker.port, "most": wanted.streams + 8}, ())
        end_with(ends, program.process)
        program.load(folder / "log", 2)  # connections are open, caches warm
        ports = {"alone": None, "direct": ticker.port, "beside": any_port}
        rows, memory = {how: [] for how in ports}, {how: [] for how in ports}
        for i in range(wanted.windows):
            for how in list(ports) if i % 2 == 0 else reversed(ports):
                listeners = Listeners(ports[how], ticker, wanted.streams) if ports[how] else None
                requests = program.load(folder / "log", wanted.seconds)
                memory[how].append(rss(program.process))
                rows[how].append(percentiles(took for _, took in requests))
                if listeners:
                    listeners.end()
                    assert listeners.lost == 0 and listeners.events >= wanted.streams * (wanted.seconds - 2), "a stream was lost"
                print("%-7s n %6d  p50 %6d  p99 %6d  p99.9 %6d us  RSS %5.1f MiB  load %.1f" % (
                    how, len(requests), *rows[how][-1], memory[how][-1], os.getloadavg()[0]), flush=True)
        report(rows, memory)


def report(rows, memory):
    for column, what in enumerate(("p50", "p99", "p99.9")):
        of = {how: [row[column] for row in rows[how]] for how in rows}
        middle = {how: statistics.median(of[how]) for how in of}
        print("%-5s %s: through the program %+d us against alone, %+d us against direct" % (
            what, ", ".join("%s %d us (%d to %d)" % (how, middle[how], min(of[how]), max(of[how])) for how in of),
            middle["beside"] - middle["alone"], middle["beside"] - middle["direct"]))
    print("RSS at the first window without streams %.1f MiB, at most %.1f MiB beside them: %+.1f MiB" % (
        memory["alone"][0], max(memory["beside"]), max(memory["beside"]) - memory["alone"][0]))


if __name__ == "__main__":
    main()
