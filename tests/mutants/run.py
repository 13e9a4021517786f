#!/usr/bin/env python3
"""Runs the tests against defects that they must detect.

    tests/mutants/run.py [--only REGEX] [--files PATH] [--changed REV] [--sample N --seed TEXT] [--most N] [--jobs N] [--list] [--compile]

In a copy of the sources each mutant's text becomes a choice between right and wrong, so that one build of each program
holds all of them; CARPOOL_MUTANT selects the wrong one in a run, 0 none. The tree itself is never touched; the copy stays
in build/mutants, so that another run builds only what changed. --changed: the mutants of files that differ from REV, and
with --sample those and the sample. --compile: compiles all mutants outside pool/ and runs none. Ends with `N killed, N survived`; a mutant whose text is missing stops the run: a
change of the line must update its mutant."""
import argparse
import concurrent.futures
import fcntl
import os
import pathlib
import random
import re
import resource
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import books  # noqa: E402
import linked_build  # noqa: E402
import messages  # noqa: E402
import operations  # noqa: E402
import peers  # noqa: E402
import pool  # noqa: E402
import pool_build  # noqa: E402
import splices  # noqa: E402
import components  # noqa: E402
import edges  # noqa: E402
import learned  # noqa: E402
import trust  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMIT = 120  # seconds of CPU; a program that exceeds them counts as hung
WAITS = 5  # times the wall time that a program takes without a mutant; one that takes longer waits for what never comes
MUTANTS = (pool.MUTANTS + books.MUTANTS + components.MUTANTS + trust.MUTANTS + peers.MUTANTS +
           messages.MUTANTS + operations.MUTANTS + edges.MUTANTS + learned.MUTANTS + splices.MUTANTS)  # the number of a mutant is its place here


def numbered(paths):
    return [(n, mutant) for n, mutant in enumerate(MUTANTS, 1) if not mutant.equivalent and paths(mutant.path)]


class Programs:
    """Builds a program when the first mutant needs it."""

    def __init__(self, chosen):
        self.lock, self.built = threading.Lock(), {}
        folder = ROOT / "build/mutants"
        of_pool = lambda path: path.startswith("pool/")  # noqa: E731
        self.pool = pool_build.PoolBuild(ROOT, folder / "pool", numbered(of_pool))
        self.linked = linked_build.LinkedBuild(ROOT, folder / "linked", numbered(lambda path: not of_pool(path)), chosen)

    def of(self, mutant):
        """The programs that may detect it, the likeliest first, each with its arguments."""
        if not mutant.path.startswith("pool/"):
            return self.linked.programs_of(mutant)
        likely = sorted(self.pool.PROGRAMS, key=lambda p: p != mutant.killer)
        return [p for p in likely if p != "every order" or mutant.killer == "explorer"]

    def ready(self, mutant, program):
        """Returns the command that runs the program, and the longest time that it may take."""
        build = self.pool if mutant.path.startswith("pool/") else self.linked
        with self.lock:
            if (build, program) not in self.built:
                argv, began = build.build(program), time.monotonic()
                if said := complaint(argv, 0, 10 * LIMIT):
                    sys.exit("%s is wrong without a mutant: %s" % (program, said))
                self.built[build, program] = argv, 20 + WAITS * (time.monotonic() - began)
        return self.built[build, program]


def complaint(argv, number, limit):
    """Returns the program's failure for this mutant; empty: not detected."""
    try:
        done = subprocess.run(["nice", "-n", "5", *map(str, argv)], cwd=ROOT, text=True, errors="replace", capture_output=True, timeout=limit,
                              env={**os.environ, "CARPOOL_MUTANT": str(number), "GTEST_FAIL_FAST": "1"},
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT)))
    except subprocess.TimeoutExpired:
        return "does not end"
    if done.returncode == 0:
        return ""
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return "does not end"
    said = [line for line in (done.stdout + done.stderr).splitlines() if "FAILED" in line or "assert" in line.lower()]
    return (said or ["exit status %d" % done.returncode])[0].strip()


def judge(programs, number):
    mutant, began, said = MUTANTS[number - 1], time.monotonic(), ""
    for program in programs.of(mutant):
        argv, limit = programs.ready(mutant, program)
        if text := complaint(argv, number, limit):
            said = "%s: %s" % (program, text)
            break
    print("%-9s %-62s %4.0f s  %s" % ("killed" if said else "survived", mutant.name, time.monotonic() - began, said[:110]), flush=True)
    return bool(said)


def changed_since(revision):
    done = subprocess.run(["git", "-c", "safe.directory=*", "diff", "--name-only", revision], cwd=ROOT, text=True, capture_output=True)
    return set(done.stdout.split())


def chosen_of(args):
    known = [n for n, mutant in enumerate(MUTANTS, 1) if not mutant.equivalent and re.search(args.only, mutant.name) and
             mutant.path.startswith(args.files)]
    some = random.Random(args.seed).sample(known, min(args.sample, len(known))) if args.sample else []
    if not args.changed:
        return some or known
    paths = changed_since(args.changed)
    near = [n for n in known if MUTANTS[n - 1].path in paths]
    if args.most and len(near) > args.most:
        near = random.Random(args.seed).sample(near, args.most)
    return sorted({*near, *some})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=0, help="so many, drawn by --seed")
    parser.add_argument("--seed", default="")
    parser.add_argument("--changed", default="", metavar="REV", help="those of files that differ from REV")
    parser.add_argument("--most", type=int, default=0, help="at most so many of --changed, drawn by --seed")
    parser.add_argument("--only", default="")
    parser.add_argument("--files", default="", metavar="PATH", help="those of files whose path begins so")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--compile", action="store_true")
    args = parser.parse_args()
    chosen = chosen_of(args)
    if args.list:
        return print("\n".join("%-46s %s" % (MUTANTS[n - 1].path, MUTANTS[n - 1].name) for n in chosen))
    (ROOT / "build/mutants").mkdir(parents=True, exist_ok=True)
    with open(ROOT / "build/mutants/lock", "w") as lock, concurrent.futures.ThreadPoolExecutor(args.jobs) as executor:
        fcntl.flock(lock, fcntl.LOCK_EX)
        programs = Programs(chosen)
        if args.compile:
            wrong = programs.linked.check()
            return print("".join(wrong) or "all compile") or bool(wrong)
        killed = sum(executor.map(lambda n: judge(programs, n), chosen))
    print("%d killed, %d survived" % (killed, len(chosen) - killed))
    return 0 if killed == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
