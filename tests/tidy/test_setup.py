"""deploy/setup installs packages with an apt-get of the test's own, which behaves as apt does: it closes the status descriptor for the
scripts of packages, and completes what dpkg is at after Ctrl-C."""
import os
import pathlib
import pty
import signal
import subprocess

import pytest

SETUP = pathlib.Path(__file__).resolve().parents[2] / "deploy/setup"
# It says that one package is half configured until it is asked to configure all.
DPKG = """#!/bin/sh
case "$*" in
  --audit) test -e "$DONE-configured" || echo "$HALF" ;;
  *--configure*) test -x %s && : >"$DONE-configured" ;;
esac
"""
POLICY = "/usr/sbin/policy-rc.d"
APT = """#!/usr/bin/python3
import os, signal, subprocess, sys
if "install" in sys.argv:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    status = int(next(a for a in sys.argv if a.startswith("APT::Status-Fd=")).split("=")[1])
    os.write(status, b"pmstatus:carpool:50.0:half\\n")
    subprocess.run(["sh", "-c", "test -x %s && printf 'a line of a script'"], check=True, preexec_fn=lambda: os.close(status))
    if os.environ.get("UNTIL_INT"):
        signal.sigwait({signal.SIGINT})
        os.write(status, b"pmstatus:carpool:100.0:whole\\n")  # fails if setup has stopped reading
    open(os.environ["DONE"], "w").close()
""" % POLICY

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a /usr/sbin of its own needs root")


@pytest.fixture
def setup(tmp_path):
    """Returns a command that runs deploy/setup with an empty /usr/sbin, and the environment in which each package is missing."""
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode:
        pytest.skip("no mount namespace can be made: in a chroot, its folder is no mount point")
    for name, text in {"apt-get": APT, "dpkg": DPKG % POLICY, "dpkg-query": "#!/bin/sh\n"}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    script = 'mount -t tmpfs none /usr/sbin; "$0"; status=$?; test ! -e %s || exit 99; exit $status' % POLICY
    return (["unshare", "--mount", "bash", "-c", "trap : INT; " + script, str(SETUP)],
            {**os.environ, "PATH": "%s:/usr/bin:/bin" % tmp_path, "DONE": str(tmp_path / "done"), "HALF": ""})


def test_a_package_whose_script_prints_is_installed_and_no_policy_stays(setup, tmp_path):
    command, environment = setup
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "") and (tmp_path / "done").exists()
    assert "setup: installing g++" in done.stdout and "a line of a script" not in done.stdout


def test_packages_that_an_interrupted_run_left_half_configured_are_completed_first(setup, tmp_path):
    command, environment = setup
    done = subprocess.run(command, env={**environment, "HALF": "man-db"}, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "") and (tmp_path / "done").exists()
    assert (tmp_path / "done-configured").exists() and "completing packages" in done.stdout
    again = subprocess.run(command, env={**environment, "HALF": "man-db"}, capture_output=True, text=True, timeout=60)
    assert again.returncode == 0 and "completing packages" not in again.stdout


def test_ctrl_c_ends_it_once_dpkg_is_done_and_no_policy_stays(setup, tmp_path):
    command, environment = setup
    process, terminal = pty.fork()
    if process == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a background job of a shell ignores it
        os.execvpe(command[0], command, {**environment, "UNTIL_INT": "1"})
    seen = b""
    try:
        while b"installing, 50 %" not in seen:
            seen += os.read(terminal, 4096)
        os.write(terminal, b"\x03")
        while True:
            seen += os.read(terminal, 4096)
    except OSError:  # the other side is closed
        pass
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    assert status == 130 and (tmp_path / "done").exists(), seen
    assert b"installing, 100 %" in seen and b"interrupted" in seen and b"rror" not in seen, seen
