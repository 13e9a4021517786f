"""Counts the system calls of a request by strace."""
import collections
import pathlib
import signal
import subprocess

from scene import SCENARIOS, Scene

PARTS, REQUESTS = 6, 40
OF_OTHERS = {"openat", "read", "newfstatat", "prlimit64", "restart_syscall"}


class Attached:
    """strace, attached to a program's threads."""

    def __init__(self, pid, path):
        self.path = path
        self.process = subprocess.Popen(["strace", "-f", "-c", "-o", path, "-p", str(pid)], stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()
        assert "attached" in line, "strace: " + line

    def detach(self):
        """Returns {system call: count}."""
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=60)
        rows = [line.split() for line in pathlib.Path(self.path).read_text().splitlines()]
        return {row[-1]: int(row[3]) for row in rows if len(row) >= 5 and row[3].isdigit() and row[-1] != "total"}


def of_requests(counts):
    """Omits what a request does not do: no request opens a file, so an open file and its calls are periodic work; and a stop of the whole
    process restarts the waits of other threads."""
    counts = collections.Counter(counts)
    counts["close"] -= counts["openat"]
    counts["futex"] -= counts["restart_syscall"]
    return {call: count for call, count in sorted(counts.items()) if count > 0 and call not in OF_OTHERS}


def measure(folder, names=tuple(SCENARIOS)):
    """Returns {scenario: {system call: count for each request}}, the least of several parts."""
    folder, found = pathlib.Path(folder), {}
    with Scene(folder, []) as scene:
        for name in names:
            play, parts = scene.warmed(name), []
            for _ in range(PARTS):
                attached = Attached(scene.program.process.pid, folder / "strace")
                play(REQUESTS)
                parts.append(of_requests(attached.detach()))
            least = min(parts, key=lambda counts: sum(counts.values()))
            found[name] = {call: count / REQUESTS for call, count in least.items()}
    return found
