"""An origin's own rates: requests a second, and connections a second, over all loops."""
import ssl
import threading
import time

import pytest
from harness.origin import Gate
from harness.wait import until


def refused_for_rate(response):
    return (response.status == 429 and response.get("retry-after") == "1"
            and response.get("proxy-status").startswith("carpool; error=http_request_denied; details="))


def after(seconds):
    """Returns when the time has passed. A rate grants at least as much then, however long it takes to ask."""
    end = time.monotonic() + seconds
    until(lambda: time.monotonic() >= end, seconds + 5, "the time")


def until_refused(client, url):
    """Requests that follow one another until one is refused; returns it."""
    return until(lambda: (response := client.get(url)).status != 200 and response, what="a refusal")


def test_requests_over_the_rate_are_429_and_cost_the_origin_nothing(origin, carpool):
    o, other = origin(), origin()
    c = carpool(origin=[{"uri": o.url, "request": {"rate": 2, "rate_burst": 3}}], workers=2)
    with c.client() as client:
        began = time.monotonic()
        responses = [client.get(o.url + "/") for _ in range(40)]
        most = 3 + 2 * (time.monotonic() - began) + 1
        good = [a for a in responses if a.status == 200]
        assert [a.status for a in responses[:3]] == [200] * 3 and len(good) <= most and len(o.seen) == len(good)
        assert all(refused_for_rate(a) for a in responses if a.status != 200)
        assert [client.get(other.url + "/").status for _ in range(20)] == [200] * 20, "others have their own"
        assert refused_for_rate(until_refused(client, o.url + "/"))
        after(0.5)
        assert client.get(o.url + "/").status == 200, "one more in half a second"
    assert c.metric("carpool_rate_limited_total", origin=o.url, limit="requests") == c.metric(
        "carpool_requests_total", origin=o.url, code="429") >= 40 - len(good)
    assert c.metric("carpool_rate_limited_total", origin=other.url) == 0
    assert c.pool(o.url)["rate_limited"]["requests"] == c.metric("carpool_rate_limited_total", origin=o.url)
    until(lambda: any("request.rate" in line.get("fault", "") for line in c.access_log()), what="a line that names the rate")


def test_the_burst_and_the_rate_are_one_for_all_loops(origin, carpool):
    o = origin()
    c = carpool(origin=[{"uri": o.url, "request": {"rate": 4, "rate_burst": 60}}], workers=4)
    clients = [c.client() for _ in range(8)]  # two on each loop
    statuses = []

    def ask(client):
        for _ in range(20):
            statuses.append(client.get(o.url + "/").status)
    began = time.monotonic()
    threads = [threading.Thread(target=ask, args=(client,)) for client in clients]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    most = 60 + 4 * (time.monotonic() - began) + 1
    assert 60 <= statuses.count(200) <= most, (statuses.count(200), most, len(statuses))
    for client in clients[:4]:  # one on each loop: the whole rate is that of the loop that asks
        until_refused(client, o.url + "/")
        after(0.25)
        assert client.get(o.url + "/").status == 200
    for client in clients:
        client.close()


def test_a_reload_changes_the_rate(origin, carpool):
    o = origin()
    c = carpool(origin=[{"uri": o.url, "request": {"rate": 1}}])
    with c.client() as client:
        assert client.get(o.url + "/").status == 200
        assert until_refused(client, o.url + "/").status == 429
        c.config.write_text(c.config.read_text().replace("rate = 1", "rate = 0"))
        assert c.admin("POST", "/reload").status == 200
        assert [client.get(o.url + "/").status for _ in range(20)] == [200] * 20


def all_at_once(c, o, count):
    """Returns clients whose requests begin together, and when: they waited for an operator, who paused the origin's pool."""
    clients = [c.client() for _ in range(count)]
    pool = "/pools/" + o.url.replace(":", "%3A").replace("/", "%2F")
    assert clients[0].get(o.url + "/").status == 200
    assert c.admin("POST", pool + "/pause").status == 200
    for client in clients:
        client.ask("GET", o.url + "/")
    until(lambda: c.pool(o.url)["waiting"] == count, what="all of them in the queue")
    after(1)  # the first request's place in the rate is free again
    began = time.monotonic()
    assert c.admin("POST", pool + "/resume").status == 200
    return clients, began


def test_dials_over_the_rate_wait_for_their_turn(origin, carpool):
    o = origin()
    c = carpool(pool={"max_usage": 1, "connect_rate": 10, "connect_burst": 1, "wait_timeout": "20s"})
    clients, began = all_at_once(c, o, 11)
    for client in clients:
        assert client.response().status == 200
        client.close()
    assert time.monotonic() - began >= 0.99, "ten intervals of 100 ms"
    assert c.metric("carpool_rate_limited_total", origin=o.url, limit="connections") >= 9
    assert c.pool(o.url)["rate_limited"]["connections"] >= 9


def test_a_dial_that_could_not_begin_in_time_is_429(origin, carpool):
    o = origin()
    c = carpool(pool={"max_usage": 1, "connect_rate": 1, "wait_timeout": "200ms"})
    with c.client() as client:
        assert client.get(o.url + "/").status == 200
        response = until_refused(client, o.url + "/")
        assert refused_for_rate(response) and "pool.connect_rate" in response.get("proxy-status"), response
        opened = o.opened
        after(1)
        assert client.get(o.url + "/").status == 200, "the next second"
    assert o.opened == opened + 1, "who was refused took nobody's turn"


def test_a_dropped_dial_refuses_nobody_whom_another_serves(origin, carpool, pki):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pki.server, pki.server_key)
    o = origin(tls=context)
    c = carpool(pool={"connect_rate": 1, "wait_timeout": "5s"}, workers=2, upstream={"tls": {"ca_file": pki.ca}})
    clients = [c.client() for _ in range(8)]
    assert clients[0].get(o.url + "/").status == 200
    assert c.admin("POST", c.pool_path(o.url) + "/drain").status == 200
    for client in clients:
        client.ask("GET", o.url + "/")
    until(lambda: c.pool(o.url)["waiting"] == 8, what="all of them in the queue")
    after(1.1)  # the first connection is forgotten, and its place in the rate is free again
    assert c.admin("POST", c.pool_path(o.url) + "/resume").status == 200
    assert [client.response().status for client in clients] == [200] * 8
    assert not c.pool(o.url)["probing"] and c.pool(o.url)["rate_limited"]["connections"] > 3, "some were dropped"
    for client in clients:
        client.close()


@pytest.mark.parametrize("workers", [1, 2])
def test_the_cap_and_the_ledger_hold_while_dials_wait(origin, carpool, workers):
    gate = Gate()

    def held(exchange):
        gate.enter()
        exchange.reply()
    o = origin(held)
    c = carpool(pool={"size": 4, "connect_rate": 1, "connect_burst": 1, "wait_timeout": "30s"}, workers=workers)
    clients = [c.client() for _ in range(12)]
    for client in clients:
        client.ask("GET", o.url + "/")
    gate.wait_for(1)
    shown = until(lambda: (now := c.pool(o.url))["waiting"] + now["connections"]["borrowed"] == 12 and now, what="the others in the queue")
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
    c = carpool(pool={"max_usage": 1, "connect_rate": 1, "wait_timeout": "60s", "min_idle": 60}, shutdown_grace="1s")
    with c.client() as client:
        assert client.get(o.url + "/").status == 200
    until(lambda: c.pool(o.url)["connections"]["connecting"] >= 30, what="dials that wait, the last one for a minute")
    c.stop()  # within twenty seconds
