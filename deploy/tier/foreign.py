"""Suites that were written elsewhere, for other programs, with carpool in between. A case that fails must be explained in
tests/foreign/explained/SUITE; an explained case that passes fails the step, until its line is removed."""
import json

from outcome import Outcome
from shell import PROGRAM, ROOT

FOLDER = ROOT / "tests/foreign"


def explained(suite):
    """Returns the ids of the explained cases: lines `CASE  reason`; one with a ~ in front fails in some runs only."""
    lines = (FOLDER / "explained" / suite).read_text().splitlines()
    return {line.split()[0] for line in lines if line.strip() and not line.startswith("#")}


def judge(cases, listed, log):
    total, notes = Outcome(), []
    for case in cases:
        name, passed = case["id"], case["passed"]
        if passed is None or (not passed and name in listed) or "~" + name in listed:
            total.skipped += 1
        elif passed and name not in listed:
            total.passed += 1
        else:
            total.failed += 1
            notes.append(name if not passed else "%s passes now: take it off the list" % name)
            log.say("%s: %s" % (notes[-1], case["why"]))
    gone = {name.lstrip("~") for name in listed} - {case["id"] for case in cases}
    if gone:
        notes.append("explained, but not run: " + " ".join(sorted(gone)))
        total.failed += 1
    total.note = ", ".join(notes[:8])
    return total


def suite(name, script, limit=1800):
    """Returns a step that runs tests/foreign/SCRIPT and judges its report."""
    def step(log, full):
        report = log.path.with_suffix(".json")
        report.unlink(missing_ok=True)
        status = log.run(ROOT / "build/venv/bin/python", "-B", FOLDER / script, "--json", report, limit=limit, env={"CARPOOL": str(PROGRAM)})
        if not report.exists():
            return Outcome(failed=1, note="the suite wrote no report, exit status %d" % status)
        said = json.loads(report.read_text())
        if said["absent"]:
            return Outcome(skipped=1, note=said["absent"])
        return judge(said["cases"], explained(name), log)
    return step
