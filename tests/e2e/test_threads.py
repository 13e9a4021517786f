"""The thread that runs each task, seen from outside: GET /threads, exec_* metrics, [threads] keys."""
import gzip
import signal
import ssl
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.hanging_file import HangingFile
from harness.ports import tcp_server
from harness.wait import until


def doing(c):
    return [t["doing"] for t in c.get_json("/threads")["threads"]]


def test_every_loop_has_a_thread_on_top_of_max(origin, carpool):
    o, c = origin(), carpool(workers=5, threads={"min": 1, "max": 1})
    with c.client() as client:
        assert client.get(o.url + "/").status == 200
    loops = ["loop %d" % i for i in range(5)]
    until(lambda: sorted(t["doing"] for t in c.get_json("/threads")["threads"] if t["doing"].startswith("loop")) == loops,
          10, "five loops to run")
    threads = c.get_json("/threads")
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
    with c.client() as client:
        for _ in range(count):
            assert client.get(o.url + "/").status == 200
    after = {name: c.metric("carpool_exec_tasks_total", mode=name) for name in ("pec", "epc")}
    # The cost of the queries themselves: each is a task.
    assert sum(after.values()) - sum(before.values()) <= 20
    assert c.metric("carpool_exec_handovers_total") - handed <= 20


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
    assert c.metric("carpool_exec_tasks_total", mode="pic") >= 5, "the admin loop computes the answers itself"
    assert c.admin("GET", "/pools/http%3A%2F%2Fnobody.test/advice").status == 404
    assert c.metric("carpool_exec_tasks_total", mode="pec") == 1, "an answer that takes long goes to another thread"
    assert c.metric("carpool_exec_threads", state="reserved") == 0


def test_a_long_answer_is_compressed_for_who_takes_it(origin, carpool):
    o, c = origin(), carpool()
    with c.client() as client:
        assert client.get(o.url + "/").status == 200
    # A request is counted when it ends, a moment after its response has arrived.
    until(lambda: c.metric("carpool_requests_total") == 1, 10, "the request to be counted")
    plain = c.admin("GET", "/metrics")
    packed = c.admin("GET", "/metrics", headers=[("Accept-Encoding", "gzip")])
    assert packed.get("content-encoding") == "gzip" and len(packed.body) < len(plain.body) / 3
    assert b"carpool_exec_threads" in gzip.decompress(packed.body)
    refused = c.admin("GET", "/metrics", headers=[("Accept-Encoding", "gzip;q=0")])
    assert refused.get("content-encoding") is None and b"carpool_exec_threads" in refused.body
    short = c.admin("GET", "/version", headers=[("Accept-Encoding", "gzip")])
    assert short.get("content-encoding") is None


def test_an_answer_that_may_block_is_a_task_and_liveness_is_not(carpool):
    c = carpool()
    before = c.metric("carpool_exec_tasks_total")
    for _ in range(5):
        assert c.admin("GET", "/livez").status == c.admin("GET", "/threads").status == 200
    assert c.metric("carpool_exec_tasks_total") == before + 1  # the query itself
    c.admin("GET", "/pools")
    assert c.metric("carpool_exec_tasks_total") == before + 3


def test_too_many_tasks_are_refused_where_they_arise(carpool):
    c = carpool(threads={"max_tasks": 1, "max": 1, "min": 1, "reserved": 0})
    with ThreadPoolExecutor(8) as clients:
        responses = list(clients.map(lambda _: c.admin("GET", "/metrics"), range(64)))
    assert {a.status for a in responses} <= {200, 503} and any(a.status == 200 for a in responses)
    for refused in (a for a in responses if a.status == 503):
        assert refused.get("retry-after") == "1"
    tasks = c.get_json("/threads")["tasks"]
    assert tasks["existing"] == 0
    assert c.metric("carpool_exec_refused_total") == tasks["refused"] >= sum(a.status == 503 for a in responses)


