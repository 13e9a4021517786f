#!/usr/bin/env python3
"""Measures the effect of silent and talking event streams on other requests: 2,000 requests a second through one worker in windows, without
streams and beside 500 streams of an origin with profile = "streaming", each with one event a second, in turns. The last lines are the medians of
the windows' p50, p99 and p99.9, and the growth of the program's memory (RSS) by the streams.

    tests/bench/streams_p99.py [PROGRAM] [--streams 500] [--windows 6] [--seconds 5]

Needs nginx and h2load.
"""
import argparse
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
    """An origin that responds to each connection with an event stream."""

    def __init__(self):
        self.server = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port, self.socks = self.server.getsockname()[1], set()
        self.looks, self.change = selectors.DefaultSelector(), threading.Condition()
        self.looks.register(self.server, selectors.EVENT_READ)
        threading.Thread(target=self.run, daemon=True).start()

    def until(self, count):
        with self.change:
            self.change.wait_for(lambda: len(self.socks) >= count)

    def run(self):
        due = time.monotonic() + 1
        while True:
            for key, _ in self.looks.select(max(0, due - time.monotonic())):
                if key.fileobj is self.server:
                    sock, _ = self.server.accept()
                    self.looks.register(sock, selectors.EVENT_READ)
                elif key.fileobj.recv(65536):
                    key.fileobj.sendall(HEAD)
                    with self.change:
                        self.socks.add(key.fileobj)
                        self.change.notify()
                else:
                    self.looks.unregister(key.fileobj)
                    self.socks.discard(key.fileobj)
                    key.fileobj.close()
            if time.monotonic() >= due:
                due += 1
                for sock in list(self.socks):
                    sock.sendall(EVENT)


class Listeners:
    """Clients of the ticker through carpool, which read everything that arrives."""

    def __init__(self, proxy, ticker, count):
        self.looks, self.events, self.lost, self.going = selectors.DefaultSelector(), 0, 0, True
        for _ in range(count):
            sock = socket.create_connection(("127.0.0.1", proxy))
            sock.sendall(b"GET http://127.0.0.1:%d/ HTTP/1.1\r\nHost: x\r\n\r\n" % ticker.port)
            self.looks.register(sock, selectors.EVENT_READ)
        ticker.until(count)
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while self.going:
            for key, _ in self.looks.select(0.1):
                data = key.fileobj.recv(65536)
                self.events += data.count(b"data:")
                if not data:
                    self.lost += 1
                    self.looks.unregister(key.fileobj)

    def end(self):
        self.going = False
        self.thread.join()
        for key in list(self.looks.get_map().values()):
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
    wanted = parser.parse_args()
    ticker = Ticker()
    with scene() as (folder, origin, ends):
        any_port = free_port()
        text = CONFIG.replace("%(any)d", str(any_port))
        program = Program(wanted.program, folder / "carpool.toml", text,
                          {"origin": origin, "streams": ticker.port, "most": wanted.streams + 8}, ())
        end_with(ends, program.process)
        program.load(folder / "log", 2)  # connections are open, caches warm
        rows, memory, events = {"alone": [], "beside": []}, {"alone": [], "beside": []}, 0
        for i in range(wanted.windows):
            for how in ("alone", "beside") if i % 2 == 0 else ("beside", "alone"):
                listeners = Listeners(any_port, ticker, wanted.streams) if how == "beside" else None
                requests = program.load(folder / "log", wanted.seconds)
                memory[how].append(rss(program.process))
                rows[how].append(percentiles(took for _, took in requests))
                if listeners:
                    listeners.end()
                    assert listeners.lost == 0 and listeners.events >= wanted.streams * (wanted.seconds - 2), "a stream was lost"
                    events += listeners.events
                print("%-7s n %6d  p50 %6d  p99 %6d  p99.9 %6d us  RSS %5.1f MiB  load %.1f" % (
                    how, len(requests), *rows[how][-1], memory[how][-1], os.getloadavg()[0]), flush=True)
        for column, what in enumerate(("p50", "p99", "p99.9")):
            alone, beside = ([row[column] for row in rows[how]] for how in ("alone", "beside"))
            print("%-5s alone %d us (%d to %d), beside %d streams %d us (%d to %d): %+d us" % (
                what, statistics.median(alone), min(alone), max(alone), wanted.streams, statistics.median(beside), min(beside), max(beside),
                statistics.median(beside) - statistics.median(alone)))
        print("RSS at the first window without streams %.1f MiB, at most %.1f MiB beside them: %+.1f MiB; %d events" % (
            memory["alone"][0], max(memory["beside"]), max(memory["beside"]) - memory["alone"][0], events))


if __name__ == "__main__":
    main()
