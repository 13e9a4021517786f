#!/usr/bin/env python3
"""Whether a scrape moves the requests' p99: 2,000 requests a second through one worker in windows, quiet and with one scrape
a second of 200 origins with all their series, by turns (quiet, scraped, scraped, quiet, ...). The last lines are the medians
of the windows' p50, p99 and p99.9, and their ratio; the spread of the quiet windows says what a ratio can say here. Then the
requests of the scraped windows apart: those that began during a scrape, and all others.

    tests/bench/scrape_p99.py [PROGRAM] [--windows 12] [--seconds 8]

Needs nginx and h2load.
"""
import argparse
import contextlib
import http.client
import os
import pathlib
import statistics
import subprocess
import tempfile
import threading
import time

from exec_p99 import CLIENTS, NGINX, RATE, ask, free_port, until_open

ORIGINS = 200
CONFIG = """workers = 1
[[listen]]
address = "127.0.0.1:%(fixed)d"
origin = "http://127.0.0.1:%(origin)d"
[[listen]]
address = "127.0.0.1:%(any)d"
[admin]
address = "127.0.0.1:%(admin)d"
[log]
access = false
"""


class Program:
    def __init__(self, program, folder, origin):
        ports = {name: free_port() for name in ("fixed", "any", "admin")}
        config = folder / "carpool.toml"
        config.write_text(CONFIG % {**ports, "origin": origin})
        self.fixed, self.admin = ports["fixed"], ports["admin"]
        self.process = subprocess.Popen([program, "--config", config], stderr=subprocess.PIPE, text=True)
        assert "carpool ready" in self.process.stderr.readline()
        client = http.client.HTTPConnection("127.0.0.1", ports["any"])
        until_open(origin)
        for i in range(ORIGINS - 1):  # and the one of the load
            client.request("GET", "http://127.1.%d.7:%d/" % (i, origin))
            answer = client.getresponse()
            assert answer.status == 200 and answer.read()

    def window(self, log, seconds):
        """(began, took) of a window's requests, in microseconds."""
        log.unlink(missing_ok=True)
        subprocess.run(["h2load", "--h1", "-c%d" % CLIENTS, "--rps=%d" % (RATE // CLIENTS), "-D%d" % seconds, "--log-file=%s" % log,
                        "http://127.0.0.1:%d/" % self.fixed], check=True, stdout=subprocess.DEVNULL)
        rows = [line.split() for line in log.read_text().splitlines()]
        assert all(row[1] == "200" for row in rows), "a request was lost"
        return [(int(row[0]), int(row[2])) for row in rows]

    @contextlib.contextmanager
    def scraped(self, took):
        stop = threading.Event()

        def each_second():
            while not stop.wait(1):
                begin = time.time()
                lines = ask(self.admin, "/metrics").count(b"\n")
                took.append((begin * 1e6, time.time() * 1e6, lines))
        scraper = threading.Thread(target=each_second)
        scraper.start()
        yield
        stop.set()
        scraper.join()


def percentiles(us):
    us = sorted(us)
    return [us[int(len(us) * share)] for share in (0.5, 0.99, 0.999)]


def met(request, scrapes):
    """It began during one; to count those that were on their way would prefer the slow ones, which are so for longer."""
    return any(begin <= request[0] < end for begin, end, _ in scrapes)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", nargs="?", default="build/release/carpool")
    parser.add_argument("--windows", type=int, default=12, help="of each kind")
    parser.add_argument("--seconds", type=int, default=8)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as ends:
        folder, origin = pathlib.Path(name), free_port()
        (folder / "nginx.conf").write_text(NGINX % {"dir": folder, "port": origin})
        nginx = subprocess.Popen(["nginx", "-c", folder / "nginx.conf", "-p", folder], stderr=subprocess.DEVNULL)
        ends.callback(nginx.wait)
        ends.callback(nginx.terminate)
        program = Program(wanted.program, folder, origin)
        ends.callback(program.process.wait)
        ends.callback(program.process.terminate)
        program.window(folder / "log", 2)  # connections are open, caches warm
        rows, scrapes, apart = {"quiet": [], "scraped": []}, [], {True: [], False: []}
        for i in range(wanted.windows):
            for how in ("quiet", "scraped") if i % 2 == 0 else ("scraped", "quiet"):
                mine = []
                with program.scraped(mine) if how == "scraped" else contextlib.nullcontext():
                    requests = program.window(folder / "log", wanted.seconds)
                rows[how].append(percentiles(took for _, took in requests))
                print("%-7s n %6d  p50 %6d  p99 %6d  p99.9 %6d us   load %.1f" % (how, len(requests), *rows[how][-1], os.getloadavg()[0]), flush=True)
                for request in requests if how == "scraped" else ():
                    apart[met(request, mine)].append(request[1])
                scrapes += mine
        print("%d scrapes of %d lines, each answered in %.0f ms (median)" % (
            len(scrapes), scrapes[-1][2], statistics.median((end - begin) / 1000 for begin, end, _ in scrapes)))
        for column, what in enumerate(("p50", "p99", "p99.9")):
            quiet, scraped = ([row[column] for row in rows[how]] for how in ("quiet", "scraped"))
            print("%-5s quiet %d us (%d to %d), scraped %d us (%d to %d): x%.2f" % (
                what, statistics.median(quiet), min(quiet), max(quiet), statistics.median(scraped), min(scraped), max(scraped),
                statistics.median(scraped) / statistics.median(quiet)))
        for how, which in (("during scrapes", True), ("all others", False)):
            print("%-15s n %7d  p50 %6d  p99 %6d  p99.9 %6d us" % (how, len(apart[which]), *percentiles(apart[which])))


if __name__ == "__main__":
    main()
