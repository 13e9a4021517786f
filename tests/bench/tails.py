#!/usr/bin/env python3
"""Whose milliseconds the slowest requests at the fixed rate wait, beside the peers and without a proxy.

    tests/bench/tails.py PEERBENCH [OPTIONS] [--json FILE]   # the load generator with its options; needs perf and root

Runs the load generator with a runner that repeats the phase at the fixed rate while perf records the scheduler. A turn of a thread begins
when it is woken and ends when it waits again. Of the turns of the proxy, of the origin and of the client the row keeps how long they had to wait for a
processor and how long they ran, in µs. The latencies are those of the same run. Fails if perf lost events or a party has no turn."""
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import conditions
import profiles

EVENTS = "sched:sched_switch,sched:sched_wakeup,sched:sched_wakeup_new"
TIME = re.compile(r"\s(\d+)\.(\d{6,9}): +sched:(sched_\w+): +(.*)")
SWITCH = re.compile(r"prev_comm=(.*) prev_pid=(\d+) prev_prio=\S+ prev_state=(\S+) ==> next_comm=(.*) next_pid=(\d+)")
WOKEN = re.compile(r"comm=(.*) pid=(\d+)")
CLIENTS = ("load", "h2load")
PERCENTILES = {"p50": 0.5, "p99": 0.99, "p999": 0.999}
LONG = 1000  # µs


def events(text):
    """The output of perf script as (time in µs, "woken", thread, its name) and (time, "off" or "waits" or "on", thread, its name)."""
    for line in text.splitlines():
        if not (found := TIME.search(line)):
            continue
        seconds, fraction, kind, words = found.groups()
        at = int(seconds) * 1e6 + int(fraction) / 10 ** (len(fraction) - 6)
        if kind == "sched_switch" and (of := SWITCH.search(words)):
            yield at, "off" if of[3].startswith("R") else "waits", int(of[2]), of[1]
            yield at, "on", int(of[5]), of[4]
        elif kind != "sched_switch" and (of := WOKEN.search(words)):
            yield at, "woken", int(of[2]), of[1]


class Turns:
    """The turns of one party's threads: the time without a processor and the time on one."""

    def __init__(self):
        self.waited, self.ran = [], []
        self.open = {}  # thread -> [since, on a processor, waited, ran]

    def take(self, at, kind, thread):
        if kind == "woken":
            self.open.setdefault(thread, [at, False, 0.0, 0.0])
        elif turn := self.open.get(thread):
            since, running, waited, ran = turn
            turn[:] = [at, kind == "on", waited + (not running) * (at - since), ran + running * (at - since)]
            if kind == "waits":
                self.waited.append(turn[2])
                self.ran.append(turn[3])
                del self.open[thread]


def turns(found, party_of):
    """party -> its Turns; party_of gives the party of a thread and its name, None for any other."""
    parties = {}
    for at, kind, thread, name in found:
        if party := party_of(thread, name):
            parties.setdefault(party, Turns()).take(at, kind, thread)
    return parties


def percentiles(values):
    ordered = sorted(values)
    return {name: round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 1) for name, share in PERCENTILES.items()}


def parts(values, seconds):
    """The percentiles of the turns' parts, the longest one, and how much of each second belongs to those of a millisecond and more, in µs: one long
    stall is one turn, but delays all requests that come meanwhile."""
    return {**percentiles(values), "longest": round(max(values), 1), "long": round(sum(value for value in values if value >= LONG) / seconds, 1)}


def threads(pids):
    return {int(task) for pid in pids for task in os.listdir("/proc/%d/task" % pid)}


def recorded(run, folder):
    """What the load returns, and the scheduler's events during it."""
    data = os.path.join(folder, "perf.data")
    perf = subprocess.Popen(["perf", "record", "-q", "-a", "-m", "8M", "-e", EVENTS, "-o", data], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        began = time.monotonic()
        measured = run()
        measured["wall"] = time.monotonic() - began
    finally:
        perf.send_signal(signal.SIGINT)
        perf.wait(60)
    done = subprocess.run(["perf", "script", "-i", data, "--ns", "--show-lost-events", "-F", "comm,tid,cpu,time,event,trace"], check=True, capture_output=True,
                          text=True, timeout=300)
    os.unlink(data)
    if "PERF_RECORD_LOST" in done.stdout:
        sys.exit("perf lost events")
    return measured, done.stdout


def runner_of(module):
    class Runner(module.Runner):
        """Adds to the phase at the fixed rate a run whose turns are recorded."""

        def phase(self, p, run, secs):
            measured = super().phase(p, run, secs)
            if secs:  # at saturation
                return measured
            proxy = threads(p.pids)
            origin = threads([pid for root in self.org.procs for pid in module.descendants(root.pid)])
            slow, text = recorded(run, self.work)
            of = turns(events(text), lambda thread, name: "proxy" if thread in proxy else "origin" if thread in origin else "client" if name in CLIENTS else None)
            measured["tail"] = {name: slow[name + "_us"] for name in PERCENTILES}
            for party in ["client", "origin"] + ["proxy"] * bool(proxy):
                if party not in of or not of[party].ran:
                    sys.exit("no turn of the %s was recorded" % party)
                measured["tail"][party] = {"turns": len(of[party].ran), **{name: parts(getattr(of[party], name), slow["wall"]) for name in ("waited", "ran")}}
            return measured

    return Runner


def main(words):
    if not words or words[0].startswith("-"):
        sys.exit(__doc__)
    target, about, kept = profiles.run_with(words, runner_of, "tails.json")
    rows = [{"proxy": proxy, "scenario": scenario, "workers": workers, "rounds": [cell["rate"]["tail"] for cell in cells]}
            for (proxy, scenario, workers), cells in kept["results"].items() if cells]
    conditions.write(target, about, rows)


if __name__ == "__main__":
    main(sys.argv[1:])
