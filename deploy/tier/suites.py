"""The acceptance suites beside the tree, judged case by case against tests/e2e/expected_failures.

A case of a feature that does not exist yet may be listed there; it counts as skipped while it fails, and as a failure
once it passes: then its line goes. One with a ~ in front of its id is known to fail in some runs and to pass in others.
"""
import json
import os

from outcome import Outcome
from shell import CORES, PROGRAM, ROOT, SHARED

EXPECTED = ROOT / "tests/e2e/expected_failures"
UNBUILT = ()  # classes of planned features
SHOULD_SHARE = 0.9
SPEC = SHARED / "suites/specs/carpool.toml"
# carpool behind an adapter: the suite's bytes arrive inside an intercepted CONNECT.
INTERCEPTED = ROOT / "tests/e2e/intercepted/spec.toml"
# SHOULD cases that carpool must nevertheless meet.
PROMISED = {"dns-01", "stale-02", "connect-01", "connect-02", "slow-02"}


def expected(suite):
    """Returns the ids listed for a suite: lines `SUITE ID reason`."""
    found = set()
    for line in EXPECTED.read_text().splitlines():
        words = line.split("#")[0].split()
        if len(words) >= 2 and words[0] == suite:
            found.add(words[1])
    return found


def judge(cases, listed, log):
    """Judges cases: (id, class, rule, passed or None, why, is held). Returns one Outcome; each surprise is in the log
    and the note."""
    total, notes, should = Outcome(), [], []
    for name, kind, rule, passed, why, held in cases:
        unbuilt = kind in UNBUILT
        if rule == "SHOULD" and not unbuilt and passed is not None:
            should.append(passed)
        if passed is None or (not passed and (name in listed or (unbuilt and held))):
            total.skipped += 1
        elif not passed and "~" + name in listed:
            total.skipped += 1
            log.say("failed this time: %s %s" % (name, why))
        elif passed and name not in listed:
            total.passed += 1
        elif passed:
            total.failed += 1
            notes.append("%s passes now: take it off the list" % name)
        elif rule == "SHOULD":
            total.skipped += 1
            log.say("SHOULD not met: %s %s" % (name, why))
        else:
            total.failed += 1
            notes.append(name)
            log.say("FAILED: %s %s" % (name, why))
    if should and sum(should) < SHOULD_SHARE * len(should):
        total.failed += 1
        notes.append("SHOULD %d of %d" % (sum(should), len(should)))
    total.note = ", ".join(notes) or ("SHOULD %d of %d" % (sum(should), len(should)) if should else "")
    return total


def absent():
    return None if (SHARED / "suites").is_dir() else Outcome(skipped=1, note="../shared is not there")


def play(log, suite, report, limit, spec, *extra):
    report.unlink(missing_ok=True)
    python = ROOT / "build/venv/bin/python"
    adapter = {"PYTHON": str(python), "ADAPTER": str(INTERCEPTED.with_name("adapter.py"))}
    log.run(python, "-B", SHARED / "suites" / suite / "run.py", "--spec", spec, "--json", report, *extra, limit=limit,
            env={"CARPOOL": str(PROGRAM), **adapter})
    return json.loads(report.read_text()) if report.exists() else None


def wire(form, base, spec=SPEC, name="wire"):
    def step(log, full):
        if absent():
            return absent()
        data = play(log, "wire", log.path.with_suffix(".json"), 1800, spec, "--form", form, "--base", base)
        if data is None:
            return Outcome(failed=1, note="the suite wrote no report")
        total = judge([(c["id"], c["class"], c["rule"], c["ok"], c["why"], c["set"] == "held") for c in data["cases"]],
                      expected(name), log)
        for word in ("crashes", "wedged"):
            if data[word]:
                total += Outcome(failed=1, note="%s %d" % (word, data[word]))
        return total
    return step


def system_faults(log, full):
    """Plays faults of the system in a network namespace of its own, where a name server has its port."""
    inside = ["unshare", "-n", "sh", "-c", 'ip link set lo up; exec "$@"', "sh"] if os.geteuid() == 0 else []
    status = log.run(*inside, ROOT / "build/venv/bin/python", "-B", "tests/system_faults/run.py", "--jobs", CORES, *(["--full"] if full else ["--seed", "short"]),
                     limit=14400 if full else 1800)
    failed = log.tail("FAILED ", 1000)
    played = (log.tail(" cases of seed ") or ["0 cases"])[0]
    note = "; ".join(line.split("FAILED ")[1][:100] for line in failed[:5]) or played
    return Outcome(int(played.split()[0]) - len(failed), len(failed) or bool(status), note=note)


def faults(spec=SPEC, name="faults"):
    def step(log, full):
        if absent():
            return absent()
        # As the suite itself does. A change root whose root is no mount point permits none.
        if log.run("unshare", *([] if os.geteuid() == 0 else ["-r"]), "-n", "-m", "--propagation", "private", "true"):
            return Outcome(skipped=1, note="the suite needs a mount namespace, and none can be made here")
        rows = play(log, "faults", log.path.with_suffix(".json"), 1800, spec)
        if rows is None:
            return Outcome(failed=1, note="the suite wrote no report")
        return judge([as_case(row) for row in rows], expected(name), log)
    return step


def as_case(row):
    passed = {"ok": True, "FAIL": False}.get(row["verdict"])
    # A response for the wrong request, a request sent twice, a crashed program: never acceptable, regardless of the rule.
    critical = passed is False and "CRITICAL" in row["why"]
    rule = "MUST" if critical or row["id"] in PROMISED else row["rule"]
    kind = "" if row["id"] in PROMISED else row["id"].rsplit("-", 1)[0]
    return row["id"], kind, rule, passed, row["why"], row["set"] == "held"
