"""A relay that makes an origin distant: each byte arrives half a round trip later, in either direction. TCP's own handshake cannot be
delayed from here, so the first bytes of a connection take one more round trip.

    relay.py LISTEN_ADDRESS LISTEN_PORT ORIGIN_PORT ROUND_TRIP_MS"""
import asyncio
import sys


class Direction(asyncio.Protocol):
    """Bytes from one transport to the other."""

    def __init__(self, delay):
        self.delay, self.to, self.first = delay, None, 0.0

    def data_received(self, data):
        self._later(lambda: self.to.write(data))

    def eof_received(self):
        self._later(lambda: self.to.write_eof() if self.to.can_write_eof() else None)
        return True

    def connection_lost(self, error):
        self._later(lambda: self.to.close())

    def _later(self, action):
        loop = asyncio.get_running_loop()

        def run():
            if self.to is not None and not self.to.is_closing():
                action()
        # call_at keeps the order of equal times, and `first` only shrinks to zero after the first bytes have passed.
        at = max(loop.time() + self.delay, self.first)
        self.first = max(self.first, at)
        loop.call_at(at, run)


async def accepted(port, trip, client):
    loop = asyncio.get_running_loop()
    to_origin, to_client = Direction(trip / 2), Direction(trip / 2)
    to_origin.first = loop.time() + trip * 1.5 if trip else 0.0
    to_client.to, _ = await loop.connect_accepted_socket(lambda: to_origin, client)
    to_client.to.pause_reading()
    to_origin.to, _ = await loop.create_connection(lambda: to_client, "127.0.0.1", port)
    to_client.to.resume_reading()


async def main(address, listen, origin, trip):
    import socket
    loop = asyncio.get_running_loop()
    server = socket.create_server((address, listen), backlog=1024)
    server.setblocking(False)
    tasks = set()
    while True:
        client, _ = await loop.sock_accept(server)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        task = loop.create_task(accepted(origin, trip, client))
        tasks.add(task)
        task.add_done_callback(tasks.discard)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]) / 1000))
