#!/usr/bin/env python3
"""Faults of the system: calls that fail at the n-th time, clocks that jump, a full disk, a name server that lies.

    tests/system_faults/run.py [--full | --times K] [--seed TEXT] [--jobs N] [--only PART]

The program under test runs with a preloaded library (shim/) that fails the n-th call of one function, while a fixed mix of
requests runs, while the program starts, or while one process hands over to the next. After each case the program must live,
serve every kind of request, and its ledger must balance. The short form plays each interruption of a transfer and a sample,
chosen by the seed; --times plays a larger one, --full every case. Prints a line per part and one per failed case; exits
with 1 if a case failed."""
import argparse
import contextlib
import datetime
import multiprocessing
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

import cases  # noqa: E402
import oracles  # noqa: E402
from clocks import JUMPS, Clocks  # noqa: E402
from disk import Disk  # noqa: E402
from handover import Handover  # noqa: E402
from lies import Lies  # noqa: E402
from scene import SHIM, Scene  # noqa: E402
from startup import StartUp  # noqa: E402
from sweep import Sweep  # noqa: E402

# Cases of the short form, over all jobs. Those of memory besides: each of thousands of calls may be the unguarded one.
SAMPLES = {"requests": 480, "memory": 80, "start": 160, "handover": 40}


class Share:
    """One job's part of the cases."""

    def __init__(self, scene, args, number):
        self.scene, self.args, self.number = scene, args, number

    def choose(self, part, every):
        if self.args.full:
            return every[self.number::self.args.jobs] if part != "memory" else []
        return cases.sample(every, SAMPLES[part] * self.args.times // self.args.jobs, "%s %d" % (self.args.seed, self.number))

    def once(self, job, every):
        """Short parts are played by one job."""
        return every if self.number == job % self.args.jobs else []

    def requests(self):
        sweep = Sweep(self.scene)
        sweep.begin()
        every = cases.every(sweep.calls())
        memory = [case for case in every if case.function == "memory"]
        interruptions = cases.interruptions(every)[self.number::self.args.jobs]
        chosen = dict.fromkeys([*interruptions, *self.choose("requests", every), *self.choose("memory", memory)])
        # A lack of memory is felt for a second, and by requests of the next case.
        yield from self.play(sweep, sorted(chosen, key=lambda case: case.function == "memory"))
        sweep.end()

    def start(self):
        start = StartUp(self.scene)
        chosen = self.choose("start", start.every())
        yield from self.play(start, dict.fromkeys([*self.once(0, start.first()), *chosen]))

    def handover(self):
        handover = Handover(self.scene)
        yield from self.play(handover, self.choose("handover", handover.every()))

    def clocks(self):
        yield from self.play(Clocks(self.scene), self.once(1, JUMPS))

    def disk(self):
        disk = Disk(self.scene)
        yield from self.play(disk, self.once(1, disk.every()))

    def names(self):
        lies = Lies(self.scene)
        chosen = self.once(0, lies.every())
        if chosen and lies.begin():
            yield from self.play(lies, chosen)
            lies.end()

    @staticmethod
    def play(part, chosen):
        for case in chosen:
            yield part.play(case)


PARTS = ["requests", "start", "handover", "clocks", "disk", "names"]


def work(args, number, results):
    """One job: (part, cases, failed, seconds) for each part; a failed case is reported at once."""
    for part in [args.only] if args.only else PARTS:
        began, count, failed = time.monotonic(), 0, 0
        with tempfile.TemporaryDirectory(prefix="faults-") as folder:
            scene = Scene(folder)
            try:
                for complaint in getattr(Share(scene, args, number), part)():
                    count += 1
                    if complaint:
                        failed += 1
                        print("FAILED " + complaint, flush=True)
            except (oracles.Broken, OSError, AssertionError) as broken:
                failed += 1
                print("FAILED %s: %s: %s" % (part, type(broken).__name__, broken), flush=True)
            finally:
                scene.stop()
                if scene.program is not None and scene.program.alive():
                    scene.program.process.kill()
        results.put((part, count, failed, time.monotonic() - began))
    results.put(None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--times", type=int, default=1, metavar="K")
    parser.add_argument("--seed", default=datetime.date.today().isoformat())
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", choices=PARTS)
    args = parser.parse_args()
    if not SHIM.exists():
        parser.error("%s does not exist: without it no call would fail" % SHIM)
    start = multiprocessing.get_context("spawn")  # each job counts its own free ports
    results = start.Queue()
    jobs = [start.Process(target=work, args=(args, number, results)) for number in range(args.jobs)]
    for job in jobs:
        job.start()
    cases_of, failed, open_jobs = dict.fromkeys(PARTS, 0), 0, len(jobs)
    while open_jobs:
        row = results.get()
        if row is None:
            open_jobs -= 1
            continue
        part, count, wrong, seconds = row
        cases_of[part] += count
        failed += wrong
        print("%-10s %5d cases, %.0f s" % (part, count, seconds), flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        for job in jobs:
            job.join()
    print("%d cases of seed %s: %s; %d failed" % (sum(cases_of.values()), args.seed, ", ".join(
        "%s %d" % (part, count) for part, count in cases_of.items() if count), failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
