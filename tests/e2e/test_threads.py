"""Which thread runs what, seen from outside: GET /threads, exec_* metrics, [threads] keys."""
import ssl

import pytest

from harness.wait import until


def doing(c):
    return [t["doing"] for t in c.get_json("/threads")["threads"]]


def test_every_loop_has_a_thread_on_top_of_max(origin, carpool):
    o, c = origin(), carpool(workers=5, threads={"min": 1, "max": 1})
    with c.client() as client:
        assert client.get(o.url + "/").status == 200
    threads = c.get_json("/threads")
    assert sorted(t["doing"] for t in threads["threads"] if t["doing"].startswith("loop")) == ["loop %d" % i for i in range(5)]
    assert threads["max"] == 1 and threads["leases"] >= 5
    assert all(t["seconds"] >= 0 for t in threads["threads"])


def test_the_bound_of_the_queue_is_the_sum_of_its_sources(carpool):
    threads = carpool(workers=3, threads={"max_tasks": 50}).get_json("/threads")
    assert threads["queue"]["limit"] == sum(s["limit"] for s in threads["queue"]["sources"])
    assert threads["tasks"]["limit"] == 50


def test_plain_requests_cost_no_hand_over(origin, carpool, full):
    o, c = origin(), carpool()
    count = 10_000 if full else 2_000
    before = {name: c.metric("carpool_exec_tasks_total", mode=name) for name in ("pec", "epc")}
    handed = c.metric("carpool_exec_handovers_total")
    scrapes_cost = c.metric("carpool_exec_tasks_total") - sum(before.values())
    with c.client() as client:
        for _ in range(count):
            assert client.get(o.url + "/").status == 200
    after = {name: c.metric("carpool_exec_tasks_total", mode=name) for name in ("pec", "epc")}
    # What the questions themselves cost: each is a task of its own.
    assert sum(after.values()) - sum(before.values()) <= 20
    assert c.metric("carpool_exec_handovers_total") - handed <= 20
    assert scrapes_cost >= 0


@pytest.mark.parametrize("strategy,mode", [("adaptive", None), ("execute_produce", "epc"), ("produce_execute", "pec"),
                                           ("produce", "pc")])
def test_every_strategy_loads_certificates_in_its_own_way(origin, carpool, pki, strategy, mode):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pki.server, pki.server_key)
    o = origin(tls=context)
    c = carpool(threads={"strategy": strategy, "reserved": 1})
    before = c.metric("carpool_exec_tasks_total", mode=mode) if mode else c.metric("carpool_exec_tasks_total")
    with c.client() as client:
        assert client.get(o.url + "/").status == 502  # the system's bundle does not know this authority
    after = c.metric("carpool_exec_tasks_total", mode=mode) if mode else c.metric("carpool_exec_tasks_total")
    assert after > before
    assert c.get_json("/threads")["strategy"] == strategy
    until(lambda: c.get_json("/threads")["tasks"]["existing"] <= 1, 10, "tasks to end")


def test_no_reserve_means_no_execute_produce_consume(carpool):
    c = carpool(threads={"reserved": 0})
    for _ in range(5):
        assert c.admin("GET", "/metrics").status == 200
    assert c.metric("carpool_exec_tasks_total", mode="epc") == 0
    assert c.metric("carpool_exec_threads", state="reserved") == 0
