"""Waits for a condition, with a deadline. The only pause of all tests is here."""
import os
import select
import time

HANGS = 900  # seconds after which a program that a test runs counts as hung; no slow machine needs as many


def until(look, seconds=10, what="the condition"):
    """Returns the first true value of look()."""
    end = time.monotonic() + seconds
    while True:
        value = look()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError("%s did not come true within %g s (last: %r)" % (what, seconds, value))
        time.sleep(0.01)


def ended(process, seconds):
    """Returns the status of a process as soon as it has ended; Popen.wait() with a timeout looks up to 50 ms later."""
    if process.returncode is None:
        descriptor = os.pidfd_open(process.pid)
        try:
            end = select.poll()
            end.register(descriptor, select.POLLIN)
            end.poll(1000 * seconds)
        finally:
            os.close(descriptor)
    return process.wait(0)
