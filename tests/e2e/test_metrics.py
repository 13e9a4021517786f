"""Observability: Prometheus text, SimplePool's counters, pools, health, the access log."""
import calendar
import json
import os
import subprocess
import time

from harness.ports import free_port
from harness.wait import until
from harness.wire import Client


def serve(c, o, count=3):
    with c.client() as client:
        for _ in range(count):
            assert client.get(o.url + "/").status == 200


def test_metrics_are_prometheus_text_and_count_what_happened(origin, carpool):
    o, c = origin(), carpool()
    serve(c, o, 10)
    response = c.admin("GET", "/metrics")
    assert response.get("content-type") == "text/plain; version=0.0.4; charset=utf-8"
    # A response is counted when its exchange ends, which may be after the client has read it.
    until(lambda: c.metric("carpool_requests_total", origin=o.url, method="GET", code="200") == 10, what="ten requests")
    assert c.metric("carpool_pool_borrows_total", origin=o.url) == c.metric("carpool_pool_restores_total", origin=o.url) == 10
    assert c.metric("carpool_pool_opened_total", origin=o.url, cause="first") == 1
    assert c.metric("carpool_pool_connections", origin=o.url, state="idle") == 1
    assert c.metric("carpool_pool_size", origin=o.url) == 64
    names = {name for name, _ in c.metrics()}
    for name in ("carpool_pool_connections_peak", "carpool_pool_waiting", "carpool_pool_wait_seconds_count", "carpool_build_info",
                 "carpool_request_seconds_bucket", "carpool_downstream_connections", "process_resident_memory_bytes"):
        assert name in names, name


def test_an_origin_that_is_used_once_has_few_series_and_ten_requests_have_percentiles(origin, carpool, pki):
    import ssl
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pki.server, pki.server_key)
    c = carpool(upstream={"tls": {"ca_file": pki.ca}})

    def series(o, count):
        until(lambda: c.metric("carpool_requests_total", origin=o.url) == count, what="the requests")
        return [name for name, labels in c.metrics() if ("origin", o.url) in labels]
    for o in (origin(), origin(tls=context)):
        serve(c, o, 1)
        assert len(series(o, 1)) <= 25, series(o, 1)
        assert c.metric("carpool_pool_failures_total", origin=o.url) == 0, "what is absent is zero"
        assert c.metric("carpool_request_seconds_count", origin=o.url) == c.metric("carpool_pool_wait_seconds_count", origin=o.url) == 1
        serve(c, o, 9)
        names = series(o, 10)
        assert names.count("carpool_request_seconds_bucket") == names.count("carpool_pool_wait_seconds_bucket") == 19
        assert c.metric("carpool_request_seconds_count", origin=o.url) == 10, "the first ones count"


def test_what_is_in_flight_waits_and_exists_now_has_its_own_metrics(origin, carpool, gate):
    def held(exchange):
        exchange.read_body()
        gate.enter()
        exchange.reply()
    o, c = origin(held), carpool(pool={"size": 10, "wait_timeout": "60s"})
    clients = [c.client() for _ in range(11)]
    for client in clients:
        client.ask("GET", o.url + "/")
    gate.wait_for(10)
    until(lambda: c.metric("carpool_pool_waiting", origin=o.url) == 1, what="the eleventh waits")
    assert c.metric("carpool_pool_leases", origin=o.url) == 10
    until(lambda: c.metric("carpool_pool_longest_wait_seconds", origin=o.url) > 0, what="its wait")
    assert c.metric("carpool_pool_connection_age_seconds_count", origin=o.url) == 10
    assert c.metric("carpool_pool_connection_age_seconds_bucket", origin=o.url, le="7200") == 10
    assert c.metric("carpool_pool_connection_idle_seconds_count", origin=o.url) == 0, "all are borrowed"
    gate.open()
    for client in clients:
        assert client.response().status == 200
        client.close()
    until(lambda: c.metric("carpool_pool_leases", origin=o.url) == 0, what="the end")
    assert c.metric("carpool_pool_longest_wait_seconds", origin=o.url) == 0
    assert c.metric("carpool_pool_connection_idle_seconds_bucket", origin=o.url, le="+Inf") == 10
    assert 0 < c.metric("carpool_pool_connection_idle_seconds_sum", origin=o.url) < 10 * 20


