"""Priority classes and clients: a part of the cap is reserved for the higher class, and a client with many requests
delays only itself."""
import json

import pytest
from harness.h2_client import H2Client
from harness.ports import free_port
from harness.wait import until
from harness.wire import Client

CLASSES = ["high", "normal"]


def held(gate):
    def respond(exchange):
        gate.enter()
        exchange.reply(body=exchange.request.target.encode())
    return respond


def ask(c, o, path, address=None, priority=None):
    client = Client(address or c.address)
    client.ask("GET", o.url + path, [("Priority", priority)] if priority else [])
    return client


def waiting(c, o, count):
    until(lambda: c.pool(o.url)["waiting"] == count, what="%d waiting" % count)


def test_a_higher_class_is_not_blocked_by_a_lower_one(origin, carpool, gate):
    o = origin(held(gate))
    c = carpool(pool={"size": 4, "classes": CLASSES, "wait_timeout": "60s"})
    low = [ask(c, o, "/low%d" % i) for i in range(8)]
    gate.wait_for(3)
    waiting(c, o, 5)
    assert o.peak_busy == 3, "a quarter is left"
    high = ask(c, o, "/high", priority="u=0")
    gate.wait_for(4)
    assert o.seen[-1].message.target == "/high"
    row = {one["name"]: one for one in c.pool(o.url)["classes"]}
    assert row == {"high": {"name": "high", "waiting": 0, "leases": 1, "limit": 4, "share": 4},
                   "normal": {"name": "normal", "waiting": 5, "leases": 3, "limit": 3, "share": 3}}
    assert c.metric("carpool_pool_class_waiting", **{"origin": o.url, "class": "normal"}) == 5
    assert c.metric("carpool_pool_class_leases", **{"origin": o.url, "class": "normal"}) == 3
    for name in "carpool_pool_class_limit", "carpool_pool_class_share":
        assert c.metric(name, **{"origin": o.url, "class": "normal"}) == 3
    gate.open()
    for client in [*low, high]:
        assert client.response().status == 200
        client.close()


def test_a_listeners_class_goes_before_the_requests_own(origin, carpool, gate):
    o = origin(held(gate))
    ports = [free_port(), free_port()]
    listeners = [{"address": "127.0.0.1:%d" % ports[0], "class": "high"}, {"address": "127.0.0.1:%d" % ports[1], "class": "normal"}]
    c = carpool(listeners=listeners, pool={"size": 4, "classes": CLASSES, "wait_timeout": "60s"})
    all_of_them = [ask(c, o, "/low%d" % i, ("127.0.0.1", ports[1]), "u=0") for i in range(4)]
    gate.wait_for(3)
    waiting(c, o, 1)
    all_of_them.append(ask(c, o, "/high", ("127.0.0.1", ports[0]), "u=7"))
    gate.wait_for(4)
    assert o.seen[-1].message.target == "/high"
    gate.open()
    assert [one.response().status for one in all_of_them] == [200] * 5


def test_a_client_with_many_requests_waits_for_itself(origin, carpool, gate):
    o = origin(held(gate))
    # The clients are connections of one process.
    c = carpool(workers=1, listen={"loopback_client": "connection"}, pool={"size": 1, "wait_timeout": "60s"})
    with H2Client(c.address) as noisy:
        streams = [noisy.ask("/noisy%d" % i, authority="127.0.0.1:%d" % o.port) for i in range(20)]
        gate.wait_for(1)
        waiting(c, o, 19)
        quiet = ask(c, o, "/quiet")
        waiting(c, o, 20)
        gate.open()
        assert quiet.response().status == 200
        assert all(noisy.response(stream).status == 200 for stream in streams)
    order = [seen.message.target for seen in o.seen]
    assert order.index("/quiet") <= 2, order


def test_a_reload_gives_a_pool_classes(origin, carpool, gate):
    o = origin(held(gate))
    c = carpool(pool={"size": 4, "wait_timeout": "60s"})
    low = [ask(c, o, "/%d" % i) for i in range(5)]
    gate.wait_for(4)
    assert "classes" not in c.pool(o.url)
    text = c.config.read_text().replace("size = 4", 'size = 4\nclasses = ["high", "normal"]')
    c.config.write_text(text)
    assert json.loads(c.admin("POST", "/reload").body)["status"] in ("reloaded", "unchanged")
    until(lambda: "classes" in c.pool(o.url), what="classes")
    gate.open()
    assert [one.response().status for one in low] == [200] * 5
    assert [one["leases"] for one in c.pool(o.url)["classes"]] == [0, 0]


@pytest.mark.parametrize("settings, complaint", [
    ({"pool": {"classes": ["one"]}}, "pool.classes: lists 1, expected none, or 2 to 4"),
    ({"pool": {"classes": ["a", "b", "a"]}}, 'pool.classes: "a" is listed twice, expected each class once'),
    ({"pool": {"classes": ["High", "low"]}}, "not a valid class name"),
    ({"listen": {"class": "gold"}, "pool": {"classes": ["high", "low"]}}, '"gold" is not in any pool.classes'),
])
def test_a_mistake_is_named(carpool, settings, complaint):
    assert complaint in carpool(start=False, **settings).check()
