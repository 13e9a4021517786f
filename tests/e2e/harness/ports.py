"""Free ports below the kernel's own range, so that no outgoing connection takes one between its choice and its use. A process takes them from
blocks that it reserves until it ends, so that no other process of these tests takes one either: not before carpool listens there, and not
while a test expects that nobody does."""
import os
import socket
import threading

FIRST, BLOCKS, SIZE = 20000, 120, 100
MOST = 20  # blocks of a process; then its own ports come again
_reserved = {}  # block -> a socket whose name is in the network namespace, as its ports are


def _reserve(block):
    one = socket.socket(socket.AF_UNIX)
    try:
        one.bind("\0carpool-tests-ports-%d" % block)
    except OSError:  # it is another process's, or reserved already
        one.close()
        return False
    _reserved[block] = one
    return True


def _ports():
    while True:
        for block in ((os.getpid() + n) % BLOCKS for n in range(BLOCKS)):
            if len(_reserved) < MOST and _reserve(block):
                yield from range(FIRST + SIZE * block, FIRST + SIZE * (block + 1))
        assert _reserved, "other processes have all ports"
        for block in list(_reserved):
            yield from range(FIRST + SIZE * block, FIRST + SIZE * (block + 1))


_next, _lock = _ports(), threading.Lock()


def free_port():
    while True:
        with _lock:
            port = next(_next)
        try:
            for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
                with socket.socket(family) as s:
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    s.bind((host, port))
            return port
        except OSError:
            continue


def tcp_server(host="127.0.0.1", backlog=None, port=0):
    """Listens on a port, a free one unless it is given. The kernel's choice may be a port that the server of another test has just left and
    that the carpool of that test still dials."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port or free_port()), family=family, backlog=backlog)
