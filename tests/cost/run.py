#!/usr/bin/env python3
"""Instructions, allocations and system calls of a request, against the figures of baseline.json.

    build/venv/bin/python tests/cost/run.py [--renew] [--only S1 ...] [--program PATH]

A figure that differs by more than three percent in either direction fails, and the functions that make the difference are
named. --renew writes the baseline: after a change that is meant, in the commit of that change. Times are not measured. Exit
status: 0, 1 if a figure differs, 3 if the baseline does not fit this machine."""
import argparse
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

import harness.carpool

import calls
import instructions
import machine
from scene import SCENARIOS

BASELINE = pathlib.Path(__file__).with_name("baseline.json")
ALLOWED = 0.03
LEAST = 0.05  # of a request: less is an event that is not each request's
CULPRITS, NAMED_FROM = 10, 5  # functions that are shown; instructions from which the baseline names one
UNFIT = 3


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--renew", action="store_true")
    parser.add_argument("--only", nargs="+", choices=SCENARIOS, default=list(SCENARIOS))
    parser.add_argument("--program", type=pathlib.Path, default=harness.carpool.PROGRAM)
    return parser.parse_args()


def measured(names):
    """Returns {scenario: its figures}; those of a request."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        profiles = instructions.measure(folder, names)
    with tempfile.TemporaryDirectory() as folder:
        counts = calls.measure(folder, names) if machine.may_attach() else {}
    for name, (profile, requests) in profiles.items():
        functions = {"%s %s" % of: round(cost / requests) for of, cost in profile.own.most_common() if cost >= NAMED_FROM * requests}
        found[name] = {"instructions": round(profile.total() / requests), "of the program": round(profile.of_program() / requests),
                       "allocations": round(profile.allocations() / requests, 1), "calls": counts.get(name), "functions": functions}
    return found


def differs(now, before):
    return abs(now - before) > max(ALLOWED * before, LEAST)


def share(now, before):
    return "%+.1f %%" % (100 * (now / before - 1)) if before else "%+g" % now


def compare(name, now, before, same_libraries):
    """Prints a line for each figure; returns whether one differs."""
    figures = {key: (now[key], before[key]) for key in ("instructions", "of the program", "allocations")}
    if now["calls"] is not None and before["calls"] is not None:
        figures["system calls"] = tuple(round(sum(of["calls"].values()), 2) for of in (now, before))
    wrong = {key: pair for key, pair in figures.items() if differs(*pair) and (same_libraries or key != "instructions")}
    for key, pair in figures.items():
        print("%s %-15s %9g, baseline %9g, %s%s" % (name, key, *pair, share(*pair), "  DIFFERS" if key in wrong else ""))
    if "instructions" in wrong or "of the program" in wrong:
        print_culprits(now["functions"], before["functions"])
    if "system calls" in wrong:
        print_culprits(now["calls"], before["calls"])
    return bool(wrong)


def print_culprits(now, before):
    change = {key: now.get(key, 0) - before.get(key, 0) for key in {*now, *before}}
    for key in sorted(change, key=lambda key: (-abs(change[key]), key))[:CULPRITS]:
        if change[key]:
            print("    %+9g  %s (%g, was %g)" % (change[key], key, now.get(key, 0), before.get(key, 0)))


def renew(names, found, conditions):
    known = json.loads(BASELINE.read_text())["scenarios"] if BASELINE.exists() else {}
    if set(names) != set(SCENARIOS) and known:
        found = {**known, **found}
    BASELINE.write_text(json.dumps({**conditions, "scenarios": found}, indent=1, ensure_ascii=False) + "\n")


def main():
    args = parse()
    harness.carpool.PROGRAM = args.program.resolve()
    conditions = {"compiler": machine.compiler(args.program), "libraries": machine.libraries()}
    before = json.loads(BASELINE.read_text()) if BASELINE.exists() and not args.renew else None
    if before and before["compiler"] != conditions["compiler"]:
        print("skipped: the baseline is of %s, this program of %s" % (before["compiler"], conditions["compiler"]))
        return UNFIT
    found = measured(args.only)
    if args.renew:
        renew(args.only, found, conditions)
        return 0
    same = before["libraries"] == conditions["libraries"]
    if not same:
        print("other libraries than the baseline's: instructions of the program alone are compared")
    wrong = [name for name in args.only if compare(name, found[name], before["scenarios"][name], same)]
    if wrong:
        print("differs: %s; if it is meant: tests/cost/run.py --renew" % ", ".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
