"""Each deadline responds in time, with its own status, and names the phase in which the request failed."""
import pathlib
import re
import select
import signal
import time

import pytest
from harness.blackhole import BlackholeServer, SilentServer
from harness.h2_origin import H2Origin
from harness.wait import until

SOON = 5  # seconds within which the response to a deadline of a few hundred milliseconds must arrive


@pytest.fixture
def blackhole():
    one = BlackholeServer()
    yield one
    one.stop()


@pytest.fixture
def silent():
    one = SilentServer()
    yield one
    one.stop()


def holding(gate):
    def handler(exchange):
        exchange.read_body()
        gate.enter()
        exchange.reply()
    return handler


def ask(client, target, method="GET", **more):
    began = time.monotonic()
    response = client.request(method, target, **more)
    assert time.monotonic() - began < SOON
    return response


def says(response, status, words):
    """Checks the status, and Proxy-Status with these words in it."""
    told = response.get("proxy-status", "")
    assert response.status == status, (response, told)
    assert told.startswith("carpool") and re.search(words, told, re.I), told


def test_connecting_too_long_is_504(blackhole, carpool):
    c = carpool(pool={"connect_timeout": "300ms"})
    with c.client() as client:
        says(ask(client, "http://%s/" % blackhole.authority), 504, "connection_timeout")


def test_a_tls_handshake_counts_against_the_connect_timeout(silent, carpool):
    c = carpool(pool={"connect_timeout": "300ms"})
    with c.client() as client:
        says(ask(client, "https://%s/" % silent.authority), 504, "connection_timeout|tls")


class LateTls:
    """The TLS of an origin that begins its handshakes late, and sends nothing after them until the gate opens."""

    def __init__(self, context, gate, seconds):
        self._context, self._gate, self._seconds = context, gate, seconds

    def wrap_socket(self, sock, **more):
        self._gate.enter(self._seconds)
        sock = self._context.wrap_socket(sock, **more)
        self._gate.enter()
        return sock


@pytest.fixture
def unsettled(context, gate):
    """An origin that needs 0.8 s for TLS, chooses HTTP/2 and sends no SETTINGS."""
    context.set_alpn_protocols(["h2"])
    one = H2Origin(tls=LateTls(context, gate, 0.8))
    yield one
    gate.open()
    one.stop()


def test_the_settings_of_http_2_come_within_the_connect_timeout_that_tls_leaves(unsettled, carpool, pki):
    c = carpool(pool={"connect_timeout": "2s", "wait_timeout": "100ms"}, upstream={"tls": {"ca_file": pki.ca}})
    with c.client() as client:
        says(ask(client, unsettled.url + "/"), 504, "connection_timeout.*SETTINGS")
    assert c.pool(unsettled.url)["connecting"] == 0, "the dial ends with the request"


def test_waiting_too_long_for_a_connection_is_503(origin, carpool, gate):
    o = origin(holding(gate))
    c = carpool(pool={"size": 1, "wait_timeout": "300ms"})
    with c.client() as first, c.client() as second:
        first.ask("GET", o.url + "/held")
        gate.wait_for(1)
        response = ask(second, o.url + "/late")
        says(response, 503, "wait timed out")
        assert int(response.get("retry-after")) >= 0
        gate.open()
        assert first.response().status == 200
    assert o.targets() == ["/held"]


def test_a_full_line_is_503_at_once(origin, carpool, gate):
    o = origin(holding(gate))
    c = carpool(pool={"size": 1, "max_waiting": 1, "wait_timeout": "60s"})
    with c.client() as first, c.client() as second, c.client() as third:
        first.ask("GET", o.url + "/1")
        gate.wait_for(1)
        second.ask("GET", o.url + "/2")
        until(lambda: c.metric("carpool_pool_waiting", origin=o.url) == 1, what="one waiting request")
        response = ask(third, o.url + "/3")
        says(response, 503, "wait queue full")
        assert response.get("retry-after")
        gate.open()
        assert (first.response().status, second.response().status) == (200, 200)


def test_a_response_head_that_does_not_come_is_504(origin, carpool, gate):
    o = origin(holding(gate))
    c = carpool(request={"response_header_timeout": "300ms"})
    with c.client() as client:
        says(ask(client, o.url + "/"), 504, "http_response_timeout.*response head")
        until(lambda: o.seen, what="the request at the origin")
        assert len(o.seen) == 1  # never replayed after a timeout


