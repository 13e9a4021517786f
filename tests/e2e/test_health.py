"""Health checks: idle connections are checked off the request path, and those that do not respond are closed."""
import threading

from harness.origin import Gate
from harness.wait import until

FAST = {"enabled": True, "interval": "100ms"}
PROBE = dict(FAST, probe="OPTIONS *")


def rest_one(c, o):
    with c.client() as client:
        assert client.get(o.url + "/").status == 200


def closed(c, o, cause):
    return c.metric("carpool_pool_closed_total", origin=o.url, cause=cause)


def test_a_probe_is_sent_on_what_rests_and_leaves_it_as_it_was(origin, carpool):
    o, c = origin(), carpool(pool={"health_check": PROBE})
    rest_one(c, o)
    until(lambda: o.targets().count("*") >= 3, what="three probes")
    seen = next(s.message for s in o.seen if s.message.target == "*")
    assert seen.method == "OPTIONS" and seen.get("host") == o.authority
    c.config.write_text(c.config.read_text().replace("enabled = true", "enabled = false"))  # no other probe borrows it meanwhile
    assert c.admin("POST", "/reload").status == 200
    until(lambda: c.metric("carpool_pool_connections", origin=o.url, state="idle") == 1, what="the end of the last probe")
    rest_one(c, o)
    assert o.opened == 1, "the connection that was probed serves on"
    row = c.get_json("/pools/%s/connections" % o.url.replace("/", "%2F"))["connections"]
    assert [r["uses"] for r in row if r["state"] == "idle"] == [2], "a probe is no use"


def test_what_does_not_answer_its_probe_is_closed_as_unhealthy(origin, carpool):
    silent = threading.Event()

    def handler(exchange):
        if exchange.request.target == "*" and silent.is_set():
            return True  # reads, but sends nothing
        return exchange.reply()
    o = origin(handler)
    c = carpool(pool={"connect_timeout": "2s", "health_check": PROBE})
    rest_one(c, o)
    until(lambda: "*" in o.targets(), what="a probe")
    assert closed(c, o, "unhealthy") == 0
    silent.set()
    until(lambda: closed(c, o, "unhealthy") == 1, what="the end of it")
    until(lambda: o.open == 0, what="the origin's end of it")
    until(lambda: any("failed its health check" in line and o.url in line for line in c.output), what="the log line")
    opened, gone = (c.metric("carpool_pool_%s_total" % what, origin=o.url) for what in ("opened", "closed"))
    assert opened - gone == c.metric("carpool_pool_connections", origin=o.url) == 0


def test_a_request_does_not_wait_for_a_probe_under_way(origin, carpool):
    gate = Gate()

    def handler(exchange):
        if exchange.request.target == "*":
            gate.enter()
        exchange.reply()
    o = origin(handler)
    c = carpool(pool={"health_check": PROBE})
    rest_one(c, o)
    gate.wait_for(1)
    rest_one(c, o)  # another connection
    assert o.opened == 2
    gate.open()
    with c.client() as one, c.client() as two:
        assert one.get(o.url + "/a").status == two.get(o.url + "/b").status == 200


def test_without_a_probe_nothing_is_sent_and_the_rest_is_not_prolonged(origin, carpool):
    o, c = origin(), carpool(pool={"idle_timeout": "1s", "health_check": FAST})
    rest_one(c, o)
    until(lambda: closed(c, o, "idle") == 1, what="the end of its rest")
    assert o.targets() == ["/"]
    assert c.metric("carpool_pool_borrows_total", origin=o.url) == 1


def test_nothing_is_sent_on_a_connection_that_is_kept_for_a_tunnel(origin, peer, carpool):
    streams = []

    def listens(stream):
        streams.append(stream)
        while stream.more():
            pass
    o, url = origin(), "tcp://127.0.0.1:%d" % peer(listens)
    c = carpool(workers=1, pool={"health_check": PROBE}, origin=[{"uri": url, "pool": {"min_idle": 1}}])
    until(lambda: c.metric("carpool_pool_connections", origin=url, state="idle") == 1, what="the connection for a tunnel")
    rest_one(c, o)
    until(lambda: o.targets().count("*") >= 3, what="three probes elsewhere")
    assert [stream.buffer for stream in streams] == [b""]


def test_probing_does_not_keep_a_connection_beyond_its_idle_timeout(origin, carpool):
    o, c = origin(), carpool(pool={"idle_timeout": "2s", "health_check": PROBE})
    rest_one(c, o)
    until(lambda: closed(c, o, "idle") == 1, what="the end of its rest")
    assert o.targets().count("*") >= 2
    assert c.metric("carpool_pool_borrows_total", origin=o.url) == 1, "a probe is no borrow"