def test_counters_never_go_down_and_failures_have_reasons(carpool):
    from harness.ports import free_port
    c, url = carpool(), "http://127.0.0.1:%d" % free_port()
    before = {}
    for i in range(3):
        with c.client() as client:
            assert client.get(url + "/").status == 502
        now = {k: v for k, v in c.metrics().items() if k[0].endswith(("_total", "_count"))}
        assert all(now[k] >= v for k, v in before.items())
        before = now
    assert c.metric("carpool_pool_failures_total", origin=url, reason="refused") == 3
    assert c.metric("carpool_pool_closed_total", origin=url, cause="error") == 3


def test_simplepools_counters_have_their_form(origin, carpool):
    o, c = origin(), carpool()
    serve(c, o)
    assert c.get_json("/pool/metrics") == {
        o.url: {"active": 1, "borrows": 3, "restores": 3, "created": 1, "closed": 0, "failures": 0}}


def test_metrics_can_be_switched_off(carpool):
    c = carpool(metrics={"enabled": False})
    for path in ("/metrics", "/pool/metrics"):
        response = c.admin("GET", path)
        assert response.status == 503 and b"Metrics not enabled" in response.body


def test_origins_beyond_the_label_bound_share_one(origin, carpool):
    origins = [origin() for _ in range(4)]
    c = carpool(metrics={"max_origins": 2})
    for o in origins:
        serve(c, o, 2)
    labels = {dict(ls).get("origin") for (name, ls), _ in c.metrics().items() if name == "carpool_requests_total"}
    assert "other" in labels and len(labels) <= 3
    until(lambda: c.metric("carpool_requests_total") == 8, what="the requests")
    opened, closed = c.metric("carpool_pool_opened_total"), c.metric("carpool_pool_closed_total")
    assert opened - closed == c.metric("carpool_pool_connections") == 4


def test_no_counter_falls_when_a_reload_lists_an_origin_that_shares_a_label(origin, carpool):
    first, late = origin(), origin()
    c = carpool(metrics={"max_origins": 1})
    serve(c, first)
    serve(c, late)
    before = {k: v for k, v in c.metrics("carpool_").items() if k[0].endswith("_total")}
    c.config.write_text(c.config.read_text() + '[[origin]]\nuri = "%s"\npool.size = 7\n' % late.url)
    assert c.admin("POST", "/reload").status == 200
    serve(c, late)
    until(lambda: c.metric("carpool_requests_total") == 9, what="the requests")
    after = c.metrics("carpool_")
    assert not [k for k, v in before.items() if after.get(k, 0) < v]
    for name in ("carpool_pool_borrows_total", "carpool_requests_total"):
        assert c.metric(name, origin="other") == 6 and c.metric(name, origin=late.url) == 0


def test_pools_tell_what_they_hold(origin, carpool):
    o, c = origin(), carpool(pool={"size": 5})
    serve(c, o)
    row = c.pool(o.url)
    assert (row["active"], row["size"], row["peak"], row["waiting"], row["borrowed"], row["connecting"]) == (1, 5, 1, 0, 0, 0)
    assert row["opened"] == {"first": 1} or row["opened"]["first"] == 1


def test_health_is_told_apart(carpool):
    c = carpool()
    assert c.admin("GET", "/livez").status == c.admin("GET", "/readyz").status == 200
    missing = c.admin("GET", "/no-such-path")
    assert missing.status == 404 and "error" in json.loads(missing.body)
    assert c.admin("DELETE", "/pools").status == 405


def test_the_access_log_tells_a_requests_story(origin, carpool):
    o, c = origin(), carpool()
    serve(c, o, 2)
    rows = until(lambda: c.access_log()[1:] and c.access_log(), what="two lines")
    first, second = rows
    assert [(r["method"], r["target"], r["origin"], r["status"], r["bytes_out"]) for r in rows] == [
        ("GET", o.url + "/", o.url, 200, 2)] * 2
    assert first["connection"] == second["connection"] and (first["reuse"], second["reuse"]) == (0, 1)
    assert first["opened"] == "first" and "opened" not in second and first["request"] != second["request"]
    assert 0 <= second["upstream_seconds"] <= second["total_seconds"]


def test_text_logs_and_no_access_log_are_settings(origin, carpool):
    o, c = origin(), carpool(log={"format": "text", "access": False})
    serve(c, o)
    c.stop()
    assert not any(line.startswith("{") for line in c.output)
    assert not any("GET" in line and o.url in line for line in c.output)


