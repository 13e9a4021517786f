"""A pool that a reload replaces: its connections, the requests that wait for one, and what the admin endpoint shows meanwhile."""
import pytest
from harness.origin import held
from harness.wait import until

OTHER = '\n[[origin]]\nuri = "%s"\n[origin.pool]\nsize = 1\n[origin.upstream]\nlenient = ["bare_lf"]\n'  # another pool


def replace_pool(c, o):
    c.replace_config(c.config.read_text() + OTHER % o.url)
    assert c.admin("POST", "/reload").status == 200


@pytest.mark.parametrize("workers", [1, 3])
def test_its_idle_connections_close_at_once_and_it_ends(origin, carpool, workers):
    o, c = origin(), carpool(workers=workers, pool={"size": 1})
    with c.client() as client:
        assert client.get(o.url + "/").status == 200
        replace_pool(c, o)
        assert c.metric("carpool_pool_closed_total", cause="config_changed") == 1
        assert client.get(o.url + "/").status == 200
        assert (o.opened, o.peak) == (2, 1), "never two at a time"
        until(lambda: c.metric("carpool_pool_reclaimed_total") == 1, what="the end of the pool")
        assert [pool["origin"] for pool in c.get_json("/pools")["pools"]] == [o.url]


@pytest.mark.parametrize("workers", [1, 3])
def test_the_requests_that_wait_for_it_go_to_the_new_pool_at_once(origin, carpool, gate, workers):
    o = origin(held(gate))
    c = carpool(workers=workers, pool={"size": 1, "wait_timeout": "20s"})
    first, *waiters = clients = [c.client() for _ in range(5)]
    first.ask("GET", o.url + "/held")
    gate.wait_for(1)
    for n, client in enumerate(waiters):
        client.ask("GET", o.url + "/%d" % n)
        until(lambda: c.pool(o.url)["waiting"] == n + 1, what="one more who waits")
    replace_pool(c, o)
    assert [client.response().status for client in waiters] == [200] * 4, "the earlier pool's connection is still in use"
    served = [target for target in o.targets() if target != "/held"]
    assert (served if workers == 1 else sorted(served)) == ["/0", "/1", "/2", "/3"] and o.peak == 2
    gate.open()
    assert first.response().status == 200
    until(lambda: o.open == 1, what="the end of the earlier pool's connection")
    for client in clients:
        client.close()


def test_while_it_serves_its_last_request_the_pool_in_force_is_shown(origin, carpool, gate):
    o, c = origin(held(gate)), carpool(pool={"size": 3})
    with c.client() as slow, c.client() as client:
        slow.ask("GET", o.url + "/held")
        gate.wait_for(1)
        replace_pool(c, o)
        assert [client.get(o.url + "/").status for _ in range(2)] == [200, 200]
        shown = c.get_json(c.pool_path(o.url))
        assert (shown["size"], shown["borrows"]) == (1, 2)
        assert "2 borrows on 1 connection." in c.get_json(c.pool_path(o.url) + "/explain")["explanation"]
        assert c.get_json("/pool/metrics")[o.url]["borrows"] == 3, "the sum of both"
        gate.open()
        assert slow.response().status == 200
