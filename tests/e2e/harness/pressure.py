"""Memory that a test determines: uploads to an origin with one connection, whose bodies carpool holds while they wait for it.

carpool's own memory changes by some hundred KiB at any time: code is mapped when it first runs, a thread gets its arena, unused memory
goes back to the kernel. That is a few percent of an idle program, as much as lies between two stages, but little of what is held here."""
import re

from .wait import until
from .wire import Gone

COUNT, SIZE = 8, 16 << 20
NO_LIMIT, FIRST = "4GiB", 3 << 30


def swallow(stream, size):
    """Reads as many bytes of a body without keeping them."""
    left = size - len(stream.buffer)
    stream.buffer = b""
    while left:
        data = stream.sock.recv(min(left, 1 << 20))
        if not data:
            raise Gone("%d bytes of a body" % left)
        left -= len(data)


class Pressure:
    def __init__(self, origin, gate):
        def handler(exchange):
            gate.enter(120)
            size = int(exchange.request.get("content-length"))
            swallow(exchange.stream, size)
            exchange.reply(body=b"%d" % size)
        self.origin, self.gate, self.carpool, self.uploads = origin(handler), gate, None, []

    def settings(self, *origins):
        """carpool's, with further origins."""
        slow = {"uri": self.origin.url, "pool": {"size": 1, "wait_timeout": "120s"}, "request": {"replay_buffer": "%dMiB" % (SIZE >> 20)}}
        return {"origin": [slow, *origins], "overload": {"memory_limit": NO_LIMIT}}

    def begin(self, carpool):
        """Returns once all bodies are held and measured."""
        self.carpool, self.uploads = carpool, [carpool.client() for _ in range(1 + COUNT)]
        for nth, client in enumerate(self.uploads):
            client.ask("PUT", self.origin.url + "/upload", body=bytes(SIZE if nth else 1))
            if nth == 0:
                self.gate.wait_for(1)
        until(lambda: carpool.metric("carpool_pool_waiting", origin=self.origin.url) == COUNT, 60, "the bodies of all uploads")
        self.limit("%dB" % FIRST)
        until(lambda: self.memory()["limit"] == FIRST, what="a measurement of them")
        assert self.memory()["used"] > COUNT * SIZE

    def memory(self):
        return self.carpool.get_json("/overload")["memory"]

    def press(self, percent):
        """Sets the limit of which this share is in use."""
        self.limit("%dB" % (self.memory()["used"] * 100 // percent))

    def limit(self, text):
        config = self.carpool.config
        config.write_text(re.sub('memory_limit = ".*"', 'memory_limit = "%s"' % text, config.read_text()))
        response = self.carpool.admin("POST", "/reload")
        assert response.status == 200, response

    def end(self):
        """None of the uploads has been cut."""
        self.gate.open()
        for client in self.uploads[1:]:
            assert client.response().body == b"%d" % SIZE

    def close(self):
        for client in self.uploads:
            client.close()
