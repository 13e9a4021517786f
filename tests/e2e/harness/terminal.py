"""A program under a pseudo-terminal: its output, its screen, keys, sizes, and the terminal's state afterwards."""
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import threading

from .wait import until

SEQUENCE = re.compile(rb"\x1b\[\??[0-9;]*[A-Za-z]")


class Terminal:
    def __init__(self, command, rows=24, columns=100, **more):
        self.master, self.slave = pty.openpty()
        self.size(rows, columns)
        self.before = termios.tcgetattr(self.slave)
        self.written, self._lock = b"", threading.Lock()

        def take_it():
            os.setsid()
            fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
        environment = {**os.environ, "TERM": "xterm", **more.pop("env", {})}
        self.process = subprocess.Popen([str(c) for c in command], stdin=self.slave, stdout=self.slave, stderr=self.slave,
                                        preexec_fn=take_it, env=environment, **more)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        while True:
            try:
                piece = os.read(self.master, 65536)
            except OSError:
                return
            with self._lock:
                self.written += piece

    def size(self, rows, columns):
        """Resizes the window; the kernel signals the program."""
        self.rows, self.columns = rows, columns
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, keys):
        os.write(self.master, keys)

    def frames(self):
        """Returns the frames, from one "home" to the next, without the sequences; the last may be incomplete."""
        with self._lock:
            pieces = self.written.split(b"\x1b[H")[1:]
        return [SEQUENCE.sub(b"", p).decode(errors="replace").replace("\r", "") for p in pieces]

    def _until(self, look, what):
        try:
            return until(look, 20, what)
        except AssertionError as error:
            raise AssertionError("%s; written: %r" % (error, self.written[-2000:])) from None

    def until_frame(self, test, what):
        """Returns the last complete frame, as soon as it passes."""
        def look():
            whole = self.frames()[:-1] or [""]
            return whole[-1] if test(whole[-1]) else None
        return self._until(look, what)

    def until_written(self, text, what):
        self._until(lambda: text in self.written, what)

    def end(self):
        """Returns the exit status, and whether the terminal's settings were restored."""
        status = self.process.wait(20)
        return status, termios.tcgetattr(self.slave) == self.before

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.slave)
        self._reader.join(20)  # without a slave its read fails; a closed master's number could be another test's file by then
        os.close(self.master)