def gone_within(exchange, seconds):
    return bool(select.select([exchange.stream.sock], [], [], seconds)[0])


def test_a_response_head_that_drips_is_given_up_all_the_same(origin, carpool):
    def drips(exchange):
        exchange.read_body()
        for byte in b"HTTP/1.1 200 OK\r\nX-Slow: " + b"y" * 200:
            exchange.send(bytes([byte]))
            if gone_within(exchange, 0.05):
                return False
    o = origin(drips)
    c = carpool(request={"response_header_timeout": "300ms"})
    with c.client() as client:
        says(ask(client, o.url + "/"), 504, "http_response_timeout.*response head")
        until(lambda: o.seen, what="the request at the origin")
        assert len(o.seen) == 1


def test_an_origin_that_says_it_works_on_it_has_its_time_again(origin, carpool):
    def processes(exchange):
        exchange.read_body()
        for _ in range(2):  # together longer than the limit, and far less than twice as long
            exchange.send(b"HTTP/1.1 102 Processing\r\n\r\n")
            assert not gone_within(exchange, 1.4)
        exchange.reply()
    o, c = origin(processes), carpool(request={"response_header_timeout": "2500ms"})
    with c.client() as client:
        assert ask(client, o.url + "/").status == 200


def test_silence_inside_a_response_breaks_it(origin, carpool, gate):
    def stalls(exchange):
        exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
        gate.enter()
    o = origin(stalls)
    c = carpool(request={"idle_timeout": "300ms"})
    with c.client() as client:
        response = ask(client, o.url + "/")
        assert (response.status, response.body, response.complete) == (200, b"half", False)
    assert c.metric("carpool_pool_failures_total", reason="timeout") == c.metric("carpool_pool_failures_total") == 1


def test_silence_in_which_the_client_may_still_send_is_no_failure_of_the_origin(origin, carpool, gate):
    def waits_for_more(exchange):
        exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
        gate.enter()
        return False
    o = origin(waits_for_more)
    c = carpool(request={"idle_timeout": "2s"})
    with c.client() as client:
        client.send(b"POST %s/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n" % o.url.encode())
        response = client.response()
        assert (response.status, response.body, response.complete) == (200, b"half", False)
    until(lambda: c.metric("carpool_pool_leases") == 0, what="the end")
    assert not c.metric("carpool_pool_failures_total")


def test_silence_inside_a_request_body_is_answered(origin, carpool):
    o = origin()
    c = carpool(request={"idle_timeout": "300ms"})
    with c.client() as client:
        client.send(b"PUT %s/ HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf" % o.url.encode())
        says(client.response(), 408, "request body|timeout")


def test_a_head_that_comes_too_slowly_is_408(origin, carpool):
    o, c = origin(), carpool(listen={"header_timeout": "300ms"})
    with c.client() as client:
        client.send(b"GET %s/ HTTP/1.1\r\nHos" % o.url.encode())
        assert client.response().status == 408
        assert client.at_end()


@pytest.mark.parametrize("start", [b"P", b"PRI * HTTP/2.0\r\n\r\nSM\r\n"])
def test_what_may_yet_become_http_2_is_408_too_and_harms_nobody_after_it(origin, carpool, start):
    o, c = origin(), carpool(workers=1, listen={"header_timeout": "300ms"})
    with c.client() as client:
        client.send(start)
        assert client.response().status == 408
        assert client.at_end()
    for _ in range(3):
        with c.client() as client:
            assert client.get(o.url + "/").status == 200


def test_a_client_at_rest_is_let_go_without_a_word(origin, carpool):
    o, c = origin(), carpool(listen={"idle_timeout": "2s"})
    with c.client() as client:
        assert client.get(o.url + "/").status == 200
        assert client.at_end()


def test_an_empty_line_behind_a_request_begins_no_other(origin, carpool):
    o, c = origin(), carpool(listen={"header_timeout": "300ms", "idle_timeout": "60s"})
    with c.client() as client:
        assert client.request("POST", o.url + "/", body=b"ab").status == 200
        client.send(b"\r\n")
        for _ in range(2):  # twice the time of a slow head
            with c.client() as slow:
                slow.send(b"G")
                assert slow.response().status == 408
        assert client.get(o.url + "/").status == 200


# ---- request.timeout, wherever the request is ----

