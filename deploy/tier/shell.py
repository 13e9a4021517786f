"""Commands with a log and a timeout."""
import os
import pathlib
import select
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
    def __init__(self, name, part_of=None):
        self.path = LOGS / (name + ".log")
        self.path.write_text("")
        # Seconds of the processor of each command that ended by itself, with its children; a part's count for the whole.
        self.used = part_of.used if part_of else []

    def processor_seconds(self):
        return sum(self.used)

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
                self.used.append(ended(process, limit))
                return process.returncode
            except TimeoutError:
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


def ended(process, limit):
    """Waits for the end of a process, at most `limit` seconds; returns its processor time."""
    descriptor = os.pidfd_open(process.pid)
    try:
        if not select.select([descriptor], [], [], limit)[0]:
            raise TimeoutError
    finally:
        os.close(descriptor)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime


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
