"""Memory or descriptors run short: first connections are not kept, then new clients are refused, then idle connections
are closed."""
import collections
import contextlib
import json

import pytest
from harness.carpool import SANITIZED, TSAN
from harness.h2_client import H2Client
from harness.origin import Gate, Origin
from harness.wait import until


def overload(c):
    return c.get_json("/overload")


@pytest.fixture
def pressed(origin, carpool, pressure):
    """An origin, and a carpool whose memory is in use as far as the test presses."""
    c = carpool(listen={"idle_timeout": "120s"}, **pressure.settings())
    pressure.begin(c)
    yield origin(), c, pressure.press


@pytest.mark.skipif(TSAN, reason="what is resident is TSan's")
def test_it_sheds_in_order_and_comes_back(pressed, pressure):
    o, c, press = pressed
    with contextlib.ExitStack() as stack:
        known, idle_client = (stack.enter_context(c.client()) for _ in range(2))
        for client in (known, idle_client):
            assert client.get(o.url + "/").keeps_alive()
        assert overload(c)["shed_level"] == "nothing"

        press(87)
        until(lambda: overload(c)["shed_level"] == "keep_alive", what="the first stage")
        response = known.get(o.url + "/")
        assert (response.status, response.keeps_alive()) == (200, False)
        assert known.at_end()

        press(92)
        until(lambda: overload(c)["shed_level"] == "new_clients", what="the second stage")
        with c.client() as late:
            response = late.get(o.url + "/")
            assert (response.status, response.get("retry-after"), response.keeps_alive()) == (503, "1", False)
            assert "run short" in response.get("proxy-status")
        assert c.metric("carpool_overload_shed_total", what="new_clients") == 1
        assert c.metric("carpool_overload_stage") == 2
        assert 0.88 < c.metric("carpool_overload_used_ratio", resource="memory") < 0.96
        assert c.pool(o.url)["borrowable"] >= 1, "what rests is left alone until the last stage"

        press(99)
        until(lambda: overload(c)["shed_level"] == "idle", what="the last stage")
        assert idle_client.at_end()
        until(lambda: c.pool(o.url)["active"] == 0, what="the end of idle connections to the origin")
        assert c.metric("carpool_overload_shed_total", what="idle") == 1
        assert c.metric("carpool_pool_closed_total", origin=o.url, cause="budget") >= 1

        press(10)
        until(lambda: overload(c)["shed_level"] == "nothing", what="the end of it")
        with c.client() as back:
            assert back.get(o.url + "/").keeps_alive()
    pressure.end()

    def said():
        return [json.loads(line)["shed_level"] for line in list(c.output) if '"overload"' in line]
    until(lambda: len(said()) == 4, what="the last line of the log")
    assert said() == ["keep_alive", "new_clients", "idle", "nothing"]


def test_a_request_that_runs_is_finished_at_the_last_stage(origin, carpool, pressure):
    gate = Gate()

    def held(exchange):
        gate.enter()
        exchange.reply(body=b"x" * 100000)
    o, c = origin(held), carpool(**pressure.settings())
    pressure.begin(c)
    with c.client() as client:
        client.ask("GET", o.url + "/")
        gate.wait_for(1)
        pressure.press(99)
        until(lambda: overload(c)["shed_level"] == "idle", what="the last stage")
        gate.open()
        response = client.response()
        assert (response.status, len(response.body), response.keeps_alive()) == (200, 100000, False)
    pressure.end()


def test_idle_clients_make_room_before_descriptors_run_out(origin, carpool):
    """As many idle clients as there are descriptors: a new one is served or told to retry, never left waiting."""
    o, c = origin(), carpool(inside=["prlimit", "--nofile=128:128"])
    with contextlib.ExitStack() as stack:
        statuses = []
        for _ in range(200):
            client = stack.enter_context(c.client())
            statuses.append(client.get(o.url + "/").status)
            if statuses[-1] == 503:
                break
        # No stage is skipped, however fast the clients connect: above the first threshold each response ends its connection.
        assert statuses[-1] in (200, 503) and set(statuses[:-1]) == {200} and len(statuses) > 60
        assert overload(c)["shed_level"] != "nothing"
        for _ in range(20):  # clients that continue nevertheless
            stack.enter_context(c.client()).ask("GET", o.url + "/")
        until(lambda: overload(c)["descriptors"]["used"] < 110, what="room")
    until(lambda: overload(c)["shed_level"] == "nothing", what="the end of it")
    with c.client() as client:
        assert client.get(o.url + "/").status == 200


