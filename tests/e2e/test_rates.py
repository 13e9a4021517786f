"""An origin's own rates: requests a second, and connections a second, over all loops."""
import threading
import time

import pytest
from harness.origin import Gate
from harness.wait import until


def refused_for_rate(response):
    return (response.status == 429 and response.get("retry-after") == "1"
            and response.get("proxy-status").startswith("carpool; error=http_request_denied; details="))


def test_requests_over_the_rate_are_429_and_cost_the_origin_nothing(origin, carpool):
    o, other = origin(), origin()
    c = carpool(origin=[{"uri": o.url, "request": {"rate": 5, "rate_burst": 3}}], workers=2)
    with c.client() as client:
        began = time.monotonic()
        responses = [client.get(o.url + "/") for _ in range(40)]
        most = 3 + 5 * (time.monotonic() - began) + 1
        good = [a for a in responses if a.status == 200]
        assert 3 <= len(good) <= most and len(o.seen) == len(good)
        assert all(refused_for_rate(a) for a in responses if a.status != 200)
        assert [client.get(other.url + "/").status for _ in range(20)] == [200] * 20, "others have their own"
        until(lambda: client.get(o.url + "/").status == 200, 2, "one more within a second")
    assert c.metric("carpool_rate_limited_total", origin=o.url, limit="requests") == c.metric(
        "carpool_requests_total", origin=o.url, code="429") >= 40 - len(good)
    assert c.metric("carpool_rate_limited_total", origin=other.url) == 0
    assert c.pool(o.url)["rate_limited"]["requests"] == c.metric("carpool_rate_limited_total", origin=o.url)
    assert any("request.rate" in line.get("fault", "") for line in c.access_log())


def test_the_rate_is_one_for_all_loops(origin, carpool):
    o = origin()
    c = carpool(origin=[{"uri": o.url, "request": {"rate": 100, "rate_burst": 10}}], workers=4)
    end = time.monotonic() + 2
    statuses = []

    def ask():
        with c.client() as client:
            while time.monotonic() < end:
                statuses.append(client.get(o.url + "/").status)
    began = time.monotonic()
    threads = [threading.Thread(target=ask) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    most = 10 + 100 * (time.monotonic() - began) + 1
    assert most / 2 <= statuses.count(200) <= most, (statuses.count(200), most, len(statuses))


def test_a_reload_changes_the_rate(origin, carpool):
    o = origin()
    c = carpool(origin=[{"uri": o.url, "request": {"rate": 1}}])
    with c.client() as client:
        assert [client.get(o.url + "/").status for _ in range(3)][1:] == [429, 429]
        c.config.write_text(c.config.read_text().replace("rate = 1", "rate = 0"))
        assert c.admin("POST", "/reload").status == 200
        assert [client.get(o.url + "/").status for _ in range(20)] == [200] * 20


def test_dials_over_the_rate_wait_for_their_turn(origin, carpool):
    o = origin()
    c = carpool(pool={"max_usage": 1, "connect_rate": 10, "connect_burst": 1})
    with c.client() as client:
        began = time.monotonic()
        assert [client.get(o.url + "/").status for _ in range(11)] == [200] * 11
        assert time.monotonic() - began >= 0.99, "ten intervals of 100 ms"
    assert c.metric("carpool_rate_limited_total", origin=o.url, limit="connections") >= 9
    assert c.pool(o.url)["rate_limited"]["connections"] >= 9


def test_a_dial_that_could_not_begin_in_time_is_429(origin, carpool):
    o = origin()
    c = carpool(pool={"max_usage": 1, "connect_rate": 1, "wait_timeout": "200ms"})
    with c.client() as client:
        assert client.get(o.url + "/").status == 200
        response = client.get(o.url + "/")
        assert refused_for_rate(response) and "pool.connect_rate" in response.get("proxy-status"), response
        until(lambda: client.get(o.url + "/").status == 200, 3, "the next second")
    assert o.opened <= 3


@pytest.mark.parametrize("workers", [1, 2])
def test_the_cap_and_the_ledger_hold_while_dials_wait(origin, carpool, workers):
    gate = Gate()

    def held(exchange):
        gate.enter()
        exchange.reply()
    o = origin(held)
    c = carpool(pool={"size": 4, "connect_rate": 5, "connect_burst": 1, "wait_timeout": "20s"}, workers=workers)
    clients = [c.client() for _ in range(12)]
    for client in clients:
        client.ask("GET", o.url + "/")
    gate.wait_for(1)
    shown = c.pool(o.url)
    assert sum(shown["connections"].values()) == 4 and shown["connections"]["connecting"] >= 1
    gate.wait_for(4)
    shown = c.pool(o.url)
    assert sum(shown["opened"].values()) - sum(shown["closed"].values()) == sum(shown["connections"].values()) == 4
    gate.open()
    for client in clients:
        assert client.response().status == 200
        client.close()
    assert o.peak == 4 and c.pool(o.url)["waiting"] == 0


def test_what_waits_for_its_turn_does_not_hold_up_the_end(origin, carpool):
    o = origin()
    c = carpool(pool={"max_usage": 1, "connect_rate": 1, "wait_timeout": "60s", "min_idle": 8}, shutdown_grace="1s")
    with c.client() as client:
        assert client.get(o.url + "/").status == 200
    until(lambda: c.pool(o.url)["connections"]["connecting"] >= 2, what="dials that wait")
    began = time.monotonic()
    c.stop()
    assert time.monotonic() - began < 5
