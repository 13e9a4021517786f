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
        until(lambda: c.metric("carpool_pool_reclaimed_total") == 1, what="the end of the earlier pool")
        for cause in ("opened", "closed"):
            assert c.metric("carpool_pool_%s_total" % cause, origin="other") == 0
        assert c.metric("carpool_pool_borrows_total", origin=o.url) == 3, "a counter does not fall"
        assert c.metric("carpool_pool_opened_total", origin=o.url) == 2
        assert c.get_json("/pool/metrics")[o.url]["borrows"] == 3


def test_its_states_and_addresses_are_not_added_to_those_of_the_pool_in_force(origin, carpool, gate):
    one = origin(held(gate), host="127.0.1.1")
    two = origin(held(gate), host="127.0.1.2", port=one.port)
    c = carpool(origin=[{"uri": "http://pair", "addresses": [one.authority, two.authority]}])
    with c.client() as slow, c.client() as client:
        assert [client.get("http://pair/").status for _ in range(4)] == [200] * 4
        slow.ask("GET", "http://pair/held")
        gate.wait_for(1)
        assert c.admin("POST", c.pool_path("http://pair") + "/pause").status == 200
        c.replace_config(c.config.read_text().replace('uri = "http://pair"', 'uri = "http://pair"\nupstream.lenient = ["bare_lf"]'))
        assert c.admin("POST", "/reload").status == 200
        assert c.metric("carpool_pool_paused", origin="http://pair") == 1
        assert c.admin("POST", c.pool_path("http://pair") + "/resume").status == 200
        assert [client.get("http://pair/").status for _ in range(4)] == [200] * 4
        assert c.metric("carpool_origin_addresses", origin="http://pair") == 2
        assert c.metric("carpool_address_leases", origin="http://pair") == 1, "the request of the earlier pool"
        assert c.metric("carpool_address_requests_total", origin="http://pair") == 4
        for address in c.get_json(c.pool_path("http://pair"))["addresses"]:
            shown = c.metric("carpool_address_response_seconds", origin="http://pair", address=address["address"])
            assert shown == pytest.approx(address["response_seconds"] or 0, rel=0.01)
        gate.open()
        assert slow.response().status == 200
