"""The order in which the adapter connects its clients to carpool. A CONNECT and a handshake take it two milliseconds of processor time,
so three hundred clients that come at once take more than half a second, and several seconds on a loaded machine. The next client must
not wait behind them for what only the adapter does: the newest is connected first, and few at a time."""
AT_ONCE = 4


class Turns:
    def __init__(self):
        self.waiting, self.running = [], set()

    def enter(self, client):
        self.waiting.append(client)
        self.next()

    def leave(self, client):
        """The client is connected, or has failed. No effect without a turn."""
        if client in self.running:
            self.running.remove(client)
            self.next()

    def next(self):
        while self.waiting and len(self.running) < AT_ONCE:
            client = self.waiting.pop()
            self.running.add(client)
            client.connect()
