"""TCP's urgent data from an origin inside a long body or a tunnel: no proxy passes it on, and what follows it arrives."""
import socket

import pytest

HALF = bytes(range(256)) * 4096  # long enough to be spliced


def talk(stream):
    """Sends a half, one urgent byte and the other half to a client that has sent a head; behind a head of its own, if that asks for it."""
    while b"\r\n\r\n" not in stream.buffer and stream.more():
        pass
    if stream.buffer.startswith(b"GET"):
        stream.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (2 * len(HALF)))
    stream.send(HALF)
    stream.sock.send(b"!", socket.MSG_OOB)
    stream.send(HALF)
    stream.sock.shutdown(socket.SHUT_WR)
    while stream.more():
        pass


@pytest.mark.parametrize("workers", [1, 2])
def test_a_body_goes_on_behind_it(peer, carpool, workers):
    with carpool(workers=workers).client() as client:
        response = client.get("http://127.0.0.1:%d/" % peer(talk))
        assert response.status == 200 and response.body == 2 * HALF


@pytest.mark.parametrize("workers", [1, 2])
def test_a_tunnel_goes_on_behind_it(peer, carpool, workers):
    port = peer(talk)
    with carpool(workers=workers).client() as client:
        client.send(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % (port, port))
        assert client.head().status == 200
        client.send(b"hello\r\n\r\n")
        assert client.exactly(2 * len(HALF)) == 2 * HALF
        assert client.at_end()
