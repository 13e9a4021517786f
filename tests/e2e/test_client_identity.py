"""The identity of a client: by the PROXY protocol of a load balancer, and by the owner of a socket on loopback."""
import collections
import contextlib
import os
import socket
import struct
import subprocess
import sys
import threading

import pytest
from harness.origin import Origin
from harness.wait import until
from harness.wire import Client

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"


def v2(command=1, family=0x11, body=socket.inet_aton("203.0.113.9") + socket.inet_aton("10.0.0.1") + struct.pack(">HH", 4711, 80)):
    return SIGNATURE + bytes([0x20 | command, family]) + struct.pack(">H", len(body)) + body


def announced(carpool, **more):
    return carpool(listen={"proxy_protocol": True, "trusted": ["127.0.0.0/8"], **more},
                   request={"client_field": "x_forwarded_for"})


V6 = socket.inet_pton(socket.AF_INET6, "2001:db8::7") + socket.inet_pton(socket.AF_INET6, "::1") + struct.pack(">HH", 4711, 80)


@pytest.mark.parametrize("header,client", [
    (b"PROXY TCP4 203.0.113.9 10.0.0.1 4711 80\r\n", "203.0.113.9"),
    (b"PROXY TCP6 2001:db8::7 ::1 4711 80\r\n", "2001:db8::7"),
    (b"PROXY UNKNOWN\r\n", "127.0.0.1"),
    (b"PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n", "127.0.0.1"),
    (v2(), "203.0.113.9"),
    (v2(family=0x21, body=V6), "2001:db8::7"),
    (v2(command=0, family=0, body=b""), "127.0.0.1"),
    (v2(body=socket.inet_aton("203.0.113.9") * 2 + struct.pack(">HH", 4711, 80) + b"\x04\0\x03abc"), "203.0.113.9")])
def test_the_header_names_the_client_to_the_origin_and_the_log(origin, carpool, header, client):
    o = origin()
    c = announced(carpool)
    with c.client() as one:
        for cut in (1, 7, 14):  # in pieces
            one.send(header[:cut])
            header = header[cut:]
        one.send(header)
        assert one.get(o.url + "/").status == 200
        assert one.get(o.url + "/").status == 200
    assert [s.message.get("x-forwarded-for") for s in o.seen] == [client] * 2
    until(lambda: len(c.access_log()) == 2, 10, "the access log")
    assert all(client in line["client"] for line in c.access_log())
    result = "local" if client == "127.0.0.1" else "named"
    assert c.metric("carpool_downstream_proxy_headers_total", result=result) == 1


@pytest.mark.parametrize("header", [
    b"GET / HTTP/1.1\r\n", b"PROXY TCP4 203.0.113.9 10.0.0.1 4711\r\n", b"PROXY TCP4 ::1 ::1 1 2\r\n", b"PROXY TCP4 a b 1 2\r\n",
    b"PROXY TCP4 203.0.113.9 10.0.0.1 4711 99999\r\n", b"PROXY " + b"x" * 200, v2(command=2), v2(body=b"short"),
    SIGNATURE + b"\x11\x11\0\x0c" + b"0" * 12, SIGNATURE + b"\x21\x11\xff\xff"])
def test_a_connection_without_a_usable_header_is_closed(carpool, header):
    c = announced(carpool)
    with c.client() as one:
        one.send(header)
        with contextlib.suppress(ConnectionError):
            assert one.sock.recv(100) == b""
    assert c.metric("carpool_downstream_proxy_headers_total", result="malformed") == 1
    until(lambda: c.metric("carpool_downstream_connections") == 0, 10, "no client")


def test_a_header_that_never_comes_ends_with_header_timeout(carpool):
    c = announced(carpool, header_timeout="200ms")
    with c.client() as one:
        one.send(b"PROXY TCP4 203")
        with contextlib.suppress(ConnectionError):
            assert one.sock.recv(100) == b""
    assert c.metric("carpool_downstream_proxy_headers_total", result="missing") == 1


def test_a_peer_that_closes_within_its_header_ends_at_once(carpool):
    c = announced(carpool, header_timeout="60s")
    with c.client() as one:
        one.send(b"PROXY TCP4 203")
        one.sock.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionError):
            assert one.sock.recv(100) == b""
    assert c.metric("carpool_downstream_proxy_headers_total", result="missing") == 1


def test_a_peer_that_is_not_trusted_names_nobody(carpool):
    c = carpool(listen={"proxy_protocol": True, "trusted": ["192.0.2.0/24"]})
    with contextlib.suppress(ConnectionError), c.client() as one:
        one.send(b"PROXY TCP4 203.0.113.9 10.0.0.1 4711 80\r\n")
        assert one.sock.recv(100) == b""
    assert c.metric("carpool_downstream_proxy_headers_total", result="untrusted") == 1


def test_the_header_comes_before_tls_and_http2(origin, carpool, pki):
    import ssl
    o = origin()
    c = announced(carpool, cert_file=str(pki.server), key_file=str(pki.server_key))
    context = ssl.create_default_context(cafile=str(pki.ca))
    sock = socket.create_connection(c.address, 20)
    sock.sendall(v2())
    with Client(sock=context.wrap_socket(sock, server_hostname="origin.test")) as client:
        assert client.get(o.url + "/").status == 200
    assert o.seen[0].message.get("x-forwarded-for") == "203.0.113.9"


