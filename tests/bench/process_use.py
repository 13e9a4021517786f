"""What a process uses: CPU time, resident memory."""
import pathlib


class Process:
    def __init__(self, pid):
        self.pid = pid

    def cpu(self):
        """Seconds of all its threads, to the nanosecond."""
        return sum(int((task / "schedstat").read_text().split()[0]) for task in pathlib.Path("/proc/%d/task" % self.pid).iterdir()) / 1e9

    def kib(self):
        status = pathlib.Path("/proc/%d/status" % self.pid).read_text()
        return int(status.split("VmRSS:")[1].split()[0])
