#!/usr/bin/env python3
"""The strategies beside Jetty's on this machine: runs both in turns and prints one table of CPU-ns a task and ratios.

    cmake --preset release -DCARPOOL_BENCH=ON && cmake --build --preset release --target exec_bench
    tests/bench/compare_exec.py [--rounds 3] [--jmh ../shared/bench/jmh] [--bench PATH] [--without-java]
                                [--json tests/bench/results/execution.json]

A batch of 200 tasks, one producer, 8 to 64 threads, 8 in reserve. CPU-ns are those of the whole process, Java's JIT and
collector too. Ratio: ours to theirs, below 1 is less. Medians over the rounds."""
import argparse
import collections
import json
import os
import pathlib
import re
import statistics
import subprocess

import compare
import conditions

OURS = re.compile(r"^Batch/(\w+)/(\w+)/(\w+)/process_time/real_time$")
THEIRS = re.compile(r"^ExecBench work=(\S+) type=(\w+) mode=(\w+) threads=1$")
WORK = {"20": "20_tokens", "1000": "1000_tokens", "-50": "sleep_50us"}


def ours(program):
    argv = ["nice", str(program), "--benchmark_filter=^Batch/", "--benchmark_min_time=0.1", "--benchmark_format=json"]
    for run in json.loads(subprocess.run(argv, text=True, capture_output=True, check=True).stdout)["benchmarks"]:
        if found := OURS.match(run["name"]):
            yield found.groups(), run["cpu_ns"], run["items_per_second"] / 1e3


def theirs(folder):
    env = {**os.environ, "ITERATION_MS": "250", "WARMUPS": "2", "ITERATIONS": "3"}
    done = subprocess.run(["nice", "sh", "run.sh", "ExecBench.*"], cwd=folder, text=True, capture_output=True, env=env, check=True)
    for line in done.stdout.splitlines():
        words = line.split()
        if found := THEIRS.match(" ".join(words[:-3])):
            work, kind, mode = found.groups()
            yield (WORK[work], kind.lower(), mode), float(words[-1]), float(words[-3]) / 1e3


def store(path, about, here, there):
    rows = []
    for key in sorted(here):
        row = dict(zip(("work", "says", "mode"), key), **dict(zip(("cpu_ns", "kops"), (statistics.median(x) for x in zip(*here[key])))))
        if key in there:
            row.update(zip(("java_cpu_ns", "java_kops"), (statistics.median(x) for x in zip(*there[key]))))
        rows.append({name: round(value, 1) if isinstance(value, float) else value for name, value in row.items()})
    conditions.write(path, about, rows)


def table(here, there):
    print("| work | task says | mode | ours CPU-ns | k/s | Jetty CPU-ns | k/s | ratio of CPU |")
    print("|---|---|---|--:|--:|--:|--:|--:|")
    for key in sorted(here):
        cpu, speed = (statistics.median(x) for x in zip(*here[key]))
        line = "| %s | %s | %s | %.0f | %.0f |" % (*key, cpu, speed)
        if key not in there:
            print(line, " | | |")
            continue
        original, other = (statistics.median(x) for x in zip(*there[key]))
        print(line, "%.0f | %.0f | %.2f |" % (original, other, cpu / original))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jmh", type=pathlib.Path, default=compare.ROOT.parent / "shared/bench/jmh")
    parser.add_argument("--bench", type=pathlib.Path, default=compare.ROOT / "build/release/tests/bench/exec_bench")
    parser.add_argument("--without-java", action="store_true")
    parser.add_argument("--json", type=pathlib.Path, help="store the medians and their conditions")
    args = parser.parse_args()
    with_java = not args.without_java and args.jmh.is_dir()
    about = conditions.begin(**{"g++": conditions.version("g++", "-dumpfullversion")}, **(compare.java_versions(args.jmh) if with_java else {}))
    here, there = collections.defaultdict(list), collections.defaultdict(list)
    for _ in range(args.rounds):
        for key, *figures in ours(args.bench):
            here[key].append(figures)
        if with_java:
            for key, *figures in theirs(compare.java(args.jmh)):
                there[key].append(figures)
    table(here, there)
    if args.json:
        store(args.json, {**about, "rounds": args.rounds}, here, there)


if __name__ == "__main__":
    main()
