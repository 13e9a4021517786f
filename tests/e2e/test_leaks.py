"""Leases held for too long: reported once, with the borrower, and ended if configured."""
import os
import socket

from harness.wait import until
from harness.wire import Client, Gone

import pytest


def holder(gate):
    def handler(exchange):
        exchange.read_body()
        if exchange.request.target.startswith("/slow"):
            gate.enter()
        exchange.reply()
    return handler


def leaks(c):
    return c.get_json("/leaks")["leaks"]


def test_a_borrow_that_lasts_too_long_is_reported_once_with_its_borrower(origin, carpool, gate):
    o = origin(holder(gate))
    c = carpool(pool={"leak_timeout": "200ms"})
    assert leaks(c) == []
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    with c.client() as client:
        client.ask("POST", o.url + "/slow?token=hush", [("traceparent", "00-%s-00f067aa0ba902b7-01" % trace)], body=b"12345")
        until(lambda: leaks(c), what="the report")
        until(lambda: leaks(c)[0]["age_seconds"] > 0.6, what="more time")
        found = leaks(c)
        assert len(found) == 1
        leak = found[0]
        assert (leak["kind"], leak["origin"], leak["action"], leak["returned"]) == ("held", o.url, "report", False)
        who = leak["borrower"]
        assert who["request"] == "POST %s/slow?token=***" % o.url
        assert who["client"] == "127.0.0.1:%d" % client.sock.getsockname()[1]
        assert (who["trace_id"], who["bytes_in"], who["bytes_out"], who["uid"]) == (trace, 5, 0, os.getuid())
        assert who["pid"] in (None, os.getpid())  # /proc is read after the first question
        assert who["phase"] == "waiting for the response head"
        assert c.metric("carpool_pool_leaks_total", origin=o.url) == 1
        rows = c.get_json("/pools/%s/connections" % o.url.replace("/", "%2F"))["connections"]
        assert rows[0]["id"] == leak["connection"] and rows[0]["borrower"].startswith(who["request"])
        gate.open()
        assert client.response().status == 200
    assert leaks(c)[0]["returned"] is True and leaks(c)[0]["age_seconds"] > 0.6
    until(lambda: sum("held longer than leak_timeout" in line for line in list(c.output)) == 1, what="its line in the log")


def test_a_client_on_a_unix_socket_is_named_by_its_process(origin, carpool, gate, tmp_path):
    o = origin(holder(gate))
    path = str(tmp_path / "proxy.sock")
    c = carpool(listeners=[{"address": "unix:" + path}], pool={"leak_timeout": "100ms"})
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(path)
    sock.sendall(b"GET %s/slow HTTP/1.1\r\nHost: x\r\n\r\n" % o.url.encode())
    until(lambda: leaks(c), what="the report")
    who = leaks(c)[0]["borrower"]
    assert (who["pid"], who["uid"]) == (os.getpid(), os.getuid())
    gate.open()
    assert sock.recv(100).startswith(b"HTTP/1.1 200")
    sock.close()


def test_leak_action_discard_ends_the_connection_and_the_ledger_balances(origin, carpool, gate):
    o = origin(holder(gate))
    c = carpool(pool={"leak_timeout": "1s", "leak_action": "discard"})
    with c.client() as client:
        response = client.get(o.url + "/slow")
        assert response.status == 504 and "leak_timeout" in response.get("proxy-status")
    assert c.metric("carpool_pool_closed_total", origin=o.url, cause="leak") == 1
    assert c.metric("carpool_pool_leaks_total", origin=o.url) == 1
    row = c.pool(o.url)
    assert row["borrows"] == row["restores"] == 1
    assert sum(row["opened"].values()) - sum(row["closed"].values()) == sum(row["connections"].values()) == 0
    with c.client() as client:
        assert client.get(o.url + "/").status == 200


def test_a_response_that_leaks_half_way_never_looks_complete(origin, carpool, gate):
    def half(exchange):
        exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345")
        gate.enter()
    o = origin(half)
    c = carpool(pool={"leak_timeout": "1s", "leak_action": "discard"})
    with c.client() as client:
        client.ask("GET", o.url + "/")
        with pytest.raises((Gone, ConnectionError, AssertionError)):
            assert client.response().complete
    assert c.metric("carpool_pool_closed_total", origin=o.url, cause="leak") == 1


def test_what_comes_back_in_time_is_no_leak(origin, carpool):
    o, c = origin(), carpool(pool={"leak_timeout": "30s"})
    with c.client() as client:
        for _ in range(5):
            assert client.get(o.url + "/").status == 200
    assert leaks(c) == [] and c.metric("carpool_pool_leaks_total", origin=o.url) == 0
