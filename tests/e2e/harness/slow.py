"""Clients that send or read a little now and then."""
import contextlib
import socket
import threading

from .wire import LIMIT, Client, Stream


class Narrow(Client):
    """A client with a small kernel buffer."""

    def __init__(self, address):
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # before it connects, or the window is wide
        sock.settimeout(LIMIT)
        sock.connect(address)
        Stream.__init__(self, sock)


@contextlib.contextmanager
def dripping(move):
    """Calls move() several times in a second."""
    done = threading.Event()

    def drip():
        while not done.wait(0.1):
            move()
    thread = threading.Thread(target=drip)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
