#!/usr/bin/env python3
"""The pool beside the Java originals on this machine: runs both in turns and prints one table of CPU-ns and ratios.

    cmake --preset release -DCARPOOL_BENCH=ON && cmake --build --preset release --target pool_bench
    tests/bench/compare.py [--rounds 3] [--jmh ../shared/bench/jmh] [--rows REGEX] [--size 12] [--bench PATH]
                           [--without-java] [--json tests/bench/results/pool.json]

One operation is borrow, 10..19 tokens of work (about 20 ns), restore; without the work in the rows _TIGHT, where threads
contend all the time. CPU-ns are those of all threads of the row; Java's count the whole process, JIT and collector too.
Ratio: ours to theirs; for CPU less is better, for operations per second more. Medians over the rounds; in each round a kind
of row is measured for both before the next kind.

Afterwards the original experiment (twelve threads, twelve entries: locked stack, counted stack, locked queue
against ours, without the hint and with it) with its five factors: reproduced here, or not."""
import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess

import conditions

ROOT = pathlib.Path(__file__).resolve().parents[2]
STRATEGIES = ("FIRST", "RANDOM", "THREAD_ID", "ROUND_ROBIN", "DEQUE")  # as JMH names them too
ALONE = ("LENDER", "LENDER_TIGHT", "QUEUE", "QUEUE_TIGHT", "COUNTED_STACK", "COUNTED_STACK_TIGHT", "StateMachine",
         *(name + tail for name in ("ENTRY_0", "ENTRY_999", "ENTRY_0_SEARCHED", "ENTRY_999_SEARCHED") for tail in ("", "_TIGHT")))
OURS = re.compile(r"^(\w+)/(\d+)(?:/(\d+))?/real_time/threads:(\d+)$")
POOL = re.compile(r"^PoolBench cpu=(15|0) strategy=(\w+) size=(\d+) mux=(\d+) threads=(\d+)$")
SIMPLE = re.compile(r"^SimplePoolBench .*threads=(\d+)$")


def ours(program, rows, size):
    argv = ["nice", str(program), "--benchmark_filter=^%s/%s" % (rows, "%d/(1/)?real" % size if size else ""), "--benchmark_min_time=0.05", "--benchmark_format=json"]
    text = subprocess.run(argv, text=True, capture_output=True, check=True).stdout
    for run in json.loads(text)["benchmarks"] if text else ():  # some rows are of other sizes only
        if (found := OURS.match(run["name"])) and "cpu_ns" in run:
            name, size, multiplex, threads = found.groups()
            yield (name, int(size), int(multiplex or 1), int(threads)), run["cpu_ns"], run["items_per_second"] / 1e6, run["busy"]


def theirs(folder, row, size):
    """Returns the Java rows of the same name."""
    if row == "StateMachine":
        wanted = "SimplePoolBench (?=.*h2=false)(?=.*expireMs=0 )" + ("(?=.*size=%d )" % size if size else "")
    elif row.removesuffix("_TIGHT") in STRATEGIES:
        tight = row.endswith("_TIGHT")
        sizes = "size=%d mux=1 " % size if size else "size=12 " if tight else ""
        wanted = "PoolBench cpu=%d strategy=%s %s" % (0 if tight else 15, row.removesuffix("_TIGHT"), sizes)
    else:
        return
    env = {**os.environ, "ITERATION_MS": "250", "WARMUPS": "2", "ITERATIONS": "3"}
    done = subprocess.run(["nice", "sh", "run.sh", wanted], cwd=folder, text=True, capture_output=True, env=env, check=True)
    for line in done.stdout.splitlines():
        words = line.split()
        if len(words) < 4 or line.startswith("#"):
            continue
        case, (ops, _, cpu) = " ".join(words[:-3]), words[-3:]
        if found := POOL.match(case):
            _, _, size, multiplex, threads = found.groups()
            yield (row, int(size), int(multiplex), int(threads)), float(cpu), float(ops) / 1e6, 0.0
        elif found := SIMPLE.match(case):
            yield (row, int(re.search(r"size=(\d+)", case).group(1)), 1, int(found.group(1))), float(cpu), float(ops) / 1e6, 0.0


def java(folder):
    """Returns a copy that can be built: the original may be read-only. Adds pools of 1,000, which it omits."""
    copy = ROOT / "build/originals"
    if not copy.exists():
        shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("target"))
        for path in (copy, *copy.rglob("*")):
            path.chmod(path.stat().st_mode | 0o200)
        main = copy / "src/main/java/bench/Main.java"
        main.write_text(main.read_text().replace('List.of("12", "100")', 'List.of("12", "100", "1000")'))
    return copy


def medians(figures):
    return {key: [statistics.median(column) for column in zip(*rounds)] for key, rounds in figures.items()}


def newest_java():
    """Returns the version of the JDK that run.sh uses: JAVA_HOME's, else the newest one next to that of the PATH."""
    home = os.environ.get("JAVA_HOME")
    beside = pathlib.Path(shutil.which("java") or "java").resolve().parents[2]
    programs = [pathlib.Path(home) / "bin/java"] if home else beside.glob("*/bin/java")
    return max((conditions.version(str(program), "-version") for program in programs), key=lambda v: int(v.split(".")[0] or 0), default="")


