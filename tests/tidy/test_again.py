"""What the tier does with a step that failed once."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "deploy/tier"))

import main  # noqa: E402
import shell  # noqa: E402
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


def test_a_step_without_time_in_it_runs_once(monkeypatch, tmp_path):
    outcome, left = played(monkeypatch, tmp_path, [BAD, GOOD], False)
    assert (outcome.failed, left) == (1, 1)


def test_a_step_that_passes_runs_once(monkeypatch, tmp_path):
    assert played(monkeypatch, tmp_path, [GOOD, BAD], True) == (GOOD, 1)
