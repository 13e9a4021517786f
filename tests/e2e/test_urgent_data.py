"""TCP's urgent data from an origin inside a long body or a tunnel: no proxy passes it on, and what follows it arrives."""
import contextlib
import os
import signal
import socket
import threading

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


# ---- all of it has arrived before the proxy reads: a read stops at the urgent byte, and no event follows ----

LETTERS = b"before" + b"behind"


def send_at_once(sock, half=6):
    """Sends LETTERS with an urgent byte inside, below TLS if there is any."""
    sock.sendall(LETTERS[:half])
    with socket.socket(fileno=os.dup(sock.fileno())) as raw:
        raw.send(b"!", socket.MSG_OOB)
    sock.sendall(LETTERS[half:])


@contextlib.contextmanager
def stopped(c):
    """Stops the program, so that it finds all of the bytes at once."""
    c.signal(signal.SIGSTOP)
    yield
    c.signal(signal.SIGCONT)


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_a_response_that_is_there_at_once_arrives_whole(origin, carpool, pki, context, tls):
    asked, go, sent = threading.Event(), threading.Event(), threading.Event()

    def handler(exchange):
        exchange.read_body()
        exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(LETTERS))
        asked.set()
        go.wait(20)
        send_at_once(exchange.stream.sock)
        sent.set()
    o, c = origin(handler, **({"tls": context} if tls else {})), carpool(upstream={"tls": {"ca_file": pki.ca}})
    with c.client() as client:
        client.ask("GET", o.url + "/")
        assert client.head().status == 200 and asked.wait(20)
        with stopped(c):
            go.set()
            assert sent.wait(20)
        assert client.exactly(len(LETTERS)) == LETTERS


def test_a_request_that_is_there_at_once_arrives_whole(origin, carpool):
    o, c = origin(), carpool()
    with c.client() as client:
        assert client.get(o.url + "/").status == 200
        with stopped(c):
            client.send(b"POST %s/ HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (o.url.encode(), len(LETTERS)))
            send_at_once(client.sock)
        assert client.response("POST").status == 200
    assert o.seen[-1].message.body == LETTERS
