#!/usr/bin/env python3
"""Runs a measurement and stores its figures with their conditions.

    tests/bench/record.py peers PEERBENCH [OPTIONS]   # the load generator with its options, without --json
    tests/bench/record.py tunnels PEERBENCH [OPTIONS] # the same for the scenario of tunnels, beside other peers
    tests/bench/record.py curve POOL_CURVE [ROUNDS]   # build/release/tests/bench/pool_curve

The results go to tests/bench/results; tests/bench/report.py makes the tables of the documents from them."""
import functools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import conditions

DIGITS = 2


def numbers(values):
    return {key: round(value, DIGITS) for key, value in values.items() if value is not None}


def of_load(cell):
    """The figures of one round under load; those of a burst count as saturation."""
    sat, rate = cell.get("burst") or cell["sat"], cell.get("rate") or {}
    requests, half = max(sat["requests"], 1), sat["p50_us"]
    return {"cpu": sat["cpu_us"], "rps": sat["rps"], "sat_p50": sat["p50_us"], "sat_p99": sat["p99_us"],
            "tail": sat["p99_us"] / half if half else None, "opened_100k": 1e5 * sat["up"] / requests, "opened_burst": sat.get("up_per_burst"), "peak": sat["peak"], "jain": sat["jain"],
            "cpu_rate": rate.get("cpu_us"), "p50": rate.get("p50_us"), "p99": rate.get("p99_us"),
            "p999": rate.get("p999_us"), "opened": cell["up_total"]}


def of_round(cell):
    if "error" in cell:
        return {"failed": cell["failed"]}
    figures = {key: cell.get(key) for key in ("start_ms", "rss_idle", "rss_10000", "failed")}
    for clients in (1000, 10000):
        if "rss_%d" % clients in cell:
            figures["kib_client_%d" % clients] = (cell["rss_%d" % clients] - cell["rss_idle"]) / clients
    return numbers({**figures, **(of_load(cell) if "sat" in cell or "burst" in cell else {})})


def compare(name, program, *options):
    versions = {"HAProxy": conditions.version("haproxy", "-v"), "nginx": conditions.version("nginx", "-v"),
                "nghttpx": conditions.version("nghttpx", "--version"), "h2load": conditions.version("h2load", "--version"), "Squid": conditions.version("squid", "-v"),
                "Envoy": conditions.version(os.environ.get("ENVOY", "envoy"), "--version")}
    about = conditions.begin(**versions)
    with tempfile.TemporaryDirectory() as folder:
        raw = pathlib.Path(folder) / "raw.json"
        status = subprocess.run([program, *options, "--json", str(raw)], stdout=sys.stderr).returncode
        got = json.loads(raw.read_text())
    about.update(rounds=got["rounds"], seconds=got["seconds"])
    rows = [{"proxy": r["proxy"], "scenario": r["scenario"], "workers": r["workers"], "rounds": [of_round(c) for c in r["rounds"]]}
            for r in got["results"]]
    rates = {name: s.get("rate") for name, s in got["scenarios"].items() if s.get("rate")}
    conditions.write(conditions.ROOT / conditions.RESULTS / (name + ".json"), about, rows, rates=rates)
    return status


def tables(text):
    """The rows of each table in the text, as lists of numbers."""
    found = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split("|")]
        if re.match(r"^\| *[a-z]", line):
            found.append([])
        elif re.match(r"^\| *\d", line):
            found[-1].append([float(cell) for cell in cells])
    return found


def curve(program, rounds="3"):
    about = conditions.begin(**{"g++": conditions.version("g++", "-dumpfullversion")})
    about["rounds"] = int(rounds)
    runs = [tables(subprocess.run([program], text=True, capture_output=True, check=True).stdout) for _ in range(int(rounds))]
    rows = []
    for kind, same in zip(("places", "origins"), zip(*runs)):
        rows += [{kind: int(cells[0][0]), "least": [min(column) for column in zip(*cells)][1:]} for cells in zip(*same)]
    conditions.write(conditions.ROOT / conditions.RESULTS / "curve.json", about, rows)
    return 0


def main(words):
    known = {"curve": curve, **{name: functools.partial(compare, name) for name in ("peers", "tunnels")}}
    if len(words) < 2 or words[0] not in known:
        sys.exit(__doc__)
    return known[words[0]](os.path.abspath(words[1]), *words[2:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
