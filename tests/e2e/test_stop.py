"""Termination: TERM drains, a second TERM does not wait, HUP and USR1 affect no running request."""
import signal
import socket
import subprocess

import pytest
from harness.carpool import PROGRAM
from harness.h2_client import H2Client
from harness.hanging_file import HangingFile
from harness.ports import free_port
from harness.tls import files, trusting  # noqa: F401
from harness.wait import until
from harness.wire import Client


@pytest.fixture
def held(origin, gate):
    def handler(exchange):
        if exchange.request.target == "/held":
            gate.enter()
        exchange.reply()
    return origin(handler)


def cut_off(c):
    """Returns the status and the fault of each line of the access log."""
    return [(row["status"], row.get("fault")) for row in c.access_log()]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_running_request_finishes_and_the_exit_status_is_zero(held, carpool, gate, number):
    c = carpool(shutdown_grace="60s")
    idle, running = c.client(), c.client()
    assert idle.get(held.url + "/").status == 200
    running.ask("GET", held.url + "/held")
    gate.wait_for(1)
    c.signal(number)
    until(lambda: c.admin("GET", "/readyz").status == 503, what="readyz 503")
    assert idle.at_end()
    assert c.process.poll() is None
    gate.open()
    response = running.response()
    assert (response.status, response.body, response.get("connection")) == (200, b"ok", "close")
    assert running.at_end()
    assert c.wait() == 0


def test_a_second_term_does_not_wait(held, carpool, gate):
    c = carpool(shutdown_grace="60s")
    running = c.client()
    running.ask("GET", held.url + "/held")
    gate.wait_for(1)
    c.signal(signal.SIGTERM)
    until(lambda: c.admin("GET", "/readyz").status == 503, what="readyz 503")
    c.signal(signal.SIGTERM)
    assert c.wait() == 0
    running.close()


def test_the_grace_bounds_the_drain(held, carpool, gate):
    c = carpool(shutdown_grace="300ms")
    running = c.client()
    running.ask("GET", held.url + "/held")
    gate.wait_for(1)
    c.signal(signal.SIGTERM)
    response = running.response()
    assert (response.status, response.keeps_alive()) == (503, False) and "stopping" in response.get("proxy-status")
    assert running.at_end()
    assert c.wait(10) == 0


@pytest.mark.parametrize("waits", ["for its answer", "in line"])
def test_streams_cut_by_the_end_are_told_where_no_byte_was_sent(held, carpool, gate, waits):
    c = carpool(shutdown_grace="300ms", pool={"size": 1, "wait_timeout": "60s"})
    with H2Client(c.address) as client:
        streams = [client.ask("/held", authority=held.authority) for _ in range(1 if waits == "for its answer" else 2)]
        gate.wait_for(1)
        c.signal(signal.SIGTERM)
        assert [client.response(stream).status for stream in streams] == [503] * len(streams)
        assert c.wait(10) == 0


def test_a_client_whose_long_answer_ends_after_term_is_served_once_more(long_responses, carpool):
    (o, gate), c = long_responses, carpool(shutdown_grace="60s", workers=2)
    clients, silent = [c.client() for _ in range(10)], [c.client() for _ in range(2)]
    for client in clients:
        client.ask("GET", o.url + "/long")
        assert client.head().keeps_alive() and client.exactly(9)
    until(lambda: c.metric("carpool_downstream_connections") == 12, what="the clients")
    c.signal(signal.SIGTERM)
    for client in silent:  # one on each loop, which closes it when it learns of the drain
        assert client.at_end()
    gate.open()
    for client in clients:
        assert client.exactly(14) == b"4\r\nhalf\r\n0\r\n\r\n"
    for client in clients[1:9]:
        response = client.request("POST", o.url + "/", body=b"x")
        assert (response.status, response.keeps_alive()) == (200, False)
        assert client.at_end()
    with pytest.raises(TimeoutError):
        clients[9].sock.settimeout(3)
        clients[9].sock.recv(1)
    clients[9].sock.settimeout(10)
    response = clients[9].request("POST", o.url + "/", body=b"x")
    assert (response.status, response.keeps_alive()) == (200, False)
    assert c.wait(15) == 0, "a client that asks nothing more holds the end up for a time, not for the whole grace"
    assert clients[0].at_end()


def test_during_the_drain_delay_requests_are_served_as_before(held, carpool):
    c = carpool(drain_delay="60s", shutdown_grace="60s")
    known = c.client()
    assert known.get(held.url + "/").keeps_alive()
    c.signal(signal.SIGTERM)
    until(lambda: c.admin("GET", "/readyz").status == 503, what="readyz 503")
    assert known.get(held.url + "/").status == 200
    with c.client() as late:
        assert late.get(held.url + "/").status == 200
    c.signal(signal.SIGTERM)
    assert c.wait() == 0


def test_after_the_end_nobody_listens(carpool):
    c = carpool()
    c.stop()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(c.address, 1)


def test_hup_and_usr1_leave_requests_alone(held, carpool, gate):
    c = carpool()
    with c.client() as running, c.client() as other:
        running.ask("GET", held.url + "/held")
        gate.wait_for(1)
        said = len(c.output)
        c.signal(signal.SIGHUP)
        until(lambda: any("reload" in line.lower() for line in c.output[said:]), what="a word about the reload")
        c.signal(signal.SIGUSR1)
        assert other.get(held.url + "/").status == 200
        gate.open()
        assert running.response().status == 200
    assert c.admin("GET", "/readyz").status == 200


