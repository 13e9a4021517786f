#!/usr/bin/env python3
"""Runs the tests against defects of the pool, which they must detect.

    tests/mutants/run.py [--sample N --seed TEXT] [--only REGEX] [--jobs N] [--list]

In a copy of the pool each mutant's text becomes a choice between right and wrong, so that one build of each program holds
all of them; CARPOOL_MUTANT selects the wrong one in a run, 0 none. The tree itself is never touched. Ends with `N killed,
N survived`; a mutant whose text is missing stops the run: a change of the line must update its mutant."""
import argparse
import concurrent.futures
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from pool import MUTANTS  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
FLAGS = ["-std=c++20", "-O1", "-w", '-DCARPOOL_SOURCE_DIR="%s"' % ROOT]
SEAM = ['-DCARPOOL_POOL_ATOMIC="tests/explorer/atomic.h"', '-DCARPOOL_EXEC_ATOMIC="tests/explorer/exec_atomic.h"']
UNITS = ("entry_state", "core", "supply", "pending_places", "connection_budget", "event", "wait_queue", "dial", "destination", "directory", "regression", "shared", "class_quota", "warm_up", "cancel_dials", "user_regression", "allocation",
         "no_memory", "idle_limit_learner")
PROGRAMS = {"unit": ["--gtest_filter=-Pool.*Threads*:Pool.AnswersEvery*"], "explorer": ["--random", "10000", "--delays", "4"],
            "sim": ["--seconds", "300", "--histories", "10000"], "every order": []}
BUILT = {"every order": "explorer"}  # the same program with all its schedules: if no other program detected anything
LIMIT = 120  # seconds of CPU; a program that exceeds them counts as hung

CHOICE = """
#include <cstdlib>
#include <type_traits>
namespace carpool {
inline const int chosen_mutant = std::getenv("CARPOOL_MUTANT") == nullptr ? 0 : std::atoi(std::getenv("CARPOOL_MUTANT"));
constexpr bool mutant(int number) { return std::is_constant_evaluated() ? false : number == chosen_mutant; }
}
"""


def chosen_between(old, variants):
    """Returns the text of a place: the correct one, unless one of the variants (number, text) is selected."""
    if old.split("//")[0].rstrip().endswith(";"):
        return "".join("if (::carpool::mutant(%d)) {\n%s\n} else " % v for v in variants) + "{\n%s\n}" % old
    return "(" + "".join("::carpool::mutant(%d) ? (%s) : " % v for v in variants) + "(%s))" % old


def scratch(to):
    for folder in ("base", "exec", "pool", "tests/explorer", "tests/sim", "tests/unit"):
        shutil.copytree(ROOT / folder, to / folder)
    seam = to / "pool/core/atomic.h"
    seam.write_text(seam.read_text() + CHOICE)
    places = {}
    for number, mutant in enumerate(MUTANTS, 1):
        places.setdefault((mutant.path, mutant.old), []).append((number, mutant.new))
    for (path, old), variants in places.items():
        text = (to / path).read_text()
        if text.count(old) != 1:
            sys.exit("%s has %d times: %s\nits mutants: %s" % (path, text.count(old), old, ", ".join(MUTANTS[n - 1].name for n, _ in variants)))
        (to / path).write_text(text.replace(old, chosen_between(old, variants)))


def build(folder, program):
    """Compiles the pool once, as one file, with the programs that test it."""
    everything = folder / "all.cc"
    parts = sorted(p for room in ("pool", "base") for p in (folder / room).rglob("*.cc"))
    everything.write_text("".join('#include "%s"\n' % p.relative_to(folder) for p in parts))
    own = {"unit": [folder / ("tests/unit/pool_%s_test.cc" % u) for u in UNITS], "sim": [folder / "tests/sim/destination_sim.cc"],
           "explorer": sorted((folder / "tests/explorer").glob("*.cc"))}[program]
    argv = ["nice", os.environ.get("CXX", "c++"), *FLAGS, *(SEAM if program == "explorer" else []), "-I", folder, everything, *own,
            "-o", folder / program, *(["-lgtest", "-lgtest_main"] if program == "unit" else []), "-lidn2", "-lpthread"]
    done = subprocess.run([str(a) for a in argv], cwd=folder, text=True, capture_output=True)
    if done.returncode:
        sys.exit("%s does not compile:\n%s" % (program, done.stderr[:3000]))


def complaint(folder, program, number):
    """Returns the program's failure for this mutant; empty: not detected."""
    done = subprocess.run(["nice", str(folder / BUILT.get(program, program)), *PROGRAMS[program]], cwd=folder, text=True, capture_output=True,
                          env={**os.environ, "CARPOOL_MUTANT": str(number)},
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT)))
    if done.returncode == 0:
        return ""
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return "does not end"
    said = [line for line in (done.stdout + done.stderr).splitlines() if "FAILED" in line or "assert" in line.lower()]
    return (said or ["exit status %d" % done.returncode])[0].strip()


def judge(folder, number):
    mutant, began = MUTANTS[number - 1], time.monotonic()
    said = ""
    for program in sorted(PROGRAMS, key=lambda p: p != mutant.killer):
        said = said or (text := complaint(folder, program, number)) and "%s: %s" % (program, text)
        if said:
            break
    print("%-9s %-62s %4.0f s  %s" % ("killed" if said else "survived", mutant.name, time.monotonic() - began, said[:110]), flush=True)
    return bool(said)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=0, help="so many, drawn by --seed")
    parser.add_argument("--seed", default="")
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()
    chosen = [n for n, mutant in enumerate(MUTANTS, 1) if re.search(args.only, mutant.name)]
    if args.list:
        return print("\n".join(MUTANTS[n - 1].name for n in chosen))
    if args.sample:
        chosen = random.Random(args.seed).sample(chosen, min(args.sample, len(chosen)))
    with tempfile.TemporaryDirectory(prefix="mutants-") as name, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        folder = pathlib.Path(name)
        scratch(folder)
        programs = [p for p in PROGRAMS if p not in BUILT]
        list(pool.map(lambda p: build(folder, p), programs))
        if wrong := [p for p, said in zip(programs, pool.map(lambda p: complaint(folder, p, 0), programs)) if said]:
            sys.exit("without a mutant already wrong: " + ", ".join(wrong))
        killed = sum(pool.map(lambda n: judge(folder, n), chosen))
    print("%d killed, %d survived" % (killed, len(chosen) - killed))
    return 0 if killed == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
