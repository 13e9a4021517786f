"""Delays what carpool's log and the origins tell a test (--late): a test that looks before it has waited fails each time, not once in a hundred runs."""
import queue
import threading
import time

LOG, ACCEPT = 0.3, 0.02  # seconds
enabled = False


def lines(source):
    """Yields the lines of carpool's output; those behind `carpool ready` LOG seconds after they came."""
    if not enabled:
        yield from source
        return
    came = queue.SimpleQueue()

    def read():
        for line in source:
            came.put((time.monotonic(), line))
        came.put((0, None))
    threading.Thread(target=read, daemon=True).start()
    ready = False
    while True:
        when, line = came.get()
        if line is None:
            return
        if ready:
            threading.Event().wait(max(0, when + LOG - time.monotonic()))
        ready = ready or b"carpool ready" in line
        yield line


def accept():
    """Called by an origin between the accept and the count of a connection."""
    if enabled:
        threading.Event().wait(ACCEPT)
