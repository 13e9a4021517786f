"""A name server that sends false responses: every request ends in time with a reason, and the next name is resolved."""
import random
import struct
import threading

import mix
import oracles
from harness import names

LATE = 2  # seconds: after the deadline of a dial
TRUE = "127.0.0.1"


def question_end(query):
    at = 12
    while query[at]:
        at += 1 + query[at]
    return at + 5


def response(query, records, flags=0x8180, question=None, count=None, number=None):
    end = question_end(query)
    asked = query[12:end] if question is None else question
    head = struct.pack(">H", number) if number is not None else query[:2]
    return head + struct.pack(">HHHHH", flags, 1, len(records) if count is None else count, 0, 0) + asked + b"".join(records)


def record(kind, data, name=b"\xc0\x0c", size=None, group=1):
    return name + struct.pack(">HHIH", kind, group, 1, len(data) if size is None else size) + data


def true(query):
    kind = struct.unpack(">H", query[question_end(query) - 4:question_end(query) - 2])[0]
    return response(query, [record(1, bytes([127, 0, 0, 1]))] if kind == 1 else [])


def other_number(query):
    return response(query, [record(1, bytes([10, 9, 8, 7]))], number=struct.unpack(">H", query[:2])[0] ^ 0x5555)


def other_question(query):
    return response(query, [record(1, bytes([10, 9, 8, 7]))], question=b"\x05other\x04test\x00\x00\x01\x00\x01")


def noise(query):
    return random.Random(query).randbytes(200)


def many(query):
    return response(query, [record(1, bytes([127, 3, n // 250, 1 + n % 250])) for n in range(4000)])


LIES = {  # datagrams per query
    "nothing": lambda q: [],
    "empty": lambda q: [response(q, [])],
    "noise": lambda q: [noise(q)],
    "noise-after-number": lambda q: [q[:2] + noise(q)],
    "no-bytes": lambda q: [b""],
    "head-alone": lambda q: [q[:12]],
    "other-number": lambda q: [other_number(q)],
    "other-question": lambda q: [other_question(q)],
    "cut": lambda q: [response(q, [record(1, bytes(4))])[:-3]],
    "truncated": lambda q: [response(q, [], flags=0x8380)],
    "more-promised": lambda q: [response(q, [record(1, bytes([127, 0, 0, 9]))], count=500)],
    "odd-size": lambda q: [response(q, [record(1, bytes(3))])],
    "long-size": lambda q: [response(q, [record(1, bytes(4), size=4000)])],
    "other-class": lambda q: [response(q, [record(1, bytes([127, 0, 0, 1]), group=3)])],
    "pointer-loop": lambda q: [response(q, [record(5, b"\xc0" + bytes([question_end(q) + 12]))])],
    "name-loop": lambda q: [response(q, [record(5, b"\xc0\x0c")])],
    "self-pointer": lambda q: [response(q, [record(1, bytes(4), name=b"\xc0" + bytes([question_end(q)]))])],
    "refused": lambda q: [response(q, [], flags=0x8185)],
    "server-failure": lambda q: [response(q, [], flags=0x8182)],
    "format-error": lambda q: [response(q, [], flags=0x8181)],
    "a-query-back": lambda q: [q],
    "many": lambda q: [many(q)],
    "unspecified": lambda q: [response(q, [record(1, bytes(4))])],
    "multicast": lambda q: [response(q, [record(1, bytes([224, 0, 0, 1]))])],
}
# A false response and the true one after it: what does not belong to the query must not end it.
BEFORE_TRUTH = ("other-number", "other-question", "noise", "no-bytes")


class Liar(names.Resolver):
    """The first label of a name selects the false response."""

    def __init__(self, folder, sock):
        self.late = []
        super().__init__(folder, sock)

    def responses(self, query, peer):
        label = query[13:13 + query[12]].decode()
        if label == "late":
            timer = threading.Timer(LATE, lambda: self._sock.sendto(true(query), peer))
            self.late.append(timer)
            timer.start()
            return []
        if label.startswith("then-true-"):
            return [*LIES[label.removeprefix("then-true-")](query), true(query)]
        return LIES[label](query) if label in LIES else [true(query)]

    def stop(self):
        for timer in self.late:
            timer.cancel()
        super().stop()


class Lies:
    def __init__(self, scene):
        self.scene, self.server = scene, None

    def every(self):
        return [*LIES, "late", *("then-true-" + lie for lie in BEFORE_TRUTH)]

    def begin(self):
        """Returns False without the rights for a name server."""
        self.server = names.start(self.scene.folder, Liar)
        if self.server is None:
            return False
        program = self.scene.prepare(dns={"min_ttl": "1s"}, pool={"size": 8, "connect_timeout": "1s"})
        program._inside += self.server.inside
        program.start()
        return True

    def ask(self, name):
        def one():
            with mix.h1_client(self.scene.program) as client:
                yield mix.over_h1(client, name, "http://%s.test:%d" % (name, self.scene.plain.port))
        return mix.guarded(name, one)[-1]

    def play(self, lie):
        try:
            result, truth = self.ask(lie), self.ask("true%d" % (hash(lie) % 10 ** 6))
            oracles.lives(self.scene)
            allowed = (mix.OK,) if lie.startswith("then-true-") else (mix.OK, mix.VISIBLE)
            if result.end not in allowed:
                raise oracles.Broken("%s %s" % (result.end, result.detail))
            if truth.end != mix.OK:
                raise oracles.Broken("a true name afterwards: %s %s" % (truth.end, truth.detail))
            oracles.balances(self.scene)
        except (oracles.Broken, OSError, AssertionError) as broken:
            return "the name server's lie %s: %s" % (lie, broken)
        return None

    def end(self):
        self.scene.program.stop()
        self.server.stop()