def test_the_total_deadline_runs_in_line(origin, carpool):
    def ntlm(exchange):
        exchange.reply(401, b"who?", [("WWW-Authenticate", "NTLM")])
    o = origin(ntlm)
    c = carpool(pool={"size": 1, "wait_timeout": "60s"}, request={"timeout": "2s"})
    with c.client() as first, c.client() as second:
        assert first.get(o.url + "/").status == 401  # the only connection is this client's now
        says(ask(second, o.url + "/late"), 504, "waiting for a connection")


def test_the_total_deadline_runs_while_resolving(resolver, carpool):
    resolver.mute = True
    c = carpool(inside=resolver.inside, request={"timeout": "400ms"})
    with c.client() as client:
        says(ask(client, "http://slow.test/"), 504, "resolv|dns")
    until(lambda: "slow.test" in resolver.asked, what="the query at the name server")


def test_the_total_deadline_runs_while_dialing(blackhole, carpool):
    c = carpool(request={"timeout": "400ms"})
    with c.client() as client:
        says(ask(client, "http://%s/" % blackhole.authority), 504, "connecting|dial|tcp")


def test_the_total_deadline_runs_in_tls(silent, carpool):
    c = carpool(request={"timeout": "400ms"})

    def in_tls():
        with c.client() as client:
            response = ask(client, "https://%s/" % silent.authority)
        # The first request waits for the certificates, which stay loaded; on a slow machine it would time out in an earlier phase.
        says(response, 504, "loading certificates|connecting|tls")
        return "tls" in response.get("proxy-status").lower()
    until(in_tls, what="a deadline inside the handshake")


def test_the_total_deadline_runs_while_the_request_is_sent(origin, carpool, gate):
    def unread(exchange):
        gate.enter()
        return False
    o = origin(unread)
    c = carpool(request={"timeout": "400ms"})
    with c.client() as client:
        client.send(b"PUT %s/ HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf" % o.url.encode())
        says(client.response(), 504, "request body")


def test_the_total_deadline_runs_while_waiting_for_the_response(origin, carpool, gate):
    o = origin(holding(gate))
    c = carpool(request={"timeout": "400ms"})
    with c.client() as client:
        says(ask(client, o.url + "/"), 504, "response head")


def test_the_total_deadline_runs_mid_body_however_busy_it_is(origin, carpool):
    def drip(exchange):
        exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
        exchange.stream.sock.settimeout(0.01)
        while True:  # a few bytes from time to time, so that no idle timeout ends it
            exchange.send(b"x")
            try:
                if not exchange.stream.sock.recv(1):
                    return False
            except TimeoutError:
                pass
    o = origin(drip)
    c = carpool(request={"timeout": "2s", "idle_timeout": "60s"})
    with c.client() as client:
        response = ask(client, o.url + "/")
        assert response.status == 200 and response.body and not response.complete
    until(lambda: any("response body" in line for line in c.output), what="the phase in the log")


def test_an_expired_request_leaves_nothing_behind(origin, carpool, gate):
    o = origin(holding(gate))
    c = carpool(request={"timeout": "300ms"}, pool={"size": 4})
    for _ in range(8):
        with c.client() as client:
            assert ask(client, o.url + "/").status == 504
    gate.open()
    until(lambda: c.metric("carpool_pool_borrows_total") == c.metric("carpool_pool_restores_total"), what="all leases back")
    assert c.metric("carpool_pool_waiting") == 0


def stopped_for(c, seconds, act):
    """Stops the process for longer than its deadlines, and calls act() in the meantime."""
    c.signal(signal.SIGSTOP)
    try:
        until(lambda: "\nState:\tT" in pathlib.Path("/proc/%d/status" % c.process.pid).read_text(), what="the stop")
        act()
        over = time.monotonic() + seconds
        until(lambda: time.monotonic() > over, what="the deadlines")
    finally:
        c.signal(signal.SIGCONT)


def test_what_arrived_while_the_process_was_stopped_is_in_time(origin, carpool, gate):
    o = origin(holding(gate))
    c = carpool(request={"response_header_timeout": "3s"}, listen={"header_timeout": "3s"})
    with c.client() as waiting, c.client() as asking:
        waiting.ask("GET", o.url + "/held")
        gate.wait_for(1)
        asking.send(b"GET %s/half HTTP/1.1\r\n" % o.url.encode())
        until(lambda: c.metric("carpool_downstream_connections") == 2, what="both clients")

        def answer():
            gate.open()
            asking.send(b"Host: x\r\n\r\n")
        stopped_for(c, 4, answer)
        assert waiting.response().status == 200
        assert asking.response().status == 200
