"""The suite's plain origins behind TLS: each connection of carpool is one to the origin."""
from pair import Pair, Plain, Secure
from rewrite import Bytes, Nothing
from routes import MOVED


class Origin(Pair):
    def __init__(self, loop, route, host, context):
        # carpool writes a head at once.
        super().__init__(Nothing(), Bytes(route.words_back(), whole=True))
        self.loop, self.address = loop, (host, route.port)
        self.secure = Secure(self, context)
        self.plain = Plain(self)
        self.early = []

    def on_made(self, side):
        if side is self.secure:
            self.task = self.loop.create_task(self.dial())
        elif self.secure.transport.is_closing():
            side.reset()
        else:
            for data in self.early:
                side.write(data)

    async def dial(self):
        try:
            await self.loop.create_connection(lambda: self.plain, *self.address)
        except OSError:
            self.fail()

    def on_secure(self, data):
        if self.plain.transport is None:
            self.early.append(self.to_plain.feed(data))
        else:
            super().on_secure(data)


async def serve(loop, route, context):
    if not route.terminated:
        return []
    return [await loop.create_server(lambda h=host: Origin(loop, route, h, context).secure, host, route.port + MOVED, backlog=1024)
            for host in route.hosts()]
