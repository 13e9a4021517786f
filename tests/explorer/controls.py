#!/usr/bin/env python3
"""Makes one memory order of the explored code weaker at a time: the explorer must notice, or the order is not needed.

    tests/explorer/controls.py [--only REGEX] [--sample N --seed TEXT] [--needless] [--find] [--jobs N] [--program PATH]

orders.py says for each control which scenario fails, or why none does (a group of orders may only be needed together); a control that it does not name is an error, and so
is one that it names and the code does not have. --needless: tries the controls that no scenario notices too, in all
scenarios: one that is noticed is an error. --find: prints the rows of the table as they are found. Ends with `N caught,
N not needed, N wrong`."""
import argparse
import collections
import concurrent.futures
import dataclasses
import os
import pathlib
import random
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import orders  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMIT = 900  # seconds
REACHED = ["--most", "3000"]  # schedules of each scenario after which every site was reached
CAUGHT = (["--most", "30000"], ["--random", "10000"])  # as the step `explorer`
FIND = (REACHED, ["--random", "3000"])


@dataclasses.dataclass(frozen=True)
class Control:
    name: str  # FILE FUNCTION PART ORDER, and a number if the function has several such sites
    sites: dict  # of the instances of one template, each with its weaker order


def function_of(text):
    """Returns the shortest name of a function; of a function that is passed a step, the name of what passes it."""
    if outer := re.search(r"(?:Step|Function) = (?:[\w:]*::)?(\w+)\([^;\]]*<lambda", text):
        return outer[1]
    text = re.sub(r" \[with .*", "", text)
    for _ in range(text.count("<")):
        text = re.sub(r"<[^<>]*>", "", text)
    return re.findall(r"([~\w]+)\(", text.replace("(*)", ""))[-1 if "::lambda" in text else 0]


def weaker(order, part):
    if order == "seq_cst":
        return {"load": ("acquire",), "failure": ("acquire",), "store": ("release",)}.get(part, ("acq_rel",))
    return {"acq_rel": ("acquire", "release"), "acquire": ("relaxed",), "release": ("relaxed",)}[order]


def controls(program):
    done = subprocess.run([program, "--sites", *REACHED], text=True, capture_output=True, check=True)
    places = collections.defaultdict(lambda: collections.defaultdict(list))
    for key, order, function in (line.split("\t") for line in done.stdout.splitlines() if "\t" in line):
        path, line, column, _, part = key.split(":")
        if order != "relaxed" and not path.startswith("tests/"):
            places[path, function_of(function), part, order][int(line), int(column)].append(key)
    result = {}
    for (path, function, part, order), at in sorted(places.items()):
        for number, position in enumerate(sorted(at), 1):
            for less in weaker(order, part):
                name = " ".join([path, function, part, less] + ([str(number)] if len(at) > 1 else []))
                result[name] = Control(name, dict.fromkeys(at[position], less))
    return result


def group(name, known):
    """Returns the control that weakens all orders of a group; an acq_rel becomes relaxed."""
    sites = {}
    for control in known.values():
        if re.search(orders.GROUPS[name][0], control.name):
            for site, order in control.sites.items():
                sites[site] = "relaxed" if sites.get(site, order) != order else order
    return Control("group " + name, sites)


def failing(program, control, bounds, only=""):
    """Returns the scenario that fails; None: none does."""
    argv = [program, *bounds, *(["--only", only] if only else [])]
    for site, order in control.sites.items():
        argv += ["--control", "%s %s" % (site, order)]
    done = subprocess.run(["nice", "-n", "5", *map(str, argv)], text=True, errors="replace", capture_output=True, timeout=LIMIT)
    if done.returncode == 0:
        return None
    said = re.search(r"FAILED: ([^\n]*)", done.stdout)
    return said[1] if said else "exit status %d" % done.returncode


def judge(program, control, args):
    """Returns (word, what to say): `caught`, `not needed` or `wrong`."""
    expected = orders.CAUGHT.get(control.name) or orders.GROUPS.get(control.name[len("group "):], ("", ""))[1]
    if expected:
        for bounds in CAUGHT:
            if failing(program, control, bounds, expected):
                return "caught", expected
        return "wrong", "no schedule of the scenario fails: " + expected
    reason = orders.needless(control.name)
    if reason and not args.needless:
        return "not needed", reason
    for bounds in FIND if args.find else CAUGHT:
        if said := failing(program, control, bounds):
            return ("caught" if args.find else "wrong"), "is noticed: " + said
    return ("not needed" if reason or args.find else "wrong"), reason or "no scenario notices it, and the table gives no reason"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--seed", default="")
    parser.add_argument("--needless", action="store_true")
    parser.add_argument("--find", action="store_true")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--program", default=ROOT / "build/release/tests/pool_explorer")
    args = parser.parse_args()
    known = controls(args.program)
    counts = collections.Counter()
    for name in sorted(orders.CAUGHT.keys() - known.keys()):
        print("wrong      %s: the code has no such order" % name)
        counts["wrong"] += 1
    known |= {one.name: one for one in [group(name, known) for name in orders.GROUPS]}
    chosen = [known[name] for name in known if re.search(args.only, name)]
    if args.find:
        chosen = [c for c in chosen if c.name not in orders.CAUGHT and not orders.needless(c.name)]
    if args.sample:
        some = set(random.Random(args.seed).sample(sorted(orders.CAUGHT), args.sample))
        chosen = [c for c in chosen if c.name in some or (c.name not in orders.CAUGHT and not orders.needless(c.name))]
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as executor:
        for control, (word, said) in zip(chosen, executor.map(lambda c: judge(args.program, c, args), chosen)):
            counts[word] += 1
            print("%-10s %s: %s" % (word, control.name, said), flush=True)
    print("%d caught, %d not needed, %d wrong" % (counts["caught"], counts["not needed"], counts["wrong"]))
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
