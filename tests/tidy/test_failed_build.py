"""What the tier says of the steps after a build that failed."""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "deploy/tier"))

import main  # noqa: E402
import shell  # noqa: E402
import steps  # noqa: E402
from outcome import Outcome, Step  # noqa: E402

BUILDS = {step.makes() for step in steps.ALL if step.makes()}


def test_a_step_does_not_test_what_an_earlier_build_left(monkeypatch, tmp_path):
    monkeypatch.setattr(shell, "LOGS", tmp_path)
    step = Step("unit", "tests", lambda log, full: Outcome(passed=1), "build/release/carpool")
    outcome = main.run_group([step], False, {"build/release"})[0]
    assert (outcome.passed, outcome.skipped, outcome.note) == (0, 1, "its build failed")


def test_each_build_makes_the_folder_of_its_preset():
    assert {"build/release", "build/asan", "build/tsan", "build/clang"} == BUILDS


def test_every_step_between_a_build_and_the_next_needs_a_build():
    free = {step.name for step in steps.ALL if not step.needs and not step.makes()}
    assert free == {"tidy", "format", "clang", "clang-tidy", "images", "arm64", "unit-arm64"}


def test_help_and_the_list_of_steps_need_no_python():
    for flag in ("--help", "--list"):
        done = subprocess.run([ROOT / "deploy/test", flag], env={"PATH": "/usr/bin:/bin"}, text=True, capture_output=True, timeout=60)
        assert done.returncode == 0 and not done.stderr
    listed = [line.split()[0] for line in done.stdout.splitlines()]
    assert listed == [step.name for step in steps.ALL]
