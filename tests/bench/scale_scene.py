"""carpool with any number of origins and of clients, all in one thread: a request is sent while carpool waits, and the next one follows its response."""
import contextlib
import pathlib
import resource
import sys

import conditions

sys.path[:0] = [str(conditions.ROOT / "tests" / folder) for folder in ("cost", "e2e")]
import peers  # noqa: E402
from scene import Measured  # noqa: E402
from harness.ports import free_port  # noqa: E402

MOST = 12000  # clients that carpool allows; for origins and their connections the caller sets limits


class Origins(peers.H1Origin):
    """Any number of origins: one listening socket, and an address for each, all texts of equal length."""

    def __init__(self, context=None):
        super().__init__("0.0.0.0")
        self.context, self.socks, self.asked = context, {}, 0

    @staticmethod
    def host(number):
        return "127.100.%d.%d" % (100 + number // 100, 100 + number % 100)

    def request(self, number):
        self.asked = number
        authority = "%s:%d" % (self.host(number), self.port)
        return peers.REQUEST.replace("GET ", "GET %s://%s" % ("https" if self.context else "http", authority), 1) % authority

    def begin(self, sock):
        assert sock.getsockname()[0] == self.host(self.asked), "the connection is to another origin"
        return self.context.wrap_socket(sock, server_side=True) if self.context else sock

    def connection(self):
        if self.asked not in self.socks:
            self.socks[self.asked] = self.begin(peers.without_delay(self.listener.accept()[0]))
        return self.socks[self.asked]

    def close(self):
        super().close()
        for sock in self.socks.values():
            sock.close()


class Client(peers.H1Client):
    """Asks any of the origins on one connection."""

    def ask_of(self, number):
        self.request = self.origin.request(number).encode()
        self.ask()


class Scene:
    def __init__(self, ends, folder, inside=(), context=None, most_clients=MOST, **settings):
        self.ends = ends
        self.origins = Origins(context)
        ends.callback(self.origins.close)
        self.address = ("127.0.0.1", free_port())
        folder = pathlib.Path(folder) / "scene"
        folder.mkdir()
        base = {"listeners": [{"address": "%s:%d" % self.address, "idle_timeout": "1h", "max_connections": most_clients}],
                "workers": 1, "log": {"level": "warn", "access": False}}
        self.program = Measured(folder, start=False, inside=inside, **{**base, **settings})
        ends.callback(self.program.stop)
        self.program.start()

    def clients(self, count):
        made = [Client(self.address, self.origins) for _ in range(count)]
        for client in made:
            client.ask_of(0)
            self.ends.callback(client.close)
        return made


@contextlib.contextmanager
def scene(folder, **settings):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with contextlib.ExitStack() as ends:
        yield Scene(ends, folder, **settings)
