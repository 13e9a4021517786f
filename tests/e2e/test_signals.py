"""Signals before the program can handle them and until its very end: their default action, which would end it, never applies."""
import os
import pathlib
import signal
import subprocess

import pytest
from harness.carpool import PROGRAM
from harness.wait import until

NUMBERS = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1]


@pytest.mark.parametrize("number", NUMBERS)
def test_a_signal_of_the_start_is_obeyed_after_it(carpool, tmp_path, number):
    old = carpool(handover={"address": "unix:%s" % (tmp_path / "old.sock")})
    old.signal(signal.SIGSTOP)
    fresh = subprocess.Popen([PROGRAM, "--config", old.config], stderr=subprocess.PIPE, text=True)
    try:
        assert "starting" in fresh.stderr.readline()
        fresh.send_signal(number)
        old.signal(signal.SIGCONT)
        words = {"signal received", "carpool ready" if number in (signal.SIGHUP, signal.SIGUSR1) else "stopped"}
        while words:
            row = fresh.stderr.readline()
            assert row, "it has ended"
            words = {word for word in words if word not in row}
        fresh.send_signal(signal.SIGTERM)
        assert fresh.wait(20) == 0
    finally:
        fresh.kill()
        fresh.wait()
        fresh.stderr.close()


@pytest.mark.parametrize("number", NUMBERS)
def test_signals_during_the_whole_end_do_not_change_the_exit_status(carpool, number):
    c = carpool()
    c.signal(signal.SIGTERM)
    while c.process.poll() is None:
        c.signal(number)
    assert c.wait() == 0


def test_signals_during_the_whole_end_do_not_change_the_exit_status_of_the_webhook(webhook):
    while webhook.process.poll() is None:
        webhook.process.send_signal(signal.SIGTERM)
    assert webhook.process.returncode == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a PID namespace")
def test_orphans_in_its_container_leave_no_zombies(carpool):
    c = carpool(inside=["unshare", "--pid", "--fork", "--kill-child=TERM"])
    children = pathlib.Path("/proc/%d/task/%d/children" % (c.process.pid, c.process.pid))
    first = int(children.read_text())
    subprocess.run(["nsenter", "--target", str(first), "--pid", "sh", "-c", "sleep 60 & sleep 60 &"], check=True)
    orphans = pathlib.Path("/proc/%d/task/%d/children" % (first, first))
    found = orphans.read_text().split()
    assert len(found) == 2
    for orphan in found:
        os.kill(int(orphan), signal.SIGKILL)
    until(lambda: orphans.read_text() == "", what="the end of both")
    os.kill(first, signal.SIGTERM)
    assert c.wait() == 0