@pytest.mark.parametrize("settings,said", [
    ({"proxy_protocol": True}, "is set without trusted"), ({"trusted": ["10.0.0.0/8"]}, "is set without proxy_protocol"),
    ({"proxy_protocol": True, "trusted": ["lb.test"]}, "listen.trusted")])
def test_check_demands_the_trusted_peers(carpool, settings, said):
    assert said in carpool(listen=settings, start=False).check()


# ---- loopback ----

ASKER = """
import socket, sys, threading
host, port, url, connections = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
def ask(number):
    sock = socket.create_connection((host, port))
    while True:
        sock.sendall(("GET %s/%d HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n" % (url, number)).encode())
        answer = b""
        while not answer.endswith(b"ok"):
            part = sock.recv(4096)
            if not part:
                return
            answer += part
for number in range(connections): threading.Thread(target=ask, args=(number,), daemon=True).start()
sys.stdin.read()
"""
SIZE = 8  # of the pool


class Crowd:
    """Clients that send one request after the other on each connection, and an origin that answers one at a time when told: the oldest. Between
    two answers all of them have asked again, so only the order of the queue decides who is next, however slow the machine is."""

    def __init__(self, carpool, origin, **listen):
        self._held, self._lock, self._askers, self._asking = collections.deque(), threading.Lock(), [], 0
        self.origin = origin(self._hold)
        self.c = carpool(listen=listen, pool={"size": SIZE, "wait_timeout": "600s"})

    def _hold(self, exchange):
        exchange.read_body()
        told = threading.Event()
        with self._lock:
            self._held.append(told)
        told.wait(600)
        exchange.reply()

    def join(self, name, connections, **how):
        """Starts a process with this number of connections, whose targets begin with this name."""
        python = "/usr/bin/python3" if how else sys.executable  # another user may not enter the tests' own
        words = [python, "-c", ASKER, *map(str, self.c.address), self.origin.url + "/" + name, str(connections)]
        self._askers.append(subprocess.Popen(words, stdin=subprocess.PIPE, **how))
        self._asking += connections
        self._settle()

    def _settle(self):
        until(lambda: len(self._held) == min(SIZE, self._asking) and self.c.pool(self.origin.url)["waiting"] == max(0, self._asking - SIZE),
              60, "all of them asking")

    def answer(self, count):
        """Answers so many requests, and returns the targets of those that the origin received instead."""
        before = len(self.origin.seen)
        for _ in range(count):
            with self._lock:
                self._held.popleft().set()
            self._settle()
        return self.origin.targets()[before:]

    def end(self):
        for one in self._askers:
            one.kill()
            one.wait()
            one.stdin.close()
        with self._lock:
            while self._held:
                self._held.popleft().set()


@pytest.fixture
def crowd(carpool, origin, request):
    def make(**listen):
        made = Crowd(carpool, origin, **listen)
        request.addfinalizer(made.end)
        return made
    return make


def turns(targets, name):
    return sum(target.startswith("/%s/" % name) for target in targets)


@pytest.mark.parametrize("by", ["process", "user"])
def test_sixty_connections_of_one_client_do_not_starve_another_on_loopback(crowd, by):
    if by == "user" and (os.geteuid() != 0 or not os.path.exists("/usr/bin/python3")):
        pytest.skip("another user needs root, and a Python that it may run")
    many = crowd(loopback_client=by)
    many.join("noisy", 60)
    many.join("quiet", 1, **({"user": 65534} if by == "user" else {}))
    found = []

    def next_to_noisy():
        found.append(turns(many.answer(SIZE), "quiet"))
        return sum(found[-6:]) >= 4
    # The owner of a socket is looked for meanwhile. In the order of the connections it has at most one turn in six rounds.
    until(next_to_noisy, 60, "its next request is the next one of the origin, which has eight")


def test_connections_of_one_process_take_turns_while_their_sockets_are_looked_for(crowd):
    many = crowd()
    many.join("all", 60)
    came = collections.Counter(many.origin.targets() + many.answer(5 * 60))
    assert len(came) == 60 and max(came.values()) - min(came.values()) <= 2, came


def test_each_connection_may_be_a_client_of_its_own(crowd):
    many = crowd(loopback_client="connection")
    many.join("noisy", 60)
    many.join("quiet", 1)
    assert 1 <= turns(many.answer(2 * 61), "quiet") <= 3


def test_a_leak_names_the_process_and_the_user_behind_a_connection_on_loopback(carpool, request):
    gate = threading.Event()

    def held(exchange):
        exchange.read_body()
        gate.wait(30)
        exchange.reply()
    o = Origin(held)
    request.addfinalizer(o.stop)
    request.addfinalizer(gate.set)
    c = carpool(pool={"leak_timeout": "100ms"})
    with c.client() as first, c.client() as second:
        for client in (first, second):
            client.ask("GET", o.url + "/")
        until(lambda: len(c.get_json("/leaks")["leaks"]) == 2, 10, "two leaks")
        leaks = c.get_json("/leaks")["leaks"]
        assert {leak["borrower"]["uid"] for leak in leaks} == {os.geteuid()}
        assert {leak["borrower"]["pid"] for leak in leaks} <= {os.getpid(), None}
        gate.set()
