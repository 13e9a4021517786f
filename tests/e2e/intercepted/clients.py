"""The suite's clients: each gets a CONNECT of its own, begun with its first bytes, because they say which protocol it speaks."""
from pair import Pair, Plain, Secure
from rewrite import Bytes, Frames, Nothing

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
ENDING = b"\r\n\r\n"
PAUSE = 0.25  # s; a client that writes nothing for this long was not in the middle of a message


def speaks_h2(first):
    """Returns None while it is not known."""
    if len(first) < 3:
        return None if PREFACE.startswith(first) else False
    return PREFACE.startswith(first[:len(PREFACE)])


def rewriter(route, protocol):
    words = route.words()
    if not words:
        return Nothing()
    return Frames(words, len(PREFACE)) if protocol == "h2" else Bytes(words)


class Client(Pair):
    def __init__(self, loop, route, proxy, contexts, turns):
        super().__init__(None, Nothing())
        self.loop, self.route, self.proxy, self.contexts, self.turns = loop, route, proxy, contexts, turns
        self.plain = Plain(self)
        self.first, self.response, self.connected = b"", b"", False
        self.timer = None

    def on_plain(self, data):
        if self.secure is not None:
            super().on_plain(data)
            return self.release_later()
        self.first += data
        h2 = speaks_h2(self.first)
        if h2 is not None:
            self.begin("h2" if h2 else "http/1.1")

    def begin(self, protocol):
        self.to_secure = rewriter(self.route, protocol)
        self.secure = Secure(self, self.contexts[protocol], self.route.server_name)
        self.secure.write(self.to_secure.feed(self.first))
        self.release_later()
        self.turns.enter(self)

    def release_later(self):
        if self.timer:
            self.timer.cancel()
        self.timer = self.loop.call_later(PAUSE, self.release) if getattr(self.to_secure, "held", b"") else None

    def release(self):
        self.secure.write(self.to_secure.rest())

    def connect(self):
        self.task = self.loop.create_task(self.dial())

    async def dial(self):
        try:
            await self.loop.create_connection(lambda: self.secure, *self.proxy)
        except OSError:
            self.fail()
            self.turns.leave(self)

    def on_established(self):
        self.turns.leave(self)

    def on_lost(self, side):
        super().on_lost(side)
        if side is self.secure:
            self.turns.leave(self)

    def on_plain_end(self):
        if self.secure is not None:
            return super().on_plain_end()
        self.plain.close()

    def on_made(self, side):
        if side is self.secure:
            side.transport.write(b"CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n" % ((self.route.authority.encode(),) * 2))
            if self.plain.transport.is_closing():
                side.reset()

    def before_tls(self, data):
        if self.connected:
            return data
        self.response += data
        end = self.response.find(ENDING)
        if end < 0:
            return b""
        if not self.response.startswith(b"HTTP/1.1 200 "):
            self.fail()
            return b""
        self.connected = True
        self.secure.step()
        return self.response[end + len(ENDING):]
