"""The control block of the preloaded library (shim/control.h): which function fails, when, and how often it was called."""
import errno
import mmap
import pathlib
import struct

FUNCTIONS = ["none", "accept", "connect", "socket", "recv_client", "send_client", "recv_origin", "send_origin", "recv_name", "send_name",
             "recv_local", "send_local", "epoll_add", "epoll_wait", "epoll_create", "eventfd", "inotify", "thread", "open", "read_file", "write_file", "sync",
             "memory", "random", "bind", "listen"]
WORDS = ["function", "error", "nth", "times", "seen", "failed", "realtime", "monotonic"]
ALWAYS = 1 << 40  # calls: until it is disarmed
SHORT = 0         # in place of an errno: one byte is transferred


def error_name(error):
    return errno.errorcode[error] if error else "one byte"


class Control:
    def __init__(self, folder):
        self.path = pathlib.Path(folder) / "control"
        self.path.write_bytes(bytes(4096))
        with self.path.open("r+b") as file:
            self._words = mmap.mmap(file.fileno(), 4096)

    def __getitem__(self, name):
        return struct.unpack_from("<q", self._words, 8 * WORDS.index(name))[0]

    def __setitem__(self, name, value):
        struct.pack_into("<q", self._words, 8 * WORDS.index(name), value)

    def calls(self):
        """Returns how often each function was called so far."""
        return dict(zip(FUNCTIONS, struct.unpack_from("<%dq" % len(FUNCTIONS), self._words, 8 * len(WORDS))))

    def arm(self, function, error, nth=1, times=1):
        self.disarm()
        self["seen"] = self["failed"] = 0
        self["error"], self["nth"], self["times"] = error, nth, times
        self["function"] = FUNCTIONS.index(function)

    def disarm(self):
        self["function"] = 0

    def environment(self, shim):
        return {"SYSTEM_FAULTS": str(self.path), "LD_PRELOAD": str(shim)}