def test_the_log_is_synced_in_the_background_again_and_again(carpool):
    c = carpool(log={"sync": "10ms"})
    until(lambda: c.get_json("/threads")["background"]["executed"] >= 3, 10, "three syncs")


@pytest.fixture
def tls_context(pki):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pki.server, pki.server_key)
    return context


@pytest.mark.parametrize("strategy", ["adaptive", "produce_execute", "produce"])
def test_handshakes_past_the_rate_are_tasks(origin, carpool, pki, tls_context, strategy):
    o = origin(tls=tls_context)
    c = carpool(workers=1, threads={"inline_handshakes": 3, "strategy": strategy}, upstream={"tls": {"ca_file": pki.ca}},
                pool={"max_usage": 1})
    with ThreadPoolExecutor(8) as clients:
        def ask(_):
            with c.client() as client:
                return client.get(o.url + "/").status
        before = c.metric("carpool_exec_tasks_total")
        assert set(clients.map(ask, range(40))) == {200}
    assert c.metric("carpool_exec_tasks_total") - before > 10
    until(lambda: c.get_json("/threads")["tasks"]["existing"] == 0, 10, "tasks to end")


def test_a_signing_handshake_is_a_task_and_keeps_its_deadline(origin, carpool, pki, tls_context):
    tls_context.verify_mode = ssl.CERT_REQUIRED
    tls_context.load_verify_locations(pki.ca)
    o = origin(lambda e: e.reply(body=str(e.stream.sock.getpeercert()["subject"]).encode()), tls=tls_context)
    shown = {"ca_file": pki.ca, "cert_file": pki.client, "key_file": pki.client_key}
    c = carpool(workers=1, upstream={"tls": shown}, pool={"max_usage": 1})
    before = c.metric("carpool_exec_tasks_total")
    with c.client() as client:
        for _ in range(5):
            response = client.get(o.url + "/")
            assert response.status == 200 and b"client" in response.body
    # Each query is a task itself, and may or may not be in its own response: two more at most.
    assert c.metric("carpool_exec_tasks_total") >= before + 5


def test_a_handshake_that_never_ends_is_late_in_a_task_too(carpool, pki):
    with tcp_server() as silent:
        c = carpool(workers=1, threads={"inline_handshakes": 0}, upstream={"tls": {"ca_file": pki.ca}},
                    pool={"connect_timeout": "300ms"})
        with c.client() as client:
            assert client.get("https://127.0.0.1:%d/" % silent.getsockname()[1]).status == 504


@pytest.fixture
def busy(origin, carpool, pki, tls_context):
    """A carpool with an idle connection to `plain`, and one more origin over TLS: a reload that hangs is its only task."""
    plain, secure, slow = origin(), origin(tls=tls_context), HangingFile()
    c = carpool(workers=1, threads={"inline_handshakes": 0, "max_tasks": 1}, upstream={"tls": {"ca_file": pki.ca}},
                pool={"connect_timeout": "2s"})
    with c.client() as client:
        assert client.get(plain.url + "/").status == 200
        c.config.write_text(c.config.read_text() +
                            '\n[[origin]]\nuri = "https://other.test"\n[origin.upstream.tls]\nca_file = "%s"\n' % slow.path)
        c.signal(signal.SIGHUP)
        slow.wait_for_reader()
        yield c, client, plain, secure, slow
        until(lambda: c.get_json("/threads")["tasks"]["existing"] == 0, what="the end of the reload")
    assert c.metric("carpool_pool_closed_total", origin=plain.url) == 0


def test_a_handshake_for_which_no_task_is_left_waits_for_one(busy):
    c, client, _, secure, slow = busy
    client.ask("GET", secure.url + "/")
    until(lambda: c.get_json("/threads")["tasks"]["refused"] >= 2, what="two refusals")
    slow.end()
    assert client.response().status == 200


def test_a_handshake_for_which_no_task_is_left_in_time_says_so(busy):
    _, client, _, secure, slow = busy
    response = client.get(secure.url + "/")
    slow.end()
    assert response.status == 503 and b"threads.max_tasks" in response.body, response.body
