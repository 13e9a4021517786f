"""Origins of each kind and the program under test with the preloaded library."""
import contextlib
import functools
import os
import pathlib
import socket
import ssl

from harness.carpool import Carpool
from harness.h2_origin import H2Origin
from harness.origin import Gate, Origin
from harness.pki import Pki
from harness.wire import Gone

from control import Control

SHIM = pathlib.Path(__file__).resolve().parents[2] / "build/release/tests/libsystem_faults.so"
SETTINGS = {"shutdown_grace": "3s", "log": {"level": "info"},
            "pool": {"size": 8, "connect_timeout": "1s", "wait_timeout": "1s"},
            "request": {"timeout": "4s"}, "handover": {"warm_rate": 1000}}


class Program(Carpool):
    """carpool with the library, which its control block controls."""

    def __init__(self, folder, control, start=True, **settings):
        super().__init__(folder, start=False, inside=["env", *("%s=%s" % pair for pair in control.environment(SHIM).items())], **settings)
        self.control, self.log_to = control, None
        if start:
            self.start()

    def write_log_to(self, path):
        """Asks for its readiness then, because the line is not seen."""
        self.log_to = path
        self._inside += ["sh", "-c", 'exec "$@" 2>>"$0"', path]

    def _is_ready(self):
        if self.log_to is None or not self.alive():
            return super()._is_ready()
        with contextlib.suppress(OSError, Gone):
            return self.admin("GET", "/readyz").status == 200
        return False

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def descriptors(self):
        """Returns the number of open descriptors. Each thread keeps the netlink socket by which it asks for the owners of clients."""
        process = pathlib.Path("/proc/%d" % self.process.pid)
        queries = {"socket:[%s]" % line.split()[9] for line in (process / "net/netlink").read_text().splitlines()[1:]}
        return sum(link not in queries for link in self.links(process / "fd"))

    @staticmethod
    def links(folder):
        for entry in os.listdir(folder):
            try:
                yield os.readlink(folder / entry)
            except FileNotFoundError:
                pass  # closed meanwhile


def echo(exchange, gate):
    body = exchange.read_body()
    if exchange.request.target.startswith("/held"):
        gate.enter()
    exchange.reply(body=body or exchange.request.target.encode(), headers=[("X-Tag", exchange.request.target)])


def echo_h2(stream):
    stream.reply(body=stream.body or stream.pseudo[":path"].encode(), headers=[("x-tag", stream.pseudo[":path"])])


def server_context(pki, protocols):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pki.server, pki.server_key)
    context.set_alpn_protocols(protocols)
    return context


class Scene:
    """`folder` is this scene's own."""

    def __init__(self, folder, **settings):
        self.folder = pathlib.Path(folder)
        self.pki = Pki(self.folder)
        self.gate = Gate()
        handler = functools.partial(echo, gate=self.gate)
        self.plain = Origin(handler)
        self.secure = Origin(handler, tls=server_context(self.pki, ["http/1.1"]))
        self.h2 = H2Origin(echo_h2, tls=server_context(self.pki, ["h2"]))
        self.control = Control(self.folder)
        self.settings = {**SETTINGS, "upstream": {"tls": {"ca_file": self.pki.ca}}, **settings}
        self.program = None
        self.starts = 0

    def prepare(self, control=None, **settings):
        """Returns a program that has not started, in a folder of its own."""
        self.starts += 1
        folder = self.folder / ("run%d" % self.starts)
        folder.mkdir()
        self.program = Program(folder, control or self.control, start=False, **{**self.settings, **settings})
        return self.program

    def start(self):
        return self.prepare().start()

    def end_connections(self):
        """Every origin closes what it has: the next requests dial."""
        for origin in (self.plain, self.secure):
            origin.close_connections()
        for connection in list(self.h2.connections.values()):
            with contextlib.suppress(OSError):  # it has ended
                connection.sock.shutdown(socket.SHUT_RDWR)

    def forget(self):
        """Bodies of thousands of cases would exhaust the memory."""
        for origin in (self.plain, self.secure, self.h2):
            origin.seen.clear()
        for number, connection in list(self.h2.connections.items()):
            if connection.gone:
                del self.h2.connections[number]

    def stop(self):
        for origin in (self.plain, self.secure, self.h2):
            origin.stop()
