"""Waiting for something to become true, with a deadline. The one pause of all tests is here."""
import time


def until(look, seconds=10, what="the condition"):
    """The first true value of look()."""
    end = time.monotonic() + seconds
    while True:
        value = look()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError("%s did not come true within %g s (last: %r)" % (what, seconds, value))
        time.sleep(0.01)