def java_versions(folder):
    pom = folder / "pom.xml"
    found = re.findall(r"<(jetty|light4j)\.version>([^<]+)<", pom.read_text()) if pom.is_file() else ()
    return {"OpenJDK": newest_java(), **{{"jetty": "Jetty", "light4j": "light-4j"}[name]: text for name, text in found}}


def store(path, about, here, there):
    """Medians over the rounds, ours and the original's, as tests/bench/report.py reads them."""
    rows = []
    for key in sorted(here):
        row = dict(zip(("row", "size", "multiplex", "threads"), key), **dict(zip(("cpu_ns", "mops", "busy"), here[key])))
        if key in there:
            row.update(zip(("java_cpu_ns", "java_mops"), there[key]))
            row["mops_ratio"] = row["mops"] / row["java_mops"]
        rows.append({name: round(value, 3) if isinstance(value, float) else value for name, value in row.items()})
    conditions.write(path, about, rows)


def table(here, there):
    print("| row | size | multiplex | threads | ours CPU-ns | M/s | CPU | original CPU-ns | M/s | ratio of CPU | of M/s |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    dearer = 0
    for key in sorted(here, key=lambda k: (k[0].removesuffix("_TIGHT") not in STRATEGIES, k)):
        cpu, ops, busy = here[key]
        line = "| %s | %d | %d | %d | %.1f | %.1f | %.0f %% |" % (*key, cpu, ops, 100 * busy / os.cpu_count())
        if key in there:
            original, speed, _ = there[key]
            dearer += cpu > original
            print(line, "%.0f | %.1f | %.2f | %.2f |" % (original, speed, cpu / original, ops / speed))
        else:
            print(line, "| | | |")
    print("\n%d rows, %d of them beside an original, %d dearer than it" % (len(here), len(there.keys() & here.keys()), dearer))


# the claim, the factor, (which, multiplex), (than which, multiplex); twelve threads, twelve entries
CLAIMS = [("locked stack replaced", 5, ("FIRST", 1), ("DEQUE", 1)), ("counted stack replaced", 3, ("FIRST", 8), ("COUNTED_STACK", 8)),
          ("locked queue replaced", 10, ("ROUND_ROBIN", 1), ("QUEUE", 1)), ("hint, duplex", 4, ("THREAD_ID", 1), ("FIRST", 1)),
          ("hint, multiplexed", 10, ("THREAD_ID", 8), ("FIRST", 8))]


def experiment(here):
    """The five factors of the experiment, by throughput; a tenth less still counts."""
    print("\n| claim | factor | ours M/s, CPU | against M/s, CPU | factor here | |\n|---|--:|--:|--:|--:|---|")
    for claim, factor, who, whom in CLAIMS:
        keys = [(name, 12, multiplex, 12) for name, multiplex in (who, whom)]
        if not all(key in here for key in keys):
            continue
        (_, ours, busy), (_, others, other_busy) = (here[key] for key in keys)
        share = [100 * b / os.cpu_count() for b in (busy, other_busy)]
        verdict = "reproduced" if ours / others >= 0.9 * factor else "not reproduced"
        print("| %s | x%d | %.1f, %.0f %% | %.1f, %.0f %% | x%.2f | %s |" % (claim, factor, ours, share[0], others, share[1], ours / others, verdict))
    print("\non %d processors" % os.cpu_count())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jmh", type=pathlib.Path, default=ROOT.parent / "shared/bench/jmh")
    parser.add_argument("--bench", type=pathlib.Path, default=ROOT / "build/release/tests/bench/pool_bench")
    parser.add_argument("--rows", default=".", help="a pattern of names, as FIRST or .*_TIGHT")
    parser.add_argument("--size", type=int, default=0, help="of this size alone, lent to one at a time; 0: all")
    parser.add_argument("--without-java", action="store_true")
    parser.add_argument("--json", type=pathlib.Path, help="store the medians and their conditions")
    args = parser.parse_args()
    names = [name for name in (*STRATEGIES, *(s + "_TIGHT" for s in STRATEGIES), *ALONE) if re.match(args.rows, name)]
    with_java = not args.without_java and args.jmh.is_dir() and shutil.which("java") and shutil.which("mvn")
    about = conditions.begin(**{"g++": conditions.version("g++", "-dumpfullversion")}, **(java_versions(args.jmh) if with_java else {}))
    here, there = collections.defaultdict(list), collections.defaultdict(list)
    for _ in range(args.rounds):
        for name in names:
            for key, *figures in ours(args.bench, name, args.size):
                here[key].append(figures)
            for key, *figures in theirs(java(args.jmh), name, args.size) if with_java else ():
                there[key].append(figures)
    here, there = medians(here), medians(there)
    table(here, there)
    experiment(here)
    if args.json:
        store(args.json, {**about, "rounds": args.rounds}, here, there)


if __name__ == "__main__":
    main()