def test_a_websocket_like_tunnel_does_not_hold_the_end_up(origin, carpool):
    def upgraded(exchange):
        exchange.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
        exchange.stream.more()
        return False
    o, c = origin(upgraded), carpool(shutdown_grace="300ms")
    with c.client() as client:
        client.ask("GET", o.url + "/", [("Connection", "Upgrade"), ("Upgrade", "x")])
        assert client.response().status == 101
        c.signal(signal.SIGTERM)
        assert c.wait(10) == 0
    assert cut_off(c) == [(101, "the proxy is stopping")]


@pytest.mark.parametrize("header", [False, True])
def test_a_client_that_never_asks_holds_the_end_up_for_a_moment_only(carpool, header):
    c = carpool(shutdown_grace="60s", listen={"proxy_protocol": True, "trusted": ["127.0.0.0/8"]} if header else {})
    with c.client() as client:
        until(lambda: c.metric("carpool_downstream_connections") == 1, what="the client's arrival")
        c.signal(signal.SIGTERM)
        assert client.at_end()
        assert c.wait() == 0


@pytest.mark.parametrize("workers", [1, 2])
def test_clients_that_connected_before_term_are_served_once(held, carpool, workers):
    c = carpool(shutdown_grace="60s", workers=workers)
    clients = [c.client() for _ in range(8)]
    until(lambda: c.metric("carpool_downstream_connections") == 8, what="their arrival")
    c.signal(signal.SIGTERM)
    until(lambda: c.admin("GET", "/readyz").status == 503, what="readyz 503")
    for client in clients:  # an idle client has a second
        client.ask("POST", held.url + "/", body=b"x")
    for client in clients:
        response = client.response("POST")
        assert (response.status, response.keeps_alive()) == (200, False)
        assert client.at_end()
    assert c.wait() == 0


@pytest.mark.parametrize("count", [8, 400])
def test_clients_that_wait_in_the_queue_of_the_system_are_served_once(held, carpool, count):
    c = carpool(shutdown_grace="60s", pool={"wait_timeout": "60s"})
    c.signal(signal.SIGSTOP)
    clients = [c.client() for _ in range(count)]
    for client in clients:
        client.ask("GET", held.url + "/")
    c.signal(signal.SIGTERM)
    c.signal(signal.SIGCONT)
    assert [client.response().status for client in clients] == [200] * count
    assert c.wait() == 0


def test_a_client_that_begins_tls_after_term_is_served_once(held, carpool, pki, files):
    c, context = carpool(shutdown_grace="60s", listen=files.settings()), trusting(pki)
    sock = socket.create_connection(c.address, 20)
    until(lambda: c.metric("carpool_downstream_connections") == 1, what="its arrival")
    c.signal(signal.SIGTERM)
    until(lambda: c.admin("GET", "/readyz").status == 503, what="readyz 503")
    with Client(sock=context.wrap_socket(sock, server_hostname="localhost")) as client:
        response = client.get(held.url + "/")
        assert (response.status, response.keeps_alive()) == (200, False)
    assert c.wait() == 0


@pytest.mark.parametrize("grace", ["60s", "200ms"])
def test_a_response_cut_off_by_the_end_does_not_look_complete(origin, carpool, gate, grace):
    def endless(exchange):
        exchange.send(b"HTTP/1.1 200 OK\r\n\r\nsome")
        gate.enter()
        return False
    o, c = origin(endless), carpool(shutdown_grace=grace)
    with c.client() as client:
        client.send(b"GET %s/ HTTP/1.0\r\n\r\n" % o.url.encode())
        assert client.head().status == 200
        assert client.exactly(4) == b"some"
        c.signal(signal.SIGTERM)
        if grace == "60s":
            until(lambda: c.admin("GET", "/readyz").status == 503, what="readyz 503")
            c.signal(signal.SIGTERM)
        with pytest.raises(ConnectionResetError):
            client.sock.recv(1)
        assert c.wait() == 0
    assert cut_off(c) == [(200, "the proxy is stopping")], "the client has not left"


def test_a_stream_whose_response_is_cut_off_by_the_end_is_logged_so(long_responses, carpool):
    o, c = long_responses[0], carpool(shutdown_grace="200ms")
    with H2Client(c.address) as client:
        stream = client.ask("/long", authority=o.authority)
        assert client.until(lambda: client.responses[stream].body == b"half")
        c.signal(signal.SIGTERM)
        assert c.wait() == 0
    assert cut_off(c) == [(200, "the proxy is stopping")]


def test_nobody_takes_over_from_a_process_that_drains(carpool, tmp_path):
    c = carpool(drain_delay="60s", handover={"address": "unix:%s" % (tmp_path / "h.sock")})
    c.signal(signal.SIGTERM)
    until(lambda: c.admin("GET", "/readyz").status == 503, what="readyz 503")
    done = subprocess.run([PROGRAM, "--config", c.config], capture_output=True, text=True, timeout=20)
    assert done.returncode == 2 and "it may be draining" in done.stderr
    c.signal(signal.SIGTERM)
    assert c.wait(10) == 0


def test_the_end_does_not_trip_over_authorities_that_are_still_being_read(carpool):
    slow = HangingFile()
    c = carpool(inside=["env", "SSL_CERT_FILE=" + slow.path])
    with c.client() as client:
        client.ask("GET", "https://127.0.0.1:%d/" % free_port())
        slow.wait_for_reader()
        c.signal(signal.SIGTERM)
        until(lambda: c.admin("GET", "/readyz").status == 503, what="readyz 503")
        c.signal(signal.SIGTERM)
        assert client.at_end()
        slow.end()
        assert c.wait() == 0
