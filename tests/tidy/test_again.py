"""What the tier does with a step that failed once."""
import importlib.util
import json
import pathlib
import sys
import types

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "deploy/tier"))

import main  # noqa: E402
import shell  # noqa: E402
import steps  # noqa: E402
from outcome import Outcome, Step  # noqa: E402


def played(monkeypatch, tmp_path, outcomes, again):
    """Returns the outcome of a group of one step whose runs end as listed, and how many are left."""
    monkeypatch.setattr(shell, "LOGS", tmp_path)
    left = list(outcomes)
    step = Step("one", "a step", lambda log, full: left.pop(0), again=again)
    return main.run_group([step], False, set())[0], len(left)


BAD, GOOD = Outcome(passed=3, failed=1, note="late"), Outcome(passed=4)


def test_a_failure_that_does_not_come_again_is_named_and_passes(monkeypatch, tmp_path):
    outcome, left = played(monkeypatch, tmp_path, [BAD, GOOD], True)
    assert (outcome.passed, outcome.failed, outcome.unsteady, left) == (4, 0, "one (late)", 0)


def test_a_failure_that_comes_again_fails(monkeypatch, tmp_path):
    outcome, _ = played(monkeypatch, tmp_path, [BAD, BAD], True)
    assert (outcome.failed, outcome.unsteady) == (1, "")


def test_a_failure_is_told_with_the_end_of_its_log(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(shell, "LOGS", tmp_path)

    def run(log, full):
        log.run(sys.executable, "-c", "print('\\n'.join('line %d' % n for n in range(40)))")
        return BAD
    main.run_group([Step("one", "a step", run)], False, set())
    told = capsys.readouterr().out.splitlines()
    assert told[1].startswith("one            FAILED, 3 passed, 1 failed") and [line.split("| ")[1] for line in told[2:]] == ["line %d" % n for n in range(25, 40)]


class Pytest:
    """A log whose command is a pytest that writes these reports, one after the other; None or a status: it ends without one."""

    def __init__(self, path, *reports):
        self.path, self.reports, self.runs = path, list(reports), []

    def run(self, *command, **_):
        if "--collect-only" in command:
            return 0
        self.runs.append([str(word) for word in command])
        report = self.reports.pop(0)
        if not isinstance(report, dict):
            return 4 if report is None else report
        self.path.with_suffix(".json").write_text(json.dumps(report))
        return 1 if report["failed"] else 0


NAMES = ["test_a.py::test_one[/pools-1]", "test_b.py::test_two"]
TWO = {"passed": 5, "failed": 2, "skipped": 0, "names": NAMES}


def end_to_end(tmp_path, *reports):
    log = Pytest(tmp_path / "e2e.log", *reports)
    return steps.e2e(pathlib.Path("build/release/carpool"))(log, False), log.runs


def test_end_to_end_tests_that_failed_run_once_more_by_their_whole_names(tmp_path):
    outcome, runs = end_to_end(tmp_path, TWO, {"passed": 2, "failed": 0, "skipped": 0, "names": []})
    assert (outcome.passed, outcome.failed, outcome.unsteady) == (7, 0, ", ".join(NAMES))
    assert [word for word in runs[1] if "::" in word] == ["tests/e2e/" + name for name in NAMES]


def test_end_to_end_tests_that_could_not_run_again_have_failed(tmp_path):
    outcome, _ = end_to_end(tmp_path, TWO, None)
    assert (outcome.passed, outcome.failed, outcome.note, outcome.unsteady) == (5, 2, ", ".join(NAMES), "")


def test_end_to_end_tests_without_a_report_have_failed(tmp_path):
    outcome, runs = end_to_end(tmp_path, 0)
    assert (outcome.passed, outcome.failed, outcome.note, len(runs)) == (0, 1, "pytest: exit status 0", 1)


@pytest.mark.parametrize("body", ["failed", "passed"])
def test_an_end_to_end_test_whose_fixture_fails_after_it_counts_once(monkeypatch, body):
    folder = pathlib.Path(__file__).resolve().parents[1] / "e2e"
    monkeypatch.syspath_prepend(folder)
    spec = importlib.util.spec_from_file_location("end_to_end_conftest", folder / "conftest.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    counts = module.Counts()
    for when, outcome in (("setup", "passed"), ("call", body), ("teardown", "failed")):
        counts.pytest_runtest_logreport(types.SimpleNamespace(when=when, failed=outcome == "failed", skipped=False, nodeid="tests/e2e/" + NAMES[1]))
    assert counts.counts == {"passed": 0, "failed": 1, "skipped": 0, "names": [NAMES[1]]}


def test_a_step_without_time_in_it_runs_once(monkeypatch, tmp_path):
    outcome, left = played(monkeypatch, tmp_path, [BAD, GOOD], False)
    assert (outcome.failed, left) == (1, 1)


def test_a_step_that_passes_runs_once(monkeypatch, tmp_path):
    assert played(monkeypatch, tmp_path, [GOOD, BAD], True) == (GOOD, 1)
