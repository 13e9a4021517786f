#!/usr/bin/env python3
"""Measures the effect of a scrape on the requests' p99: 2,000 requests a second through one worker in windows, quiet
and with one scrape a second of 200 origins with all their series, in turns (quiet, scraped, scraped, quiet, ...). The last lines are the medians
of the windows' p50, p99 and p99.9, and their ratio; the spread of the quiet windows bounds the significance of the ratio. Then the
requests of the scraped windows, separately: those that began during a scrape, and all others.

    tests/bench/scrape_p99.py [PROGRAM] [--windows 12] [--seconds 8]

Needs nginx and h2load.
"""
import argparse
import contextlib
import os
import statistics
import time

from p99_scene import LISTENERS, Program, ask, each_second, end_with, percentiles, scene

ORIGINS = 200
CONFIG = "workers = 1\n" + LISTENERS


def scraping(program, took):
    def work():
        begin = time.time()
        lines = ask(program.admin, "/metrics").count(b"\n")
        took.append((begin * 1e6, time.time() * 1e6, lines))
    return each_second(work)


def met(request, scrapes):
    """Returns whether a request began during a scrape; counting those in flight would prefer the slow ones, which last longer."""
    return any(begin <= request[0] < end for begin, end, _ in scrapes)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", nargs="?", default="build/release/carpool")
    parser.add_argument("--windows", type=int, default=12, help="of each kind")
    parser.add_argument("--seconds", type=int, default=8)
    wanted = parser.parse_args()
    with scene() as (folder, origin, ends):
        program = Program(wanted.program, folder / "carpool.toml", CONFIG, {"origin": origin},
                          ("http://127.1.%d.7:%d/" % (i, origin) for i in range(ORIGINS - 1)))  # and the one of the load
        end_with(ends, program.process)
        program.load(folder / "log", 2)  # connections are open, caches warm
        rows, scrapes, apart = {"quiet": [], "scraped": []}, [], {True: [], False: []}
        for i in range(wanted.windows):
            for how in ("quiet", "scraped") if i % 2 == 0 else ("scraped", "quiet"):
                mine = []
                with scraping(program, mine) if how == "scraped" else contextlib.nullcontext():
                    requests = program.load(folder / "log", wanted.seconds)
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
