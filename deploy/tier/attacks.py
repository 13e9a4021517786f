"""Hostile clients, origins and files: the scripts of the attack suite beside the tree, and its fuzzer of both sides. Each script
starts the program in a network namespace of its own, so several run at a time; most of them wait most of the time."""
import concurrent.futures
import os
import re

import units
from outcome import Outcome
from shell import ROOT, SHARED, Log

FOLDER = SHARED / "suites/attacks"
PYTHON = ROOT / "build/venv/bin/python"
AT_ONCE = 4
SHORT_FUZZ, LONG_FUZZ = (20, (1, 2)), (600, range(1, 11))


def absent():
    if not FOLDER.is_dir():
        return Outcome(skipped=1, note="../shared is not there")
    return Outcome(skipped=1, note="network namespaces need root") if os.geteuid() else None


def one_script(whole, script, program, environment, limit):
    """Returns the outcome of one script; its rows are in a log of its own."""
    log = Log("%s-%s" % (whole.path.stem, script.stem), whole)
    log.run(PYTHON, "-B", "run.py", script.name, cwd=FOLDER, limit=limit, env={"CARPOOL": str(program), **environment})
    found = re.findall(r"^%s: (\d+) held, (\d+) failed" % re.escape(script.name), log.path.read_text(errors="replace"), re.M)
    if not found:
        return Outcome(failed=1, note=script.stem + " said nothing")
    held, failed = map(int, found[-1])
    return Outcome(held, failed, note="%s %d" % (script.stem.split("_")[0], failed) if failed else "")


def one_seed(whole, seed, seconds, program, environment):
    log = Log("%s-%d" % (whole.path.stem, seed), whole)
    log.run("unshare", "-n", "sh", "-c", 'ip link set lo up; exec "$@"', "sh", PYTHON, "-B", "fuzz.py", seconds, seed, 2, cwd=FOLDER,
            limit=seconds + 120, env={"CARPOOL": str(program), **environment})
    rows = re.findall(r"^(HELD|FAIL)  (.*)", log.path.read_text(errors="replace"), re.M)
    failed = [row for word, row in rows if word == "FAIL"]
    if not rows:
        return Outcome(failed=1, note="seed %d said nothing" % seed)
    return Outcome(len(rows) - len(failed), len(failed), note="seed %d: %s" % (seed, failed[0][:60]) if failed else "")


def side_by_side(work, items, at_once):
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        return sum(pool.map(work, items), Outcome())


def environment_of(program, script=None):
    """Under AddressSanitizer a03 compares resident memory: what is freed is not kept there for long."""
    environment = dict(units.ENVIRONMENT.get(program.parent.name, {}))
    if script is not None and script.name.startswith("a03_") and "ASAN_OPTIONS" in environment:
        environment["ASAN_OPTIONS"] += ":quarantine_size_mb=1"
    return environment


def chosen(program):
    """Under AddressSanitizer the rows of a11 compare resident memory that is the sanitizer's own."""
    left_out = ("a11_",) if program.parent.name == "asan" else ()
    return [script for script in sorted(FOLDER.glob("a[0-9][0-9]_*.py")) if not script.name.startswith(left_out)]


def scripts(program):
    def step(log, full):
        return absent() or side_by_side(lambda script: one_script(log, script, program, environment_of(program, script), 600),
                                        chosen(program), AT_ONCE)
    return step


def fuzz(program, form):
    seconds, seeds = form

    def step(log, full):
        return absent() or side_by_side(lambda seed: one_seed(log, seed, seconds, program, environment_of(program)), seeds, 2)
    return step
