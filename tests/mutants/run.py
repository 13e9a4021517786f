#!/usr/bin/env python3
"""Puts one defect after the other into a copy of the pool, builds what has to notice it, and says who did.

    tests/mutants/run.py [--sample N [--seed TEXT]] [--only WORDS] [--jobs N] [--list]

The tree itself is never touched. Ends with `N killed, N survived, N stale`; a mutant whose text is no longer there is
stale, and a failure like a survivor: who changes the line says what its defect is now."""
import argparse
import concurrent.futures
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from pool import MUTANTS  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
FLAGS = ["-std=c++20", "-O1", "-DCARPOOL_SOURCE_DIR=\"%s\"" % ROOT]
SEAM = '-DCARPOOL_POOL_ATOMIC="tests/explorer/atomic.h"'
RUN = {"explorer": [], "sim": ["--seconds", "20"], "litmus": ["--gtest_filter=*NeverMiss*"]}
LIMIT = 120  # seconds; who hangs is dead


def copy(to):
    for folder in ("base", "pool", "tests/explorer", "tests/sim", "tests/unit"):
        shutil.copytree(ROOT / folder, to / folder)


def sources(folder, killer):
    """The pool in one file, so that it is compiled once, by one compiler; and who looks at it."""
    parts = sorted((folder / "pool").glob("*.cc")) + sorted((folder / "base").glob("*.cc"))
    own = [folder / ("tests/unit/pool_%s_test.cc" % killer)]
    if killer == "explorer":
        own = sorted((folder / "tests/explorer").glob("*.cc"))
    elif killer == "sim":
        own = [folder / "tests/sim/destination_sim.cc"]
    all_in_one = folder / "pool_all.cc"
    all_in_one.write_text("".join('#include "%s"\n' % p.relative_to(folder) for p in parts))
    return [all_in_one, *own]


def built(folder, killer):
    program = folder / (killer + "_program")
    argv = ["nice", os.environ.get("CXX", "c++"), *FLAGS, "-I", str(folder), *map(str, sources(folder, killer)), "-o", str(program)]
    argv += [SEAM] if killer == "explorer" else [] if killer == "sim" else ["-lgtest", "-lgtest_main"]
    done = subprocess.run(argv + ["-lidn2", "-lpthread"], cwd=folder, text=True, capture_output=True)
    if done.returncode:
        raise RuntimeError("%s does not compile: %s" % (killer, [x for x in done.stderr.splitlines() if "error" in x][:2]))
    return program


def notices(folder, killer):
    """What the killer said; empty: it noticed nothing."""
    program = built(folder, killer)
    try:
        done = subprocess.run(["nice", str(program), *RUN.get(killer, [])], cwd=folder, text=True, capture_output=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return "hangs"
    if done.returncode == 0:
        return ""
    said = [line for line in (done.stdout + done.stderr).splitlines() if "FAILED" in line or "assert" in line.lower()]
    return (said or ["exit status %d" % done.returncode])[0].strip()


def judge(mutant):
    """(word, who and what)."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as name:
        folder = pathlib.Path(name)
        copy(folder)
        path = folder / mutant.path
        text = path.read_text()
        if text.count(mutant.old) != 1:
            return "stale", "%s has its text %d times" % (mutant.path, text.count(mutant.old))
        path.write_text(text.replace(mutant.old, mutant.new))
        for killer in mutant.killers:
            if said := notices(folder, killer):
                return "killed", "%s: %s" % (killer, said)
    return "survived", ", ".join(mutant.killers)


def report(mutant):
    began = time.monotonic()
    try:
        word, what = judge(mutant)
    except RuntimeError as error:
        word, what = "stale", str(error)
    print("%-9s %-62s %4.0f s  %s" % (word, mutant.name, time.monotonic() - began, what[:110]), flush=True)
    return word


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sample", type=int, default=0, help="so many, drawn by --seed")
    parser.add_argument("--seed", default="")
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()
    chosen = [m for m in MUTANTS if args.only in m.name]
    if args.list:
        return print("\n".join(m.name for m in chosen))
    stale = [m for m in chosen if (ROOT / m.path).read_text().count(m.old) != 1]  # all of them, whatever the sample is
    if args.sample:
        chosen = random.Random(args.seed).sample(chosen, min(args.sample, len(chosen)))
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        words = list(pool.map(report, chosen))
    for mutant in stale:
        if mutant not in chosen:
            print("stale     %s" % mutant.name)
            words.append("stale")
    print("%d killed, %d survived, %d stale" % tuple(words.count(w) for w in ("killed", "survived", "stale")))
    return 0 if words.count("killed") == len(words) else 1


if __name__ == "__main__":
    sys.exit(main())
