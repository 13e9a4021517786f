"""Connections before the first request: at start, by an operator's command, and min_idle."""
import json
import subprocess
import threading
import time

import pytest

from harness.carpool import PROGRAM, Carpool
from harness.blackhole import BlackholeServer
from harness.ports import free_port
from harness.wait import until


def order(c, url, query=""):
    response = c.admin("POST", "/pools/%s/warm-up%s" % (url.replace("/", "%2F"), query))
    return response.status, json.loads(response.body)


def warm(o, **more):
    return {"uri": o if isinstance(o, str) else o.url, "pool": dict({"warm_up": {"enabled": True, "size": 3}}, **more)}


def test_configured_origins_are_warm_when_carpool_is_ready(origin, carpool):
    o = origin()
    c = carpool(origin=[warm(o)])
    row = c.pool(o.url)
    assert (row["borrowable"], row["opened"]["warm_up"]) == (3, 3)
    until(lambda: o.opened == 3, what="the origin's view of it")
    with c.client() as client:
        assert client.get(o.url + "/").status == 200
    assert o.opened == 3


def test_an_origin_that_refuses_is_named_and_tried_again_and_blocks_nothing(carpool, origin):
    port = free_port()
    url = "http://127.0.0.1:%d" % port
    c = carpool(origin=[warm(url)])
    ready = c.get_json("/readyz")
    assert ready["status"] == "ready" and ready["warm_up_failed"][0].startswith(url + ": ")
    assert c.metric("carpool_pool_opened_total", origin=url, cause="warm_up") < 3, "one failure for each try, not three"
    o = origin(port=port)
    until(lambda: c.pool(o.url)["borrowable"] == 3, what="the next try")
    until(lambda: c.get_json("/readyz") == {"status": "ready"}, what="no more complaint")


def test_an_origin_that_never_answers_delays_the_start_by_connect_timeout_at_most(tmp_path):
    blackhole = BlackholeServer()
    url = "http://" + blackhole.authority
    c = Carpool(tmp_path, start=False, origin=[warm(url, connect_timeout="700ms")])
    began = time.monotonic()
    try:
        c.start()
        assert 0.6 < time.monotonic() - began < 5
        assert c.get_json("/readyz")["warm_up_failed"][0].startswith(url)
    finally:
        c.stop()
        blackhole.stop()


def test_a_warm_up_on_order_makes_the_pool_and_answers_how_many_were_made(origin, carpool):
    o, c = origin(), carpool()
    assert order(c, o.url, "?size=4") == (200, {"opened": 4, "made": 4, "failure": None, "requested": 4, "capped_at": None})
    assert c.pool(o.url)["borrowable"] == 4
    until(lambda: o.opened == 4, what="the origin's view of it")
    assert order(c, o.url, "?size=4") == (200, {"opened": 0, "made": 0, "failure": None, "requested": 4, "capped_at": None}), "they are there"
    assert order(c, o.url, "?size=1000000")[0] == 400


@pytest.mark.parametrize("size, most", [(3, 3), ("auto", 4)])
def test_a_warm_up_of_more_than_the_pool_may_have_says_that_it_is_capped(origin, carpool, size, most):
    o, c = origin(), carpool(pool={"size": size, **({"max_size": 5} if size == "auto" else {})})
    for opened in (most, 0):  # an automatic size begins with four
        done = subprocess.run([PROGRAM, "warm-up", o.url, "--size", "20", "--admin", "%s:%d" % c.admin_address], capture_output=True, text=True, timeout=20)
        assert done.returncode == 0, done
        assert done.stdout == "opened     %d\nfailure    -\ncapped_at  %d, the size of the pool now: 20 were requested\n" % (opened, most)
    assert order(c, o.url, "?size=20")[1]["capped_at"] == most


def test_a_warm_up_that_fails_answers_the_first_failure(carpool):
    url = "http://127.0.0.1:%d" % free_port()
    c = carpool()
    status, said = order(c, url, "?size=5")
    assert status == 502 and said["opened"] == 0 and "refused" in said["failure"].lower()
    assert c.metric("carpool_pool_failures_total", origin=url, reason="refused") == 1


def test_the_admin_endpoint_answers_others_while_a_warm_up_hangs(carpool):
    blackhole, responses = BlackholeServer(), []
    url = "http://" + blackhole.authority
    c = carpool(pool={"connect_timeout": "2s"})
    asker = threading.Thread(target=lambda: responses.append(order(c, url)))
    asker.start()
    until(lambda: c.metric("carpool_pool_connections", origin=url, state="connecting") == 1, what="the dial")
    assert c.get_json("/livez")["status"] == "live" and not responses
    asker.join(10)
    assert responses[0][0] == 502
    blackhole.stop()


def test_egress_rules_hold_for_warm_ups(origin, carpool):
    o, c = origin(), carpool(egress={"deny": ["127.0.0.0/8"]})
    assert order(c, o.url)[0] == 403
    assert c.get_json("/pools")["pools"] == []


def test_min_idle_is_there_at_start_and_opened_again_when_the_origin_closes(origin, carpool):
    o = origin()
    c = carpool(origin=[{"uri": o.url, "pool": {"min_idle": 2}}])
    assert c.pool(o.url)["borrowable"] == 2
    until(lambda: o.opened == 2, what="the origin's view of it")
    o.close_connections()
    until(lambda: o.opened == 4 and c.pool(o.url)["borrowable"] == 2, what="two new ones")
    assert c.pool(o.url)["opened"]["min_idle"] == 2
    assert any("min_idle (now 2)" in s for s in c.get_json("/pools/%s/explain" % o.url.replace("/", "%2F"))["explanation"])
