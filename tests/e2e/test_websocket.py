"""Upgrade with a real client and a real server library: after 101 the connection is a tunnel, counted to its end."""
import socket
import threading

import pytest
from harness.wait import until

client = pytest.importorskip("websockets.sync.client")
server = pytest.importorskip("websockets.sync.server")


@pytest.fixture
def echo():
    def talk(connection):
        for message in connection:
            connection.send(message)
    running = server.serve(talk, "127.0.0.1", 0)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    yield running.socket.getsockname()[1]
    running.shutdown()


def connect(carpool, port):
    return client.connect("ws://127.0.0.1:%d/chat" % port, sock=socket.create_connection(carpool.address, 10), proxy=None)


def test_messages_pass_both_ways_and_the_slot_is_held_to_the_end(carpool, echo):
    c = carpool(pool={"size": 4, "max_tunnels": 2})
    label = "http://127.0.0.1:%d" % echo
    with connect(c, echo) as ws:
        for message in ("short", "x" * 200_000, b"\x00\xff" * 5):
            ws.send(message)
            assert ws.recv(timeout=10) == message
        assert c.metric("carpool_pool_connections", origin=label, state="tunnel") == 1
        assert c.metric("carpool_pool_closed_total", origin=label) == 0
    until(lambda: c.metric("carpool_pool_closed_total", origin=label, cause="tunnel_ended") == 1, what="tunnel_ended")
    until(lambda: c.metric("carpool_pool_connections", origin=label) == 0, what="an empty pool")


def test_tunnels_are_never_lent_again_and_their_number_is_bounded(carpool, echo):
    c = carpool(pool={"size": 4, "max_tunnels": 2, "wait_timeout": "200ms"})
    with connect(c, echo) as one, connect(c, echo) as two:
        one.send("1")
        two.send("2")
        assert (one.recv(timeout=10), two.recv(timeout=10)) == ("1", "2")
        with pytest.raises(Exception, match="503"):
            connect(c, echo)
    until(lambda: c.metric("carpool_pool_connections") == 0, what="an empty pool")
    with connect(c, echo) as three:
        three.send("3")
        assert three.recv(timeout=10) == "3"


def test_bytes_sent_right_behind_the_101_are_not_lost(origin, carpool):
    def eager(exchange):
        exchange.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x-test\r\n\r\nfirst words")
        exchange.send(b"; heard " + exchange.stream.exactly(5))
        return False
    o, c = origin(eager), carpool()
    with c.client() as raw:
        raw.ask("GET", o.url + "/", [("Connection", "Upgrade"), ("Upgrade", "x-test")])
        assert raw.response().status == 101
        raw.send(b"hello")
        assert raw.exactly(24) == b"first words; heard hello"
        assert raw.at_end()


def test_a_refused_upgrade_is_an_ordinary_exchange(origin, carpool):
    o, c = origin(), carpool()
    with c.client() as raw:
        answer = raw.get(o.url + "/", ("Connection", "Upgrade"), ("Upgrade", "websocket"))
        assert (answer.status, answer.body) == (200, b"ok")
        assert raw.get(o.url + "/again").status == 200
    assert o.opened == 1
