"""Unused pools end: max_origins bounds those in use, sums continue, and a request that arrives at that moment is served."""
import random
import threading
import time

from harness.h2_origin import H2Origin
from harness.origin import hello
from harness.wait import until


def test_a_pool_that_nobody_uses_makes_room_for_another_origin(origin, carpool):
    a, b, d = origin(hello), origin(hello), origin(hello)
    c = carpool(pool={"total": {"max_origins": 2, "origin_idle_timeout": "3s"}})
    with c.client() as client:
        assert [client.get(o.url + "/").status for o in (a, b)] == [200, 200]
        assert c.metric("carpool_pool_origins") == c.metric("carpool_pool_origins_max") == 2
        opened = c.metric("carpool_pool_opened_total")
        until(lambda: c.metric("carpool_pool_reclaimed_total") == 2, what="two pools reclaimed")
        assert c.get_json("/pools")["pools"] == []
        assert client.get(d.url + "/").status == 200
        assert client.get(a.url + "/").status == 200, "and one that ended begins again"
    assert c.metric("carpool_pool_opened_total") == opened + 2, "sums go on"
    assert c.metric("carpool_pool_opened_total", origin="other") == 2
    assert c.metric("carpool_pool_borrows_total") == c.metric("carpool_pool_restores_total") == 4


def test_a_new_origin_takes_the_place_of_the_one_that_was_used_least_recently(origin, carpool, gate):
    def held(exchange):
        if exchange.request.target == "/held":
            gate.enter()
        exchange.reply()
    origins = [origin(held) for _ in range(3)]
    a, b, d = origins
    c = carpool(pool={"total": {"max_origins": 2}})
    with c.client() as client, c.client() as first, c.client() as second:
        assert [client.get(o.url + "/").status for o in origins] == [200, 200, 200]
        assert {row["origin"] for row in c.get_json("/pools")["pools"]} >= {b.url, d.url}
        first.ask("GET", b.url + "/held")
        second.ask("GET", d.url + "/held")
        gate.wait_for(2)
        refused = client.get(a.url + "/")
        assert refused.status == 503 and "no pool left for another origin" in refused.get("proxy-status"), "both are in use"
        gate.open()
        assert first.response().status == second.response().status == 200
    assert c.metric("carpool_pool_evicted_total") == 1


def test_a_pool_with_an_idle_session_makes_room_too(carpool, request):
    origins = [H2Origin() for _ in range(3)]
    for o in origins:
        request.addfinalizer(o.stop)
    c = carpool(pool={"total": {"max_origins": 2}}, upstream={"protocols": ["h2"]})
    with c.client() as client:
        assert [client.get(o.url + "/").status for o in origins] == [200, 200, 200]
    assert c.metric("carpool_pool_evicted_total") == 1
    assert c.metric("carpool_pool_connections", state="idle") == 2, "the second one keeps its session"


def test_an_origin_whose_pool_was_just_replaced_takes_the_place_of_another(origin, carpool):
    a, b, d = [origin(hello) for _ in range(3)]
    c = carpool(pool={"total": {"max_origins": 2}})
    with c.client() as client:
        for n in range(3):
            assert [client.get(o.url + "/").status for o in (a, b, d)] == [200, 200, 200]
    assert c.metric("carpool_pool_evicted_total") == 7


def test_a_request_that_stalls_keeps_no_pool_but_its_own(origin, carpool):
    slow, other = origin(hello, host="0.0.0.0"), origin(hello)
    c = carpool(workers=2, pool={"connect_timeout": "1s", "total": {"max_origins": 4}})
    with c.client() as stalled, c.client() as client:
        stalled.ask("POST", slow.url + "/", [("Content-Length", "5")])
        stalled.send(b"abc")
        until(lambda: c.metric("carpool_pool_origins") == 1, what="the pool of the request")
        for some in (range(1, 61), range(61, 121), range(121, 181)):  # at most 128 may leave at a time
            for n in some:
                assert client.get("http://127.1.%d.9:1/" % n).status == 502
            until(lambda: c.metric("carpool_pool_reclaimed_total") >= some[-1] - 4, what="the end of the other pools")
        assert client.get(other.url + "/").status == 200
        stalled.send(b"de")
        assert stalled.response("POST").status == 200, "its pool was replaced meanwhile"


def test_names_that_lead_nowhere_take_no_place_of_a_configured_origin(origin, carpool):
    a, b, other = origin(hello), origin(hello), origin(hello)
    c = carpool(workers=2, pool={"connect_timeout": "1s", "total": {"max_origins": 60}}, metrics={"max_origins": 20},
                origin=[{"uri": a.url, "alias": ["api"]}, {"uri": b.url}])
    with c.client() as client:
        for n in range(1, 101):
            assert client.get("http://127.1.%d.9:1/" % n).status == 502
        assert [client.get(url).status for url in ("http://api/", b.url + "/", other.url + "/")] == [200, 200, 200]
    for o in (a, b):
        assert c.metric("carpool_requests_total", origin=o.url) == 1, "with a label of its own"
    until(lambda: c.metric("carpool_pool_reclaimed_total") >= c.metric("carpool_pool_evicted_total") >= 40, what="their end")
    assert c.metric("carpool_pool_origins") <= 60


def test_an_origin_of_the_configuration_keeps_its_pool(origin, carpool):
    a, b = origin(hello), origin(hello)
    c = carpool(pool={"total": {"origin_idle_timeout": "500ms"}}, origin=[{"uri": a.url}])
    with c.client() as client:
        assert [client.get(o.url + "/").status for o in (a, b)] == [200, 200]
    until(lambda: c.metric("carpool_pool_reclaimed_total") == 1, what="one pool reclaimed")
    assert [row["origin"] for row in c.get_json("/pools")["pools"]] == [a.url]


def test_a_pool_in_use_stays(origin, carpool):
    a, b = origin(hello), origin(hello)
    c = carpool(pool={"total": {"origin_idle_timeout": "1500ms"}})
    with c.client() as client:
        assert client.get(b.url + "/").status == 200
        # Repeated until the other one has ended.
        while c.metric("carpool_pool_reclaimed_total") == 0:
            assert client.get(a.url + "/").status == 200
    assert a.opened == 1


def test_nobody_notices_the_end_of_a_pool(origin, carpool, full):
    """Requests to origins at the moment their pools end: every request is answered, on whatever loop."""
    o = origin(hello, host="0.0.0.0")
    c = carpool(workers=2, pool={"total": {"origin_idle_timeout": "1ms"}})
    places = ["http://127.0.0.%d:%d/" % (n, o.port) for n in range(1, 25)]
    wrong, end = [], time.monotonic() + (60 if full else 6)

    def ask(seed):
        pick = random.Random(seed)
        with c.client() as client:
            while time.monotonic() < end and not wrong:
                response = client.get(pick.choice(places))
                if response.status != 200:
                    wrong.append(response)
                threading.Event().wait(pick.random() / 20)
    threads = [threading.Thread(target=ask, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        c.get_json("/pools")
        c.metrics()
        threading.Event().wait(0.1)  # pools do not end while a client iterates over them
    for thread in threads:
        thread.join()
    assert not wrong, wrong[0]
    assert c.metric("carpool_pool_reclaimed_total") > 20
    assert c.metric("carpool_pool_borrows_total") == c.metric("carpool_pool_restores_total")
