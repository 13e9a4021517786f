"""The adapter of the intercepted suites: in which order it connects its clients."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent / "intercepted"))

from turns import AT_ONCE, Turns  # noqa: E402


class Client:
    def __init__(self, connected, name):
        self.connected, self.name = connected, name

    def connect(self):
        self.connected.append(self.name)


def test_the_newest_client_is_connected_first_and_few_at_a_time():
    connected, turns = [], Turns()
    clients = [Client(connected, n) for n in range(300)]
    for client in clients:
        turns.enter(client)
    assert connected == list(range(AT_ONCE))
    turns.leave(clients[0])
    assert connected[AT_ONCE:] == [299], "no later client waits for three hundred"
    turns.leave(clients[0])
    turns.leave(clients[200])
    assert len(connected) == AT_ONCE + 1, "who has no turn gives none back"
    for nth in range(1, 300):
        turns.leave(clients[connected[nth]])
    assert sorted(connected) == list(range(300)), "none is left waiting"
