"""Commands with a log and a timeout."""
import os
import pathlib
import signal
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOGS = ROOT / "build" / "test-logs"
SHARED = ROOT.parent / "shared"
PROGRAM = ROOT / "build" / "release" / "carpool"
CORES = len(os.sched_getaffinity(0))


# Clones in different places share ccache's cache.
os.environ.setdefault("CCACHE_BASEDIR", str(ROOT))
os.environ.setdefault("CCACHE_NOHASHDIR", "1")
# Without this ccache caches no file that is compiled with precompiled headers.
os.environ.setdefault("CCACHE_SLOPPINESS", "pch_defines,time_macros")


class TooLate(Exception):
    pass


class Log:
    def __init__(self, name):
        self.path = LOGS / (name + ".log")
        self.path.write_text("")

    def run(self, *argv, limit=600, env=None, cwd=ROOT):
        """Returns the command's exit status; its output goes to the log. After the timeout, if there is one, the command
        and its children are ended."""
        own = {"SUITES_PKI": str(self.path.with_suffix(".pki"))}  # the suites' certificates: steps run at the same time
        with self.path.open("a") as out:
            out.write("$ %s\n" % " ".join(map(str, argv)))
            out.flush()
            process = subprocess.Popen([str(a) for a in argv], cwd=cwd, stdin=subprocess.DEVNULL, stdout=out,
                                       stderr=subprocess.STDOUT, env={**os.environ, **own, **(env or {})}, start_new_session=True)
            try:
                return process.wait(limit)
            except subprocess.TimeoutExpired:
                end(process)
                raise TooLate("%s took longer than %d s" % (pathlib.Path(str(argv[0])).name, limit)) from None
            except BaseException:
                end(process)
                raise

    def say(self, text):
        with self.path.open("a") as out:
            out.write(text + "\n")

    def tail(self, pattern, count=1):
        """Returns the last lines that contain the pattern."""
        return [line for line in self.path.read_text(errors="replace").splitlines() if pattern in line][-count:]


def end(process):
    for number, grace in ((signal.SIGTERM, 10), (signal.SIGKILL, 5)):
        try:
            os.killpg(process.pid, number)
            process.wait(grace)
            return
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            pass