def test_the_marks_must_be_in_order(carpool):
    c = carpool(start=False, overload={"refuse_clients": 97})
    assert "overload.refuse_clients = 97 is more than overload.close_idle = 95" in c.check()


@pytest.mark.skipif(TSAN, reason="what is resident is TSan's")
def test_h2_clients_are_asked_to_go_and_new_ones_are_refused(pressed):
    o, c, press = pressed
    with H2Client(c.address) as known:
        assert known.get("/", authority=o.authority).status == 200
        press(92)
        until(lambda: overload(c)["shed_level"] == "new_clients", what="the second stage")
        assert known.get("/", authority=o.authority).status == 200
        assert known.until(lambda: known.goaways), "GOAWAY"
        with H2Client(c.address) as late:
            response = late.get("/", authority=o.authority)
            assert (response.status, response.get("retry-after")) == (503, "1")


@pytest.mark.skipif(SANITIZED, reason="a sanitizer keeps what was freed")
def test_what_a_burst_took_goes_back_to_the_kernel(carpool):
    o = Origin(host="0.0.0.0")
    c = carpool(pool={"expire_time": "3h", "total": {"max_origins": 1100, "origin_idle_timeout": "3h"}}, log={"access": False, "level": "debug"})
    with c.client() as client:
        for i in range(1000):
            assert client.get("http://127.0.%d.%d:%d/" % (1 + i // 250, 1 + i % 250, o.port)).status == 200
    most = c.rss()
    c.replace_config(c.config.read_text().replace('"3h"', '"1s"'))  # only now, so that all of them exist at a time
    assert c.admin("POST", "/reload").status == 200
    until(lambda: not c.get_json("/pools")["pools"], 30, "the end of the pools")
    until(lambda: overload(c)["heap"]["returned"] >= 4 << 20 and c.rss() < most - (4 << 20), 30, "memory on its way back")

    def heap_is_resident():  # the look at the heap is older than the one at resident memory while memory still goes back
        heap = overload(c)["heap"]
        return heap["used"] > 0 and heap["used"] + heap["free_bytes"] < c.rss() + (1 << 20)
    until(heap_is_resident, 30, "a heap within resident memory")
    assert c.metric("carpool_memory_returned_bytes_total") >= 4 << 20
    until(lambda: "unused memory returned" in c.tail(1000), what="a line of the log")
    o.stop()


def test_retries_stop_when_their_budget_is_spent(origin, carpool):
    asked = collections.Counter()

    def failing(exchange):
        asked[exchange.request.target] += 1
        if exchange.request.target.startswith("/bad"):
            return False  # ends without a byte, on a connection that has served as on a new one
        exchange.reply()
        return True
    o = origin(failing)
    c = carpool(pool={"size": 4, "max_streams": 4}, request={"retry_budget": 10})
    with c.client() as client:
        for i in range(60):
            assert client.get(o.url + "/good").status == 200
            assert client.get("%s/bad/%d" % (o.url, i)).status == 502
    twice = [i for i in range(60) if asked["/bad/%d" % i] == 2]
    assert twice[:10] == list(range(10)), "the bucket holds ten"
    assert len(twice) <= 10 + 120 * 0.1 + 1
    assert c.metric("carpool_retries_denied_total", origin=o.url) == 60 - len(twice) > 0
    assert c.metric("carpool_retries_total", origin=o.url, proof="idempotent_reused") == len(twice)


def test_an_origin_that_closes_without_a_word_is_not_noticed_however_often(origin, carpool):
    def restless(exchange):
        if exchange.nth > 1:
            return False  # every connection that has served ends without a byte
        exchange.reply()
        return True
    o = origin(restless)
    c = carpool(pool={"size": 4}, request={"retry_budget": 1})
    with c.client() as client:
        assert [client.get(o.url + "/").status for _ in range(200)] == [200] * 200
    assert c.metric("carpool_retries_denied_total", origin=o.url) == 0

