"""An HTTP/1.1 origin that a test scripts: handler(exchange) handles each request on a thread of its own."""
import dataclasses
import os
import select
import socket
import ssl
import threading
import time

from . import late
from .acceptor import Acceptor
from .ports import tcp_server
from .wire import Gone, Stream


def held(gate):
    """Returns a respond() that holds the requests for /held until the gate releases them."""
    def respond(exchange):
        if exchange.request.target.endswith("/held"):
            gate.enter()
        exchange.reply()
    return respond


class Gate:
    """Holds exchanges until the test releases them, and counts those held."""

    def __init__(self):
        self._change = threading.Condition()
        self._permits = 0
        self._open = False
        self.inside = 0

    def enter(self, seconds=60):
        with self._change:
            self.inside += 1
            self._change.notify_all()
            passed = self._change.wait_for(lambda: self._open or self._permits > 0, seconds)
            self._permits -= not self._open
            self.inside -= 1
            return passed

    def wait_for(self, count, seconds=10):
        with self._change:
            if not self._change.wait_for(lambda: self.inside >= count, seconds):
                raise AssertionError("%d of %d exchanges arrived" % (self.inside, count))

    def let(self, count):
        with self._change:
            self._permits += count
            self._change.notify_all()

    def open(self):
        with self._change:
            self._open = True
            self._change.notify_all()


@dataclasses.dataclass
class Seen:
    """One received request, its connection (counted from 1) and its time."""
    message: object
    connection: int
    at: float


class Exchange:
    def __init__(self, stream, message, connection, nth):
        self.stream, self.request, self.connection, self.nth = stream, message, connection, nth

    def read_body(self):
        self.stream.body_of(self.request, until_close=False)
        if not self.request.complete:
            raise Gone("request body")
        return self.request.body

    def reply(self, status=200, body=b"ok", headers=()):
        lines = ["HTTP/1.1 %d Whatever" % status, "Content-Length: %d" % len(body)] + ["%s: %s" % h for h in headers]
        self.stream.send("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + (b"" if self.request.method == "HEAD" else body))

    def send(self, data):
        self.stream.send(data)


def hello(exchange):
    exchange.read_body()
    exchange.reply()


class Origin:
    """A handler that returns False ends the connection; one that raises Gone or OSError has lost it. `path`: of a Unix
    socket, instead of host and port."""

    def __init__(self, handler=hello, tls=None, backlog=512, host="127.0.0.1", port=0, path=None):
        self.handler, self._tls = handler, tls
        self._lock = threading.Lock()
        self.seen, self.opened, self.peak, self.peak_busy, self._busy = [], 0, 0, 0, 0
        self._socks, self._open = set(), select.poll()
        if path is not None:
            server = socket.socket(socket.AF_UNIX)
            server.bind(path)
            server.listen(backlog)
            self.port, self.authority = None, "unix:" + path
        else:
            server = tcp_server(host, backlog, port)
            self.port = server.getsockname()[1]
            self.authority = "%s:%d" % (host, self.port)
        self.url = "%s://%s" % ("https" if tls else "http", self.authority)
        self._acceptor = Acceptor(server, self._accept)

    def _accept(self, sock):
        if self.port is not None:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        late.accept()
        with self._lock:
            self.opened += 1
            number = self.opened
            self._socks.add(sock)
            self._open.register(sock, select.POLLRDHUP)
            self.peak = max(self.peak, self._count())
        threading.Thread(target=self._serve, args=(sock, number), daemon=True).start()

    def _count(self):
        """Returns the connections that neither side has ended, according to the kernel."""
        return len(self._socks) - len(self._open.poll(0))

    @property
    def open(self):
        with self._lock:
            return self._count()

    def _serve(self, raw, number):
        sock = socket.socket(fileno=os.dup(raw.fileno()))  # the handler may close it; raw stays for the count
        try:
            if self._tls:
                sock = self._tls.wrap_socket(sock, server_side=True)
            stream = Stream(sock)
            stream.sock.settimeout(120)
            nth = 0
            while self._exchange(stream, number, nth := nth + 1):
                pass
        except (Gone, OSError, ssl.SSLError):
            pass
        finally:
            with self._lock:
                self._open.unregister(raw)
                self._socks.discard(raw)
            raw.close()
            sock.close()

    def _exchange(self, stream, number, nth):
        message = stream.head()
        with self._lock:
            self.seen.append(Seen(message, number, time.monotonic()))
            self._busy += 1
            self.peak_busy = max(self.peak_busy, self._busy)
        try:
            return self.handler(Exchange(stream, message, number, nth)) is not False
        finally:
            with self._lock:
                self._busy -= 1

    def close_connections(self):
        """Closes every open connection, as an origin does with idle ones."""
        with self._lock:
            for sock in self._socks:
                try:
                    sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def targets(self):
        with self._lock:
            return [s.message.target for s in self.seen]

    def stop(self):
        self._acceptor.stop()
        self.close_connections()