def test_of_requests_that_go_well_the_access_log_has_a_sample_and_all_others(origin, carpool):
    def respond(exchange):
        exchange.reply(500 if exchange.request.target.endswith("/bad") else 200)
    o, c = origin(respond), carpool(log={"access_sample": 10})
    with c.client() as client:
        for i in range(100):
            client.get(o.url + ("/bad" if i % 20 == 7 else "/"))
        client.get("http://127.0.0.1:%d/refused" % free_port())
    until(lambda: len(c.access_log()) >= 15, what="its lines")
    statuses = [line["status"] for line in c.access_log()]
    assert (statuses.count(200), statuses.count(500), statuses.count(502)) == (9, 5, 1), statuses
    assert c.metric("carpool_requests_total", origin=o.url) == 100
    c.config.write_text(c.config.read_text().replace("access_sample = 10", "access_sample = 1"))
    assert c.admin("POST", "/reload").status == 200
    with c.client() as client:
        for _ in range(7):
            client.get(o.url + "/")
    until(lambda: len(c.access_log()) == 22, what="every line from then on")


def test_what_reuse_saves_is_counted(origin, carpool, pki):
    import ssl
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pki.server, pki.server_key)
    plain, secure = origin(), origin(tls=context)
    c = carpool(upstream={"tls": {"ca_file": pki.ca}})
    for o in (plain, secure):
        serve(c, o, 4)
    for o in (plain, secure):
        until(lambda o=o: c.metric("carpool_saved_dials_total", origin=o.url) == 3, what="all but the first")
        saved = c.pool(o.url)["saved"]
        assert saved["dials"] == 3 and saved["seconds"] > 0
        assert abs(c.metric("carpool_saved_seconds_total", origin=o.url) - saved["seconds"]) < 1e-6
    # The first request waited for its connection, which includes the handshake.
    took = until(lambda: [row for row in c.access_log() if row["origin"] == secure.url], what="its line")[0]["wait_seconds"]
    # The handshake's time is that of the loop's iterations, so a short one may have computed for longer than it seems.
    assert 0 < c.pool(secure.url)["saved"]["cpu_seconds"] <= 3 * (took + 0.005), "three times the CPU of the one that was made"
    assert c.pool(plain.url)["saved"]["cpu_seconds"] == 0, "there was no handshake to save"


def cpu_of(c):
    fields = open("/proc/%d/stat" % c.process.pid).read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_scrape_of_two_hundred_origins_is_cheap(origin, carpool):
    """200 origins, every series of theirs; the mean of many scrapes, for the kernel counts in hundredths of a second."""
    o = origin()
    names = ["origin-%d.test" % i for i in range(200)]
    c = carpool(origin=[{"uri": "http://" + n, "addresses": [o.authority]} for n in names], log={"access": False})
    with c.client() as client:
        for name in names * 10:  # all have their histograms
            assert client.get("http://%s/" % name).status == 200
    series = len(c.metrics())
    scrapes = 50
    with Client(c.admin_address) as client:
        host = "127.0.0.1:%d" % c.admin_address[1]
        client.request("GET", "/metrics", host=host)
        before = cpu_of(c)
        for _ in range(scrapes):
            assert client.request("GET", "/metrics", host=host).status == 200
        each = (cpu_of(c) - before) / scrapes
    print("%d series of 200 origins: %.1f ms of CPU a scrape" % (series, each * 1000))
    assert series > 200 * 20
    assert each < 0.1, "an order above the aim, for sanitizers and a busy machine: docs/operations.md has the figure"


def test_the_end_of_every_named_certificate_is_told(carpool, pki):
    c = carpool(listen={"cert_file": str(pki.server), "key_file": str(pki.server_key)},
                upstream={"tls": {"ca_file": str(pki.ca), "cert_file": str(pki.client), "key_file": str(pki.client_key)}})
    for use, file in (("listener", pki.server), ("client", pki.client)):
        said = subprocess.run(["openssl", "x509", "-noout", "-enddate", "-in", file], capture_output=True, text=True, timeout=20, check=True).stdout
        end = calendar.timegm(time.strptime(said.strip().removeprefix("notAfter="), "%b %d %H:%M:%S %Y GMT"))
        assert c.metric("carpool_certificate_end_timestamp_seconds", use=use, file=str(file)) == end, said
