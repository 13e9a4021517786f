"""Free ports below the kernel's own range, so that no outgoing connection takes one between its choice and its use."""
import itertools
import os
import socket

_next = itertools.count(os.getpid() * 997 % 12000)  # far from the start of a process with the next number


def free_port():
    while True:
        port = 20000 + next(_next) % 12000
        try:
            for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
                with socket.socket(family) as s:
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    s.bind((host, port))
            return port
        except OSError:
            continue
