"""The clients of intercept_cost.py and client_handshakes_p99.py: threads of other processes, which only keep carpool busy."""
import contextlib
import multiprocessing
import socket
import ssl
import struct
import threading
import time

NOW = struct.pack("ii", 1, 0)  # closing resets, so no port is left in TIME_WAIT


class Clients:
    """The parameters of a connection: from `source` to `proxy`, for `authority`, trusting `ca`."""

    def __init__(self, proxy, authority, ca, source="127.0.0.1"):
        self.proxy, self.authority, self.ca, self.source = proxy, authority, str(ca), source

    def context(self):
        context = ssl.create_default_context(cafile=self.ca)
        context.set_alpn_protocols(["http/1.1"])
        return context

    def connect(self):
        sock = socket.create_connection(self.proxy, 10, (self.source, 0))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock

    def tunnel(self):
        """Returns a socket on which CONNECT got 200."""
        sock = self.connect()
        sock.sendall(b"CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n" % ((self.authority.encode(),) * 2))
        response = sock.recv(4096)
        assert response.startswith(b"HTTP/1.1 200 ") and response.endswith(b"\r\n\r\n"), response
        return sock

    def secured(self, context, session=None):
        return context.wrap_socket(self.tunnel(), server_hostname=self.authority.rpartition(":")[0], session=session)

    def hello(self, context):
        """The first message of a client."""
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        with contextlib.suppress(ssl.SSLWantReadError):
            context.wrap_bio(incoming, outgoing, server_hostname=self.authority.rpartition(":")[0]).do_handshake()
        return outgoing.read()

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


class Form:
    """The work that threads of other processes repeat while its gate is open: `step(begin())`, all together `rate` times a second, each
    thread at a time of its own; 0: as often as they can."""

    def __init__(self, begin, step, rate, stop, processes, threads):
        self.begin, self.step, self.stop, self.threads = begin, step, stop, threads
        self.every = processes * threads / rate if rate else 0
        self.gate, self.done = multiprocessing.Event(), multiprocessing.Value("q", 0)
        self.workers = [multiprocessing.Process(target=self.work, args=(number * threads,)) for number in range(processes)]
        self.apart = 1 / rate if rate else 0
        for worker in self.workers:
            worker.start()

    def repeat(self, number):
        state, due, pace = None, 0, threading.Event()  # the last is never set
        while True:
            self.gate.wait()
            if self.stop.is_set():
                return
            state = state or self.begin()
            if self.every:
                due, now = due + self.every, time.monotonic()
                if due < now - self.every:  # the gate was closed
                    due = now + (number * self.apart - now) % self.every
                pace.wait(max(0, due - now))
            self.step(state)
            with self.done.get_lock():
                self.done.value += 1

    def work(self, first):
        running = [threading.Thread(target=self.repeat, args=(first + number,)) for number in range(self.threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()

    def slice(self, seconds, cpu, pace):
        """Returns the microseconds of `cpu()` that one step takes."""
        self.gate.set()
        start = self.done.value
        while self.done.value < start + 2 * self.threads:
            assert all(worker.is_alive() for worker in self.workers), "a client failed"
            pace.wait(0.01)
        before, first = cpu(), self.done.value
        pace.wait(seconds)
        used, count = cpu() - before, self.done.value - first
        self.gate.clear()
        pace.wait(0.05)
        return used / max(count, 1) * 1e6


def alternate(forms, seconds, rounds, cpu, processes=2, threads=8):
    """Runs the forms in turns, a short slice each, so that a disturbance affects all of them. Yields name -> microseconds of each
    round."""
    multiprocessing.set_start_method("fork", force=True)
    stop, pace = multiprocessing.Event(), threading.Event()  # the second is never set
    running = {name: Form(*form, stop, processes, threads) for name, form in forms.items()}
    try:
        for turn in range(rounds + 1):
            took = {name: form.slice(seconds, cpu, pace) for name, form in running.items()}
            if turn > 0:  # the first one warms up
                yield took
    finally:
        stop.set()
        for form in running.values():
            form.gate.set()
            for worker in form.workers:
                worker.join()
