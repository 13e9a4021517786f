"""What every foreign suite needs: free ports, programs that end with the block that started them, carpool with a configuration,
and the report of the cases."""
import argparse
import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile

from fetch import ROOT, Absent

sys.path.insert(0, str(ROOT / "tests/e2e"))
from harness import wait  # noqa: E402

CARPOOL = pathlib.Path(os.environ.get("CARPOOL", ROOT / "build/release/carpool"))
QUIET = '\n[log]\nlevel = "warn"\naccess = false\n'


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def listening(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


@contextlib.contextmanager
def program(*argv, port=None, **more):
    """Runs a program while the block runs."""
    process = subprocess.Popen(list(map(str, argv)), stdin=subprocess.DEVNULL, **{"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **more})
    try:
        if port:
            wait.until(lambda: listening(port), 30, "a server on port %d" % port)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextlib.contextmanager
def carpool(port, settings="", admin=0):
    """Runs carpool on a port; `settings` continue the listener's table. Yields the process; one that has ended by itself is an error."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "carpool.toml")
        doors = '[admin]\naddress = "127.0.0.1:%d"\n' % admin if admin else "[admin]\nenabled = false\n"
        file.write_text('%s\n[[listen]]\naddress = "127.0.0.1:%d"\n%s\n%s' % (doors, port, settings, QUIET))
        with program(CARPOOL, "--config", file, port=port, stderr=None) as process:
            yield process
            if process.poll() is not None:
                raise RuntimeError("carpool ended with %d" % process.returncode)


class Report:
    """The cases of a suite; `passed` is None where the suite itself leaves a case out."""

    def __init__(self):
        self.cases = []

    def case(self, name, passed, why=""):
        self.cases.append({"id": str(name), "passed": passed, "why": why})
        print("%-5s %s %s" % ({True: "ok", False: "FAIL", None: "skip"}[passed], name, "" if passed else why), flush=True)


def main(suite, **options):
    """Runs suite(report, peer) and writes its report; `--peer` runs it without carpool, through what the suite compares with."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--peer", default="", choices=["", *options.get("peers", ())])
    given = parser.parse_args()
    report, absent = Report(), ""
    try:
        suite(report, given.peer)
    except Absent as reason:
        absent = str(reason)
        print("absent: " + absent)
    if given.json:
        given.json.write_text(json.dumps({"cases": report.cases, "absent": absent}))
