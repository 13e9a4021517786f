"""The clients of intercept_cost.py: threads of other processes, which only keep carpool busy."""
import contextlib
import multiprocessing
import socket
import ssl
import struct
import threading
import time

NOW = struct.pack("ii", 1, 0)  # closing resets, so no port is left in TIME_WAIT


class Clients:
    """Who connects: to `proxy`, for `authority`, trusting `ca`."""

    def __init__(self, proxy, authority, ca):
        self.proxy, self.authority, self.ca = proxy, authority, str(ca)

    def context(self):
        context = ssl.create_default_context(cafile=self.ca)
        context.set_alpn_protocols(["http/1.1"])
        return context

    def connect(self):
        sock = socket.create_connection(self.proxy, 10)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock

    def tunnel(self):
        """Returns a socket on which CONNECT was answered."""
        sock = self.connect()
        sock.sendall(b"CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n" % ((self.authority.encode(),) * 2))
        answer = sock.recv(4096)
        assert answer.startswith(b"HTTP/1.1 200 ") and answer.endswith(b"\r\n\r\n"), answer
        return sock

    def secured(self, context, session=None):
        return context.wrap_socket(self.tunnel(), server_hostname=self.authority.rpartition(":")[0], session=session)

    def get(self, sock, target, size):
        """One kept-alive GET whose response has `size` bytes of body."""
        sock.sendall(b"GET %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (target, self.authority.encode()))
        got = sock.recv(8192)
        end = got.find(b"\r\n\r\n") + 4
        assert got.startswith(b"HTTP/1.1 200 ") and end > 3, got
        while len(got) - end < size:
            more = sock.recv(8192)
            assert more
            got += more

    def session(self, context, target, size):
        """A ticket of a client that has received its response."""
        with self.secured(context) as sock:
            self.get(sock, target, size)
            return sock.session


def leave(sock):
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NOW)
    sock.close()


def _repeat(step, begin, stop, done):
    state = begin()
    while not stop.is_set():
        step(state)
        with done.get_lock():
            done.value += 1


def _work(begin, step, threads, stop, done):
    running = [threading.Thread(target=_repeat, args=(step, begin, stop, done)) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()


def busy(begin, step, seconds, cpu, processes=2, threads=8, warm_up=0.5):
    """Repeats `step(begin())` in all threads. Returns the microseconds of `cpu()` that one takes, and how many were done a second."""
    multiprocessing.set_start_method("fork", force=True)
    stop, done = multiprocessing.Event(), multiprocessing.Value("q", 0)
    workers = [multiprocessing.Process(target=_work, args=(begin, step, threads, stop, done)) for _ in range(processes)]
    for worker in workers:
        worker.start()
    pace = threading.Event()  # never set
    while done.value < 10 * processes * threads:
        assert all(worker.is_alive() for worker in workers), "a client failed"
        pace.wait(0.05)
    pace.wait(warm_up)
    before, first, began = cpu(), done.value, time.monotonic()
    pace.wait(seconds)
    used, count, took = cpu() - before, done.value - first, time.monotonic() - began
    stop.set()
    for worker in workers:
        worker.join()
    assert all(worker.exitcode == 0 for worker in workers), "a client failed"
    return used / count * 1e6, count / took
