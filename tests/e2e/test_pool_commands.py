"""Operator commands to a pool, by the program's own subcommands: pause, resume, drain, reconnect, warm-up."""
import signal
import subprocess

import pytest

from harness.carpool import PROGRAM
from harness.origin import held
from harness.wait import until


@pytest.fixture
def order():
    def say(c, *words, stderr=False):
        done = subprocess.run([PROGRAM, *words, "--admin", "%s:%d" % c.admin_address], capture_output=True, text=True, timeout=20)
        assert done.returncode == 0, done
        return (done.stdout, done.stderr) if stderr else done.stdout
    return say


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


def test_a_pause_is_seen_everywhere_and_its_clients_are_told(origin, carpool, order):
    o, c = origin(), carpool(pool={"wait_timeout": "1s"})
    with c.client() as client:
        assert client.get(o.url + "/").status == 200
        assert c.metric("carpool_pool_paused", origin=o.url) == 0
        order(c, "pause", o.url)
        refused = client.get(o.url + "/")
        assert refused.status == 503
        assert refused.get("proxy-status") == 'carpool; error=connection_limit_reached; details="paused by an operator"'
        pool = c.pool(o.url)
        assert (pool["paused"], pool["draining"], pool["resumes_in_seconds"]) == (True, False, None)
        assert c.metric("carpool_pool_paused", origin=o.url) == 1
        assert c.get_json("/readyz")["paused"] == [o.url]
        assert "An operator paused the origin" in c.get_json(c.pool_path(o.url) + "/explain")["explanation"][0]
        assert all(" paused\n" in order(c, *words) for words in (("top", "--once"), ("pools",)))
        until(lambda: any(row.get("fault") == "paused by an operator" for row in c.access_log()), what="its line in the log")
        order(c, "resume", o.url)
        assert client.get(o.url + "/").status == 200
    assert c.pool(o.url)["paused"] is False and c.metric("carpool_pool_paused", origin=o.url) == 0


def test_commands_are_answered_while_carpool_drains(origin, carpool, order):
    o, c = origin(), carpool(shutdown_grace="30s", pool={"wait_timeout": "30s"})
    with c.client() as client, c.client() as upload:  # its request lasts longer than the commands
        assert client.get(o.url + "/").status == 200
        order(c, "pause", o.url)
        client.ask("GET", o.url + "/")
        host = o.url.removeprefix("http://")
        upload.send(b"POST %s/ HTTP/1.1\r\nHost: %s\r\nContent-Length: 5\r\n\r\nab" % (o.url.encode(), host.encode()))
        until(lambda: c.pool(o.url)["waiting"] == 1, what="a request that waits")
        c.signal(signal.SIGTERM)
        until(lambda: c.admin("GET", "/readyz").status == 503, what="readyz 503")
        refused = c.admin("POST", c.pool_path(o.url) + "/warm-up")
        assert refused.status == 503 and b"carpool is draining" in refused.body
        assert "paused" in order(c, "pause", o.url, "--for", "20s")
        assert "resumed" in order(c, "resume", o.url)
        assert client.response().status == 200
        upload.send(b"cde")
        assert upload.response().status == 200
    assert c.wait() == 0


def test_a_pause_with_an_end_ends_by_itself_and_says_so(origin, carpool, order):
    o, c = origin(), carpool(pool={"wait_timeout": "30s"})
    with c.client() as client:
        assert client.get(o.url + "/").status == 200
        order(c, "drain", o.url, "--for", "10m")
        shown = c.pool(o.url)
        assert 0 < shown["resumes_in_seconds"] <= 600 and shown["draining"]
        out, said = order(c, "drain", o.url, "--for", "1500ms", stderr=True)
        assert "borrowed ones when they are returned" in said and "1500ms" in said, "what it does is said before"
        assert "resumes_in 1.5 s" in " ".join(out.split()), "a repeated command replaces the end"
        client.ask("GET", o.url + "/")
        assert client.response().status == 200
    assert c.pool(o.url)["paused"] is False
    until(lambda: any("the operator's pause has ended" in line and o.url in line for line in list(c.output)), what="the line that says so")


def test_a_pause_outlives_a_reload_that_gives_the_origin_a_new_pool(origin, carpool, order):
    o, c = origin(), carpool()
    with c.client() as client:
        assert client.get(o.url + "/").status == 200
        order(c, "pause", o.url, "--for", "10m")
        c.config.write_text(c.config.read_text() + '\n[[origin]]\nuri = "%s"\n[origin.upstream]\nlenient = ["bare_lf"]\n' % o.url)
        assert c.admin("POST", "/reload").status == 200
        both = [pool for pool in c.get_json("/pools")["pools"] if pool["origin"] == o.url]
        assert len(both) == 2 and all(pool["paused"] and pool["resumes_in_seconds"] > 500 for pool in both)
        order(c, "resume", o.url)
        assert client.get(o.url + "/").status == 200


def test_a_declared_origin_without_a_request_is_shown_and_can_be_paused(origin, carpool, order):
    o = origin()
    c = carpool(origin=[{"uri": o.url, "pool": {"size": 3}}], pool={"wait_timeout": "30s"})
    pool = c.get_json(c.pool_path(o.url))
    assert (pool["size"], pool["active"], pool["paused"]) == (3, 0, False)
    order(c, "pause", o.url)
    assert c.pool(o.url)["paused"] is True
    with c.client() as client:
        client.ask("GET", o.url + "/")
        until(lambda: c.pool(o.url)["waiting"] == 1, what="one who waits")
        order(c, "resume", o.url)
        assert client.response().status == 200


def test_a_drain_closes_what_rests_at_once_and_what_is_lent_when_it_comes_back(origin, carpool, order, gate):
    o, c = origin(held(gate)), carpool(pool={"size": 4})
    with c.client() as one, c.client() as other:
        one.ask("GET", o.url + "/held")
        gate.wait_for(1)
        assert other.get(o.url + "/").status == 200
        assert (c.pool(o.url)["borrowed"], c.pool(o.url)["borrowable"]) == (1, 1)
        assert "draining; `carpool resume ORIGIN` ends it" in order(c, "drain", o.url)
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
    assert "opened 3" in " ".join(order(c, "warm-up", o.url, "--size", "3").split())
    assert c.pool(o.url)["borrowable"] == 3 and count(c, o, "opened", "warm_up") == 3
