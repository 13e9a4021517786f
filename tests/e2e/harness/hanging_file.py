"""A file that a process opens and whose reading hangs: a pipe without a name, by a path that other processes can open."""
import array
import fcntl
import os
import termios

from harness.wait import until


class HangingFile:
    def __init__(self):
        self._read, self._write = os.pipe()
        self.path = "/proc/%d/fd/%d" % (os.getpid(), self._read)

    def wait_for_reader(self):
        """Returns once a process has read the first bytes, so that it hangs at the next."""
        os.write(self._write, b"-")
        until(lambda: self._unread() == 0, what="someone who reads the file")

    def end(self, rest=b""):
        """Ends the file, after `rest`."""
        os.write(self._write, rest)
        os.close(self._write)
        os.close(self._read)

    def _unread(self):
        size = array.array("i", [0])
        fcntl.ioctl(self._read, termios.FIONREAD, size)
        return size[0]
