"""The tier's commands: their status, their limit, and the processor time that a step reports."""
import pathlib
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "deploy/tier"))

import shell  # noqa: E402

BUSY = "import time\nwhile time.process_time() < 0.3: pass"


@pytest.fixture
def log(monkeypatch, tmp_path):
    monkeypatch.setattr(shell, "LOGS", tmp_path)
    return shell.Log("step")


def test_a_command_s_time_counts_with_its_children(log):
    assert log.run("sh", "-c", '"$0" -c "$1"; "$0" -c "$1"; exit 3', sys.executable, BUSY) == 3
    assert log.processor_seconds() >= 0.6


def test_a_part_counts_for_the_whole(log):
    shell.Log("part", log).run(sys.executable, "-c", BUSY)
    assert log.processor_seconds() >= 0.3


def test_a_command_that_waits_takes_no_processor(log):
    log.run("sleep", "0.5")
    assert log.processor_seconds() < 0.4


def test_a_command_that_is_ended_by_a_signal_has_a_negative_status(log):
    assert log.run("sh", "-c", "kill -9 $$") == -9


def test_a_command_that_takes_too_long_is_ended(log):
    began = time.monotonic()
    with pytest.raises(shell.TooLate):
        log.run("sleep", "600", limit=0.1)
    assert time.monotonic() - began < 60
