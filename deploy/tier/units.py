"""Runs the unit tests of one build: every COMPONENT_tests program, as many at a time as there are cores."""
import concurrent.futures
import json
import os
import subprocess

from outcome import Outcome
from shell import CORES, LOGS, ROOT, TooLate

# Components whose code runs on more than one thread; the first tier tests those that are about threads.
THREADED = ("exec", "pool", "net", "metrics", "telemetry", "upstream", "exchange", "downstream", "server")
FIRST_TIER = THREADED[:2]
# Components that own connections or parse what clients and origins send, and those whose precompiled headers their tests
# use; the first tier tests these under ASan.
EXPOSED = ("base", "exec", "pool", "metrics", "http", "net", "upstream", "exchange", "downstream")

ENVIRONMENT = {
    "asan": {"ASAN_OPTIONS": "detect_leaks=1:strict_string_checks=1:check_initialization_order=1",
             "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1"},
    "tsan": {"TSAN_OPTIONS": "halt_on_error=0:second_deadlock_stack=1:suppressions=%s" % (ROOT / "tests/tsan.supp")},
}
LIMIT = 1800
LONGEST = ("net", "pool", "exec", "http")  # begin first: otherwise the last of them would run alone


def order(program):
    component = program.name.split("_")[0]
    return LONGEST.index(component) if component in LONGEST else len(LONGEST), program.name


def targets(components=None):
    """Returns the programs of those components that have tests, else of all."""
    having = {path.name.split("_")[0] for path in (ROOT / "tests/unit").glob("*_test.cc")}
    return sorted(component + "_tests" for component in having if components is None or component in components)


def tsan_targets(full):
    return [*targets(THREADED if full else FIRST_TIER), *(["carpool"] if full else [])]


def asan_targets(full):
    return [*targets(None if full else EXPOSED), *(["carpool"] if full else [])]


def without_aslr():
    """Returns the prefix that disables ASLR: g++ 12's TSan cannot map its shadow under some kernels' randomisation."""
    off = ["setarch", "-R"]
    try:
        return off if subprocess.run([*off, "true"], capture_output=True).returncode == 0 else []
    except OSError:
        return []


def counts(report, name):
    """Reads a program's JSON report; a program that died before writing one has failed."""
    try:
        data = json.loads(report.read_text())
    except (OSError, ValueError):
        return Outcome(failed=1, note=name + " died")
    failed, skipped, bad = 0, 0, []
    for suite in data["testsuites"]:
        for test in suite["testsuite"]:
            if test.get("failures"):
                failed += 1
                bad.append("%s.%s" % (suite["name"], test["name"]))
            elif test.get("result") == "SKIPPED" or test.get("status") == "NOTRUN":
                skipped += 1
    return Outcome(data["tests"] - failed - skipped, failed, skipped, ", ".join(bad[:5]))


def one(log, program, preset, prefix, *more):
    name = program.name
    report = LOGS / ("unit-%s-%s.json" % (preset, name))
    report.unlink(missing_ok=True)
    try:
        status = log.run(*prefix, program, "--gtest_brief=1", "--gtest_output=json:%s" % report, *more, limit=LIMIT,
                         env=ENVIRONMENT.get(preset))
    except TooLate as late:
        return Outcome(failed=1, note=str(late))
    outcome = counts(report, name)
    if status and not outcome.failed:
        outcome = Outcome(outcome.passed, 1, outcome.skipped, "%s: exit status %d" % (name, status))
    return outcome


def run(preset):
    def step(log, full):
        folder = ROOT / "build" / preset / "tests"
        names = {"tsan": tsan_targets, "asan": asan_targets}.get(preset, lambda full: targets())(full)
        programs = sorted((p for p in folder.glob("*_tests") if p.name in names and os.access(p, os.X_OK) and p.is_file()), key=order)
        if not programs:
            return Outcome(failed=1, note="no test programs in build/%s" % preset)
        prefix = without_aslr() if preset == "tsan" else []
        with concurrent.futures.ThreadPoolExecutor(CORES) as pool:
            return sum(pool.map(lambda p: one(log, p, preset, prefix), programs), Outcome())
    return step
