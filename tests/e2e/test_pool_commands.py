"""Operator commands to a pool, by the program's own subcommands: pause, resume, drain, reconnect, warm-up."""
import subprocess

import pytest

from harness.carpool import PROGRAM
from harness.wait import until


@pytest.fixture
def order():
    def say(c, *words):
        done = subprocess.run([PROGRAM, *words, "--admin", "%s:%d" % c.admin_address], capture_output=True, text=True, timeout=20)
        assert done.returncode == 0, done
        return done.stdout
    return say


def held(gate):
    def answer(exchange):
        if exchange.request.target.endswith("/held"):
            gate.enter()
        exchange.reply()
    return answer


def count(c, o, what, cause):
    return c.metric("carpool_pool_%s_total" % what, origin=o.url, cause=cause)


def test_a_pause_keeps_requests_and_a_resume_serves_them_all(origin, carpool, order):
    o, c = origin(), carpool(pool={"size": 2, "wait_timeout": "30s"})
    clients = [c.client() for _ in range(5)]
    assert clients[0].get(o.url + "/").status == 200
    assert "paused" in order(c, "pause", o.url)
    for client in clients:
        client.ask("GET", o.url + "/")
    until(lambda: c.pool(o.url)["waiting"] == 5, what="five who wait")
    assert "resumed" in order(c, "resume", o.url)
    assert [client.response().status for client in clients] == [200] * 5
    assert c.pool(o.url)["waiting"] == 0
    for client in clients:
        client.close()


def test_a_drain_closes_what_rests_at_once_and_what_is_lent_when_it_comes_back(origin, carpool, order, gate):
    o, c = origin(held(gate)), carpool(pool={"size": 4})
    with c.client() as one, c.client() as other:
        one.ask("GET", o.url + "/held")
        gate.wait_for(1)
        assert other.get(o.url + "/").status == 200
        assert (c.pool(o.url)["borrowed"], c.pool(o.url)["borrowable"]) == (1, 1)
        assert "draining" in order(c, "drain", o.url)
        until(lambda: count(c, o, "closed", "drained") == 1, what="the end of what rested")
        assert c.pool(o.url)["active"] == 1, "the other is lent"
        gate.open()
        assert one.response().status == 200, "its request is finished"
        until(lambda: count(c, o, "closed", "drained") == 2, what="its end")
        order(c, "resume", o.url)
        assert other.get(o.url + "/").status == 200


def test_a_reconnect_replaces_every_connection_and_no_request_notices(origin, carpool, order, gate):
    o, c = origin(held(gate)), carpool(pool={"size": 4})
    with c.client() as one, c.client() as other:
        one.ask("GET", o.url + "/held")
        gate.wait_for(1)
        assert other.get(o.url + "/").status == 200
        order(c, "reconnect", o.url)
        gate.open()
        assert one.response().status == 200
        until(lambda: count(c, o, "closed", "reconnect") == 2, what="two replaced")
        assert other.get(o.url + "/").status == 200
        assert count(c, o, "opened", "reconnect") >= 1


def test_a_warm_up_opens_what_was_ordered(origin, carpool, order):
    o, c = origin(), carpool()
    assert "opened 3" in order(c, "warm-up", o.url, "--size", "3")
    assert c.pool(o.url)["borrowable"] == 3 and count(c, o, "opened", "warm_up") == 3
