#!/usr/bin/env python3
"""Measures the effect of blocking work on requests: p50, p99 and p99.9 of 2,000 requests a second through one
worker, quiet and with, each second, a scrape of 1,000 origins, a dump of their pools and a reload with another bundle of
some 140 authorities; the strategies adaptive and produce in turns. The last lines are the medians of the rounds, and by how much the busy p99 is above the quiet one.

    tests/bench/exec_p99.py [PROGRAM] [--rounds 5] [--seconds 10]

Needs nginx and h2load. The machine must be quiet: if a quiet run's p99 is not near 1 ms, the figures are meaningless.
"""
import argparse
import collections
import os
import pathlib
import statistics

import p99_scene
from p99_scene import LISTENERS, ask, end_with, percentiles, scene

ORIGINS = 1000
CONFIG = LISTENERS + """[threads]
strategy = "%(strategy)s"
[upstream.tls]
ca_file = "%(bundle)s"
"""
BUNDLE = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")


class Program(p99_scene.Program):
    def __init__(self, program, folder, origin, strategy):
        self.bundle, self.pem, self.reloads = folder / (strategy + ".pem"), BUNDLE.read_text(), 0
        self.bundle.write_text(self.pem)
        super().__init__(program, folder / (strategy + ".toml"), CONFIG, {"origin": origin, "strategy": strategy, "bundle": self.bundle},
                         ("http://127.%d.%d.7:%d/" % (1 + i // 250, i % 250, origin) for i in range(ORIGINS)))

    def busy(self):
        def work():
            ask(self.admin, "/metrics")
            ask(self.admin, "/pools")
            self.reloads += 1
            self.bundle.write_text("# %d\n%s" % (self.reloads, self.pem))
            assert b"%s" % str(self.bundle).encode() in ask(self.admin, "/reload", "POST"), "the bundle was not renewed"
        return p99_scene.each_second(work)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", nargs="?", default="build/release/carpool")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=10)
    wanted = parser.parse_args()
    with scene() as (folder, origin, ends):
        programs = {}
        for strategy in ("adaptive", "produce"):
            programs[strategy] = Program(wanted.program, folder, origin, strategy)
            end_with(ends, programs[strategy].process)
        print("a scrape has %d lines, a dump %d bytes" % (ask(programs["produce"].admin, "/metrics").count(b"\n"),
                                                        len(ask(programs["produce"].admin, "/pools"))))
        rows = collections.defaultdict(list)

        def note(strategy, how, requests):
            row = (len(requests), *percentiles(took for _, took in requests))
            rows[strategy, how].append(row)
            print("%-9s %-5s n %6d  p50 %6d  p99 %6d  p99.9 %6d us   load %.1f" % (strategy, how, *row, os.getloadavg()[0]), flush=True)
        for _ in range(wanted.rounds):
            for strategy, program in programs.items():
                note(strategy, "quiet", program.load(folder / "log", wanted.seconds))
                with program.busy():
                    note(strategy, "busy", program.load(folder / "log", wanted.seconds))
        for strategy in programs:
            quiet, busy = (statistics.median(row[2] for row in rows[strategy, how]) for how in ("quiet", "busy"))
            print("%-9s p99 quiet %d us, busy %d us: %+d us; %d reloads" % (strategy, quiet, busy, busy - quiet, programs[strategy].reloads))


if __name__ == "__main__":
    main()
