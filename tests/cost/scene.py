"""The program with one worker, its peers, and the scenarios: named as the load generator's."""
import contextlib
import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

import harness.carpool
from harness.carpool import Carpool
from harness.pki import Pki
from harness.ports import free_port
from harness.wire import Gone

import peers

harness.carpool.READY = 120  # seconds: under valgrind
WARM = 300  # requests before the first that counts: pools, caches and buffers have their size
REST = 60  # seconds that a turn may take at most

# name: the protocols of the clients and the origins
SCENARIOS = {
    "S1": "HTTP/1.1 to HTTP/1.1, kept alive",
    "S2": "HTTP/1.1 to HTTP/1.1 over TLS",
    "S3": "HTTP/1.1 to HTTP/2 over TLS",
    "S4": "HTTP/2 to HTTP/1.1",
    "S6": "HTTP/1.1 to HTTP/1.1, a client connection for each request",
    "S7": "HTTP/1.1 to HTTP/1.1, each request waits for the only connection",
}


class Measured(Carpool):
    """carpool within a command that measures it."""

    def _is_ready(self):
        """Asks its endpoint, because the log has no such line at this level."""
        if self.process.poll() is not None:
            return super()._is_ready()
        try:
            return self.admin("GET", "/readyz").status == 200
        except (OSError, Gone):
            return False

    def until_all(self, states, what):
        """Waits until each of its threads is in one of these states of /proc."""
        end = time.monotonic() + REST
        tasks = pathlib.Path("/proc/%d/task" % self.process.pid)
        while not all(task.read_text().rsplit(")", 1)[1].split()[0] in states for task in tasks.glob("*/stat")):
            assert time.monotonic() < end, "carpool does not " + what

    def rest(self):
        self.until_all("S", "come to rest")

    @contextlib.contextmanager
    def stopped(self):
        """carpool sees the events of this time at once. The stop itself ends one wait of each thread without an event."""
        self.signal(signal.SIGSTOP)
        try:
            self.until_all("Tt", "stop")
            yield
        finally:
            self.signal(signal.SIGCONT)


class Program(Measured):
    """carpool with one worker and a listener for each origin."""

    def __init__(self, folder, inside, pki, plain, secure, narrow, secure_h1):
        self.listeners = [("127.0.0.1", free_port()) for _ in range(4)]
        origins = ["http://127.0.0.1:%d" % plain, "https://127.0.0.1:%d" % secure, "http://127.0.0.1:%d" % narrow,
                   "https://127.0.0.1:%d" % secure_h1]
        listeners = [{"address": "%s:%d" % door, "origin": origin} for door, origin in zip(self.listeners, origins)]
        super().__init__(folder, start=False, inside=inside, workers=1, listeners=listeners, log={"level": "warn", "access": False},
                         origin=[{"uri": origins[2], "pool": {"size": 1}}],
                         upstream={"tls": {"ca_file": pki.ca, "server_name": "origin.test"}})


class Scene:
    def __init__(self, folder, inside):
        folder = pathlib.Path(folder) / "scene"  # carpool looks at its own files when one beside them changes
        folder.mkdir()
        pki = Pki(folder)
        self.plain, self.secure, self.narrow = peers.H1Origin(), peers.H2Origin(pki.server, pki.server_key), peers.H1Origin()
        self.secure_h1 = peers.H1TlsOrigin(pki.server, pki.server_key)
        self.program = Program(folder, inside, pki, self.plain.port, self.secure.port, self.narrow.port, self.secure_h1.port)

    def __enter__(self):
        self.program.start()
        return self

    def __exit__(self, *_):
        try:
            self.program.stop()
        finally:
            self.plain.close()
            self.secure.close()
            self.narrow.close()
            self.secure_h1.close()

    def client(self, name):
        plain, secure, narrow, secure_h1 = self.program.listeners
        if name == "S2":
            return peers.H1Client(secure_h1, self.secure_h1)
        if name == "S3":
            return peers.H1Client(secure, self.secure)
        if name == "S4":
            return peers.H2Client(plain, self.plain)
        if name == "S7":
            return peers.WaitingClients(narrow, self.narrow, self.program)
        return peers.BriefClient(plain, self.plain, self.program) if name == "S6" else peers.H1Client(plain, self.plain)

    def warmed(self, name):
        """Returns play(count): sends so many requests, one after the other, and leaves carpool idle."""
        client = self.client(name)

        def play(count):
            for _ in range(count):
                client.ask()
            self.program.rest()
        play(WARM)
        return play
