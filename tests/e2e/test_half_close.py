"""A client that sends FIN may still wait for its response for as long as listen.half_close allows; then it counts as
disconnected."""
import socket

import pytest
from harness.ports import free_port, tcp_server
from harness.wait import until
from harness.wire import Client


@pytest.fixture
def held(origin, gate):
    """Responds to /held when the gate opens, to /begun in two parts around it, and to everything else at once."""
    def handler(exchange):
        exchange.read_body()
        if exchange.request.target == "/begun":
            exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf")
            gate.enter()
            return exchange.send(b"half")
        if exchange.request.target == "/held":
            gate.enter()
        exchange.reply(body=b"%d" % len(exchange.request.body))
    return origin(handler)


def given_up(c):
    return c.metric("carpool_downstream_given_up_total", reason="half_close")


def half_close(client):
    client.sock.shutdown(socket.SHUT_WR)
    return client


def a_half_close_passes(c, o):
    """Uses the program's own clock: a client that sends FIN now counts as disconnected."""
    before = given_up(c)
    with c.client() as client:
        client.ask("GET", o.url + "/held")
        half_close(client)
        until(lambda: given_up(c) == before + 1, what="the end of half_close")


def reasons(c):
    return [row.get("fault", "") for row in c.access_log() if row["status"] == 499]


def test_a_client_that_leaves_the_line_by_fin_is_not_sent_to_the_origin(held, carpool, gate):
    c = carpool(pool={"size": 1, "wait_timeout": "60s"})
    with c.client() as first:
        first.ask("GET", held.url + "/held")
        gate.wait_for(1)
        with c.client() as second:
            second.ask("GET", held.url + "/late")
            until(lambda: c.metric("carpool_pool_waiting", origin=held.url) == 1, what="a request in line")
        until(lambda: c.metric("carpool_pool_waiting", origin=held.url) == 0, what="an empty line")
        gate.open()
        assert first.response().status == 200
    assert held.targets() == ["/held"] and given_up(c) == 1
    until(lambda: reasons(c) == ["listen.half_close passed while waiting for a connection"], what="the reason in the log")


def test_a_client_that_leaves_by_fin_gives_its_connection_up(held, carpool, gate):
    c = carpool()
    with c.client() as client:
        client.ask("GET", held.url + "/held")
        gate.wait_for(1)
    until(lambda: c.metric("carpool_pool_connections") == 0, what="the end of its connection")
    assert given_up(c) == 1
    until(lambda: c.metric("carpool_downstream_connections") == 0, what="the end of the client's connection")
    until(lambda: reasons(c) == ["listen.half_close passed while waiting for the response head"], what="the reason in the log")


@pytest.mark.parametrize("interim", [b"100 Continue", b"103 Early Hints"])
def test_a_client_that_leaves_behind_an_interim_response_gives_its_connection_up(origin, carpool, gate, interim):
    def slow(exchange):
        exchange.send(b"HTTP/1.1 %s\r\n\r\n" % interim)
        gate.enter()
    o, c = origin(slow), carpool()
    with c.client() as client:
        client.ask("GET", o.url + "/")
        assert client.head().status == int(interim[:3])
    until(lambda: given_up(c) == 1, what="the end of half_close")
    until(lambda: c.metric("carpool_pool_connections") == 0, what="the end of its connection")


def test_a_half_closer_gets_an_answer_that_begins_in_time(held, carpool, gate):
    c = carpool(listen={"half_close": "60s"})
    with c.client() as client:
        client.ask("GET", held.url + "/held")
        half_close(client)
        gate.wait_for(1)
        gate.open()
        assert client.response().status == 200
        assert client.at_end()


def test_without_patience_a_client_has_left_at_once(held, carpool, gate):
    c = carpool(listen={"half_close": "0s"})
    with c.client() as client:
        client.ask("GET", held.url + "/held")
        gate.wait_for(1)
        half_close(client)
        assert client.at_end()
    assert given_up(c) == 1


def test_with_unlimited_patience_a_half_closer_waits_for_ever(held, carpool, gate):
    patient, other = ("127.0.0.1", free_port()), ("127.0.0.1", free_port())
    c = carpool(listeners=[{"address": "%s:%d" % patient, "half_close": "unlimited"}, {"address": "%s:%d" % other, "half_close": "100ms"}])
    c.address = other
    with Client(patient) as client:
        client.ask("GET", held.url + "/held")
        half_close(client)
        a_half_close_passes(c, held)
        gate.open()
        assert client.response().status == 200


def test_an_answer_that_began_is_finished_whatever_time_it_takes(held, carpool, gate):
    c = carpool(listen={"half_close": "100ms"})
    with c.client() as client:
        client.ask("GET", held.url + "/begun")
        assert client.head().status == 200
        half_close(client)
        a_half_close_passes(c, held)
        gate.open()
        assert client.exactly(8) == b"halfhalf"


def test_time_in_line_does_not_count_while_a_body_is_still_to_be_read(held, carpool, gate):
    size = 1 << 20
    c = carpool(listen={"half_close": "2s"}, pool={"size": 1, "wait_timeout": "60s"})
    with c.client() as first, c.client() as client:
        first.ask("GET", held.url + "/held")
        gate.wait_for(1)
        client.send(b"PUT %s/ HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (held.url.encode(), size) + bytes(size))
        half_close(client)
        until(lambda: c.metric("carpool_pool_waiting", origin=held.url) == 1, what="a request in line")
        a_half_close_passes(c, held)
        gate.open()
        assert first.response().status == 200
        assert client.response().body == b"%d" % size


def test_a_tunnel_is_half_closed_for_as_long_as_it_likes(held, carpool, gate):
    c = carpool(listen={"half_close": "100ms"})
    server = tcp_server()
    with server, c.client() as client:
        client.send(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: x\r\n\r\n" % server.getsockname()[1])
        assert client.head().status == 200
        half_close(client)
        peer, _ = server.accept()
        with peer:
            a_half_close_passes(c, held)
            peer.sendall(b"late")
            assert client.exactly(4) == b"late"


def test_requests_in_front_of_a_fin_are_answered_in_turn_each_in_its_own_time(held, carpool, gate):
    c = carpool(listen={"half_close": "2s"})
    ask = b"GET %s%s HTTP/1.1\r\nHost: x\r\n\r\n"
    with c.client() as client:
        client.send(b"".join(ask % (held.url.encode(), path) for path in (b"/1", b"/2", b"/held", b"/never")))
        half_close(client)
        assert [client.response().status for _ in range(2)] == [200, 200]
        assert client.at_end()
    assert held.targets() == ["/1", "/2", "/held"] and given_up(c) == 1


def test_check_says_what_half_close_takes(carpool):
    c = carpool(start=False, listen={"half_close": "soon"})
    assert 'expected a duration such as "250ms", "30s", "10m" or "1h", or "unlimited"' in c.check()
