"""Runs h2spec's cases against the listener: the errors an HTTP/2 client can make."""
import json

import tools
from outcome import Outcome
from shell import PROGRAM, ROOT, SHARED

# One port serves both versions: bytes other than the preface are an HTTP/1.1 request and get a 400.
EXPLAINED = {"http2/3.5: Sends invalid connection preface"}
BASE = 15800


def run(log, full):
    if not (SHARED / "suites").is_dir():
        return Outcome(skipped=1, note="../shared is not there")
    found, why = tools.get(log, "h2spec")
    if found is None:
        return Outcome(skipped=1, note=why)
    report = log.path.with_suffix(".json")
    report.unlink(missing_ok=True)
    log.run(ROOT / "build/venv/bin/python", "-B", SHARED / "suites/h2spec.py", "--spec", SHARED / "suites/specs/carpool.toml",
            "--h2spec", found, "--base", BASE, "--json", report, env={"CARPOOL": str(PROGRAM)})
    if not report.exists():
        return Outcome(failed=1, note="the suite wrote no report")
    said = json.loads(report.read_text())
    wrong = [name for name in said["failed"] if name not in EXPLAINED]
    failed = len(wrong) + (not said["alive"])
    return Outcome(said["tests"] - said["skipped"] - len(said["failed"]), failed,
                   said["skipped"] + len(said["failed"]) - len(wrong), ", ".join(wrong) or "one explained: 3.5, see docs/testing.md")
