"""The incidents of docs/incidents.md and the evidence of docs/tuning.md: each is reproduced, and its session on the page is run."""
import contextlib
import threading

import pytest
from harness.carpool import SANITIZED
from harness.origin import Origin
from harness.transcript import Reader
from harness.wait import until

INCIDENTS, TUNING = "docs/incidents.md", "docs/tuning.md"
ORIGIN = "http://api.example"


def before(carpool, *addresses, pool=None, **settings):
    """A carpool whose origin api.example has these addresses."""
    return carpool(origin=[{"uri": ORIGIN, "alias": ["api"], "addresses": list(addresses), "pool": pool or {}}], **settings)


def get(c, path="/", count=1):
    with c.client() as client:
        return [client.get(ORIGIN + path).status for _ in range(count)]


def asking(stack, c, count, path="/"):
    """Returns clients that wait for their responses."""
    clients = [stack.enter_context(c.client()) for _ in range(count)]
    for client in clients:
        client.ask("GET", ORIGIN + path)
    return clients


def test_the_origin_is_down(origin, carpool):
    o = origin()
    c = before(carpool, o.authority)
    get(c, count=20)
    o.stop()
    until(lambda: c.pool(ORIGIN)["connections"].get("idle", 0) == 0, what="the closed connections")
    get(c, count=5)
    until(lambda: sum(r["status"] >= 500 for r in c.access_log()) == 5, what="the log")
    Reader(c).follow(INCIDENTS, "The origin is down")


def test_the_origin_is_slow_and_the_queue_is_full(origin, carpool, gate):
    def slow(exchange):
        gate.enter()
        exchange.read_body()
        exchange.reply()
    o = origin(slow)
    c = before(carpool, o.authority, pool={"size": 2, "max_waiting": 4, "wait_timeout": "60s"})
    with contextlib.ExitStack() as stack:
        asking(stack, c, 6, "/report")
        until(lambda: c.metric("carpool_pool_waiting", origin=ORIGIN) == 4, what="a full queue")
        Reader(c).follow(INCIDENTS, "The origin is slow and the queue is full")
        gate.open()


def test_connections_are_held(origin, carpool, gate):
    def handler(exchange):
        if exchange.request.target.endswith("/export"):
            gate.enter()
        exchange.read_body()
        exchange.reply()
    o = origin(handler)
    c = before(carpool, o.authority, pool={"leak_timeout": "200ms"})
    get(c, count=3)
    with contextlib.ExitStack() as stack:
        asking(stack, c, 2, "/export")
        until(lambda: sum("/export" in (leak["borrower"]["request"] or "") for leak in c.get_json("/leaks")["leaks"]) == 2, what="the reports")
        Reader(c).follow(INCIDENTS, "Connections are held")
        gate.open()


def test_one_address_fails(origin, carpool, request):
    def broken(exchange):
        exchange.read_body()
        exchange.reply(503, b"no")
    good = origin()
    bad = Origin(broken, host="127.0.1.2", port=good.port)
    request.addfinalizer(bad.stop)
    c = before(carpool, good.authority, bad.authority, pool={"max_usage": 1})
    get(c, count=60)
    until(lambda: any("is ejected" in line for line in c.output), what="the line in the log")
    Reader(c).follow(INCIDENTS, "One address of the origin fails")


@pytest.mark.skipif(SANITIZED, reason="a sanitizer's memory is its own")
def test_it_runs_short_of_memory(origin, carpool, pressure):
    o = origin()
    c = carpool(**pressure.settings({"uri": ORIGIN, "alias": ["api"], "addresses": [o.authority]}))
    get(c, count=3)
    pressure.begin(c)
    pressure.press(92)
    until(lambda: c.get_json("/overload")["shed_level"] == "new_clients", what="the second stage")
    Reader(c).follow(INCIDENTS, "It runs short of memory")
    pressure.end()


def loaded(origin, carpool, size):
    """Sixteen clients, each with a request of a few milliseconds after the other, have used the pool."""
    def work(exchange):
        exchange.read_body()
        threading.Event().wait(0.005)
        exchange.reply()
    o = origin(work)
    c = before(carpool, o.authority, pool={"size": size})
    clients = [threading.Thread(target=get, args=(c, "/", 120)) for _ in range(16)]
    for one in clients:
        one.start()
    for one in clients:
        one.join()
    return c


def test_a_pool_is_tuned_from_evidence(origin, carpool):
    Reader(loaded(origin, carpool, 4)).follow(TUNING, "A worked example")
