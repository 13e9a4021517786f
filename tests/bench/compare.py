#!/usr/bin/env python3
"""The pool beside the Java originals on this machine: runs both in turns and prints one table of CPU-ns and ratios.

    cmake --preset release -DCARPOOL_BENCH=ON && cmake --build --preset release --target pool_bench
    tests/bench/compare.py [--rounds 3] [--jmh ../shared/bench/jmh] [--rows REGEX] [--bench PATH] [--without-java]

One operation is borrow, 10..19 tokens of work (about 20 ns), restore. CPU-ns are those of all threads of the row; Java's
count the whole process, JIT and collector too. Ratio: ours to theirs, below 1 is less. Medians over the rounds."""
import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
STRATEGIES = ("FIRST", "RANDOM", "THREAD_ID", "ROUND_ROBIN", "DEQUE")
OURS = re.compile(r"^(\w+)/(\d+)(?:/(\d+))?/real_time/threads:(\d+)$")
POOL = re.compile(r"^PoolBench cpu=15 strategy=(\w+) size=(\d+) mux=(\d+) threads=(\d+)$")
SIMPLE = re.compile(r"^SimplePoolBench .*threads=(\d+)$")


def ours(program, rows):
    argv = ["nice", str(program), "--benchmark_filter=" + rows, "--benchmark_min_time=0.05", "--benchmark_format=json"]
    for run in json.loads(subprocess.run(argv, text=True, capture_output=True, check=True).stdout)["benchmarks"]:
        if (found := OURS.match(run["name"])) and "cpu_ns" in run:
            name, size, multiplex, threads = found.groups()
            yield (name, int(size), int(multiplex or 1), int(threads)), run["cpu_ns"], run["items_per_second"] / 1e6, run["busy"]


def theirs(folder, rows):
    """The Java rows of the same names."""
    wanted = "PoolBench cpu=15 strategy=(%s) " % rows
    if re.search(rows, "StateMachine"):
        wanted += "|SimplePoolBench (?=.*h2=false)(?=.*expireMs=0 )"
    env = {**os.environ, "ITERATION_MS": "250", "WARMUPS": "2", "ITERATIONS": "3"}
    done = subprocess.run(["nice", "sh", "run.sh", wanted], cwd=folder, text=True, capture_output=True, env=env, check=True)
    for line in done.stdout.splitlines():
        words = line.split()
        if len(words) < 4 or line.startswith("#"):
            continue
        case, (ops, _, cpu) = " ".join(words[:-3]), words[-3:]
        if found := POOL.match(case):
            name, size, multiplex, threads = found.groups()
            key = (name, int(size), int(multiplex), int(threads))
        elif found := SIMPLE.match(case):
            key = ("StateMachine", int(re.search(r"size=(\d+)", case).group(1)), 1, int(found.group(1)))
        else:
            continue
        if re.match(rows, key[0]):
            yield key, float(cpu), float(ops) / 1e6, 0.0


def java(folder):
    """A copy that can be built: the original may be read-only."""
    copy = ROOT / "build/jmh"
    if not copy.exists():
        shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("target"))
    return copy


def table(here, there):
    print("| row | size | multiplex | threads | ours CPU-ns | M/s | busy | original CPU-ns | M/s | ratio of CPU |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    worse = 0
    for key in sorted(here, key=lambda k: (k[0] not in STRATEGIES, k)):
        cpu, ops, busy = (statistics.median(x) for x in zip(*here[key]))
        line = "| %s | %d | %d | %d | %.1f | %.1f | %.0f %% |" % (*key, cpu, ops, 100 * busy / os.cpu_count())
        if key in there:
            original, speed, _ = (statistics.median(x) for x in zip(*there[key]))
            worse += cpu > original
            print(line, "%.0f | %.1f | %.3f |" % (original, speed, cpu / original))
        else:
            print(line, " | | |")
    print("\n%d rows, %d of them beside an original, %d dearer than it" % (len(here), len(there.keys() & here.keys()), worse))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jmh", type=pathlib.Path, default=ROOT.parent / "shared/bench/jmh")
    parser.add_argument("--bench", type=pathlib.Path, default=ROOT / "build/release/tests/bench/pool_bench")
    parser.add_argument("--rows", default="FIRST|RANDOM|THREAD_ID|ROUND_ROBIN|DEQUE|QUEUE|COUNTED_STACK|StateMachine")
    parser.add_argument("--without-java", action="store_true")
    args = parser.parse_args()
    here, there = collections.defaultdict(list), collections.defaultdict(list)
    for _ in range(args.rounds):
        for key, *figures in ours(args.bench, "^(%s)/" % args.rows):
            here[key].append(figures)
        if not args.without_java and args.jmh.is_dir():
            for key, *figures in theirs(java(args.jmh), args.rows):
                there[key].append(figures)
    table(here, there)


if __name__ == "__main__":
    main()
