"""Spans for an OpenTelemetry collector ([otlp]): which are sampled, their contents, and a collector that fails."""
import signal
import time

import pytest
from harness.blackhole import SilentServer
from harness.collector import Collector, values
from harness.h2_client import H2Client
from harness.h2_origin import H2Origin
from harness.origin import Gate, hello
from harness.ports import free_port
from harness.wait import until

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SAMPLED = ("traceparent", "00-%s-%s-01" % (TRACE, PARENT))
UNSAMPLED = ("traceparent", "00-%s-%s-00" % (TRACE, PARENT))
STATE = ("tracestate", "vendor=1")
SPANS, REQUESTS = "carpool_otlp_spans_total", "carpool_otlp_requests_total"
FAST = {"interval": "100ms", "timeout": "5s", "metrics": False}
CLIENT, SERVER, ERROR = 3, 2, 2


@pytest.fixture
def collector():
    made = []

    def make(*arguments, **more):
        made.append(Collector(*arguments, **more))
        return made[-1]
    yield make
    for one in made:
        one.stop()


@pytest.fixture
def traced(carpool, collector):
    def make(response=None, workers=2, others=None, **more):
        k = collector(response)
        c = carpool(otlp={"endpoint": k.url, **FAST, **more}, workers=workers, **(others or {}))
        return k, c
    return make


def get(c, url, *fields, method="GET", body=b""):
    with c.client() as client:
        return client.request(method, url, fields, body=body)


def spans_of(k, count):
    until(lambda: len(k.spans) >= count, what="%d spans" % count)
    assert len(k.spans) == count
    return k.spans


def warnings(c, count=0):
    """Returns the warnings as soon as there are `count`: a line may come later than the metric of its event."""
    def found():
        return [line for line in list(c.output) if '"otlp"' in line and '"warn"' in line]
    until(lambda: len(found()) >= count, what="the warnings")
    return found()


def test_a_sampled_request_has_one_span_that_is_the_parent_of_the_origin(origin, traced):
    o = origin()
    k, c = traced()
    began = time.time()
    assert get(c, o.url + "/a?token=planted&b=2", SAMPLED, STATE).status == 200
    ended = time.time()
    span, = spans_of(k, 1)
    assert span.trace_id.hex() == TRACE and span.parent_span_id.hex() == PARENT
    sent = o.seen[0].message
    assert sent.all("traceparent") == ["00-%s-%s-01" % (TRACE, span.span_id.hex())]
    assert sent.all("tracestate") == [STATE[1]]
    assert span.name == "GET" and span.kind == CLIENT and span.flags == 0x301
    assert span.status.code == 0
    said = values(span.attributes)
    assert said["http.request.method"] == "GET" and said["http.response.status_code"] == 200
    assert said["server.address"] == "127.0.0.1" and said["server.port"] == o.port
    assert said["url.full"] == o.url + "/a?token=***&b=2"
    assert said["network.protocol.name"] == "http" and said["network.protocol.version"] == "1.1"
    assert said["carpool.opened"] == "first" and said["carpool.reuse"] == 0 and said["carpool.retries"] == 0
    assert 0 < said["carpool.dial_seconds"] < ended - began + 0.1 and 0 <= said["carpool.wait_seconds"] < ended - began + 0.1
    assert "error.type" not in said
    assert [e.name for e in span.events] == ["carpool.wait", "carpool.dial", "carpool.send", "carpool.first_byte"]
    times = {e.name: e.time_unix_nano for e in span.events}
    assert span.start_time_unix_nano <= times["carpool.wait"] <= times["carpool.send"] <= times["carpool.first_byte"]
    assert times["carpool.first_byte"] <= span.end_time_unix_nano
    assert began - 0.1 < span.start_time_unix_nano / 1e9 < ended + 0.1
    assert k.resources[0]["service.name"] == "carpool" and k.resources[0]["service.instance.id"]
    asked = k.requests[0]
    assert asked.method == "POST" and asked.target == "/v1/traces" and asked.get("content-type") == "application/x-protobuf"
    until(lambda: c.metric(SPANS, result="exported") == 1, what="the count")
    assert c.pool(k.url)["borrows"] >= 1, "the collector has a pool of its own"


def test_what_is_not_sampled_passes_unchanged_and_has_no_span(origin, traced):
    o = origin()
    k, c = traced()
    for fields in ([UNSAMPLED, STATE], [STATE], [("traceparent", "00-zz")], [SAMPLED, SAMPLED]):
        assert get(c, o.url + "/", *fields).status == 200
        seen = o.seen[-1].message
        assert [(n, v) for n, v in seen.headers if n.lower().startswith("trace")] == fields
    get(c, o.url + "/last", SAMPLED)
    spans_of(k, 1)


def test_a_request_without_a_trace_begins_one_if_the_sample_says_so(origin, traced):
    o = origin()
    k, c = traced(sample=1)
    assert get(c, o.url + "/", STATE).status == 200
    assert get(c, o.url + "/", UNSAMPLED).status == 200
    span, = spans_of(k, 1)
    assert span.parent_span_id == b"" and span.flags == 0x101 and any(span.trace_id)
    first, second = (s.message for s in o.seen)
    assert first.all("traceparent") == ["00-%s-%s-01" % (span.trace_id.hex(), span.span_id.hex())]
    assert first.all("tracestate") == [], "it belongs to no trace"
    assert second.all("traceparent") == [UNSAMPLED[1]], "the sender has decided"


def test_one_in_four_begins_a_trace(origin, traced):
    o = origin()
    k, c = traced(sample=4)
    with c.client() as client:
        for _ in range(400):
            client.get(o.url + "/")
    until(lambda: c.metric(SPANS, result="exported") == len(k.spans) and k.spans, what="the spans")
    made = sum(1 for s in o.seen if s.message.all("traceparent"))
    assert 50 < made < 160
    until(lambda: len(k.spans) == made, what="every span")


def test_http2_on_both_sides(traced):
    o = H2Origin(lambda stream: stream.reply())
    k, c = traced(others={"origin": [{"uri": o.url, "upstream": {"protocols": ["h2"]}}]})
    with H2Client(c.address) as client:
        assert client.get("/x", authority=o.authority, headers=[SAMPLED]).status == 200
    span, = spans_of(k, 1)
    assert values(span.attributes)["network.protocol.version"] == "2"
    assert o.seen[0].field("traceparent") == ["00-%s-%s-01" % (TRACE, span.span_id.hex())]
    o.stop()


def test_a_retry_keeps_the_span_and_a_failure_is_an_error(origin, traced):
    def dies_when_reused(exchange):
        exchange.read_body()
        if exchange.nth > 1:
            return False
        exchange.reply()
        return True
    o = origin(dies_when_reused)
    k, c = traced(workers=1)
    get(c, o.url + "/first")
    assert get(c, o.url + "/", SAMPLED).status == 200
    span, = spans_of(k, 1)
    said = values(span.attributes)
    assert said["carpool.retries"] == 1 and said["carpool.retried"] == "idempotent_reused"
    assert [s.message.all("traceparent") for s in o.seen[1:]] == [["00-%s-%s-01" % (TRACE, span.span_id.hex())]] * 2
    assert get(c, "http://127.0.0.1:%d/" % free_port(), SAMPLED).status == 502
    failed = spans_of(k, 2)[1]
    assert failed.status.code == ERROR and values(failed.attributes)["error.type"] == "connect_refused"
    assert failed.kind == CLIENT and failed.status.message
    assert get(c, origin().url + "/missing", SAMPLED, method="BREW").status == 200
    assert spans_of(k, 3)[2].name == "HTTP" and values(k.spans[2].attributes)["http.request.method"] == "_OTHER"


def test_an_error_status_of_the_origin_is_an_error(origin, traced):
    o = origin(lambda e: (e.read_body(), e.reply(404))[1] or True)
    k, c = traced()
    assert get(c, o.url + "/", SAMPLED).status == 404
    span, = spans_of(k, 1)
    assert span.status.code == ERROR and values(span.attributes)["error.type"] == "404"


def test_a_request_that_carpool_answers_alone_is_of_kind_server(traced):
    k, c = traced(workers=1)
    with c.client() as client:
        assert client.request("OPTIONS", "http://a.test/", [SAMPLED, ("Max-Forwards", "0")]).status == 200
    span, = spans_of(k, 1)
    assert span.kind == SERVER and "server.address" not in values(span.attributes)


def test_an_export_has_no_span_of_its_own(origin, traced):
    o = origin()
    k, c = traced(sample=1)
    get(c, o.url + "/")
    spans_of(k, 1)
    rounds = len(c.access_log())
    until(lambda: c.metric(REQUESTS, result="accepted") >= 1, what="the export")
    get(c, o.url + "/")
    spans_of(k, 2)
    until(lambda: len(c.access_log()) >= rounds + 2, what="both lines")
    assert all(r.get("client") != "carpool otlp" or r["status"] == 200 for r in c.access_log())


def test_fields_of_the_collectors_origin_are_sent_with_the_export(origin, carpool, collector, tmp_path):
    (tmp_path / "key").write_text("planted\n")
    o, k = origin(), collector()
    c = carpool(otlp={"endpoint": k.url + "/otel/", **FAST, "service_name": "orders", "resource": ["k8s.pod.name=pod-1"]},
                origin=[{"uri": k.url, "request": {"headers": {"Api-Key": {"file": str(tmp_path / "key")}}}}])
    get(c, o.url + "/", SAMPLED)
    spans_of(k, 1)
    assert k.requests[0].target == "/otel/v1/traces" and k.requests[0].all("api-key") == ["planted"]
    assert k.resources[0]["service.name"] == "orders" and k.resources[0]["k8s.pod.name"] == "pod-1"
    assert "planted" not in "\n".join(c.output)


# ---- a collector that fails ----

def test_an_unavailable_collector_gets_the_same_spans_again_after_its_pause(origin, traced):
    times = []

    def respond(exchange, message):
        times.append(message)
        if len(times) > 2:
            return None
        exchange.reply(503 if len(times) == 1 else 429, headers=[("Retry-After", "1")])
        return True
    o = origin()
    k, c = traced(respond)
    get(c, o.url + "/", SAMPLED)
    spans_of(k, 1)
    assert times[0] == times[1] == times[2]
    until(lambda: c.metric(SPANS, result="exported") == 1, what="the count")
    assert c.metric(REQUESTS, result="unavailable") == 2
    assert len(warnings(c, 1)) == 1, "one line for the change, not for each failure"
    until(lambda: any("exports succeed again" in line for line in c.output), what="the line of its return")


@pytest.mark.parametrize("how", ["400", "garbage", "partial", "long"])
def test_an_answer_that_permits_no_other_attempt_ends_the_batch(origin, traced, how):
    def respond(exchange, message):
        if how == "400":
            exchange.reply(400)
        elif how == "garbage":
            exchange.reply(body=b"\xff\xff\xff<html>")
        elif how == "long":
            exchange.reply(body=b"x" * 100_000)
        else:
            Collector.accept(exchange, True, rejected_spans=1, error_message="no \x1b room")
        return True
    o = origin()
    k, c = traced(respond)
    get(c, o.url + "/", SAMPLED)
    end = "rejected" if how == "partial" else "refused"
    until(lambda: c.metric(SPANS, result=end) == 1, what="the count")
    assert c.metric(REQUESTS, result={"400": "refused", "partial": "accepted"}.get(how, "unusable")) == 1
    assert c.metric(SPANS, result="exported") == 0
    expected = 0 if how == "partial" else 1
    assert len(warnings(c, expected)) == expected
    assert get(c, o.url + "/").status == 200


def test_a_collector_that_hangs_costs_memory_of_a_fixed_size_and_no_request(origin, carpool):
    silent, o = SilentServer(), origin()
    c = carpool(otlp={"endpoint": "http://" + silent.authority, **FAST, "timeout": "500ms", "buffer": "64KiB"}, workers=1)
    with c.client() as client:
        for _ in range(50):
            client.get(o.url + "/", SAMPLED)
        before = c.rss()
        for _ in range(1500):
            assert client.get(o.url + "/", SAMPLED).status == 200
    until(lambda: c.metric(REQUESTS, result="timeout") >= 2, what="two attempts")
    assert c.metric(SPANS, result="buffer_full") > 500
    assert c.rss() - before < 2 << 20
    assert len(warnings(c, 1)) == 1
    c.stop()
    silent.stop()


def test_a_collector_that_is_not_there_is_left_alone(origin, carpool):
    o = origin()
    c = carpool(otlp={"endpoint": "http://127.0.0.1:%d" % free_port(), **FAST}, workers=1)
    get(c, o.url + "/", SAMPLED)
    until(lambda: c.metric(REQUESTS, result="failed") >= 2, what="two attempts")
    found = warnings(c, 1)
    assert len(found) == 1 and "refused" in found[0]
    assert get(c, o.url + "/").status == 200


def test_a_slow_collector_delays_no_request(origin, traced):
    gate = Gate()

    def slow(exchange, message):
        gate.enter()
    o = origin()
    k, c = traced(slow, workers=1, timeout="30s")
    with c.client() as client:
        assert client.get(o.url + "/", SAMPLED).status == 200
        gate.wait_for(1)
        for _ in range(200):
            assert client.get(o.url + "/", SAMPLED).status == 200
        assert gate.inside == 1, "one request at a time"
        gate.open()
    spans_of(k, 201)


def test_a_body_larger_than_a_socket_takes_arrives_whole(origin, traced):
    gate = Gate()
    o = origin()
    k, c = traced(lambda e, m: gate.enter() and None, workers=1, timeout="30s", buffer="16MiB")
    with c.client() as client:
        client.get(o.url + "/", SAMPLED)
        gate.wait_for(1)
        for _ in range(3000):
            client.get(o.url + "/" + "x" * 800, SAMPLED)
    gate.open()
    spans_of(k, 3001)
    assert max(len(r.body) for r in k.requests) > 3 << 20


# ---- reload and the end ----

def test_a_reload_applies_and_turns_the_export_off(origin, traced, collector):
    o = origin()
    k, c = traced(workers=2)
    get(c, o.url + "/", SAMPLED)
    spans_of(k, 1)
    other = collector()
    text = c.config.read_text()
    c.config.write_text(text.replace(k.url, other.url))
    assert c.admin("POST", "/reload").status == 200
    get(c, o.url + "/", SAMPLED)
    spans_of(other, 1)
    c.config.write_text(text.replace('endpoint = "%s"' % k.url, 'endpoint = ""'))
    assert c.admin("POST", "/reload").status == 200
    get(c, o.url + "/", SAMPLED)
    assert o.seen[-1].message.all("traceparent") == [SAMPLED[1]]
    assert len(k.spans) == 1 and len(other.spans) == 1


def test_the_last_spans_are_sent_before_the_process_ends(origin, traced):
    o = origin(hello)
    k, c = traced(interval="1h")
    get(c, o.url + "/", SAMPLED)
    c.signal(signal.SIGTERM)
    assert c.wait() == 0
    spans_of(k, 1)


# ---- metrics ----

def points(k, name):
    """The points of the last export of a metric, by their attributes."""
    metric = next(m for m in k.metrics[-1] if m.name == name)
    data = getattr(metric, metric.WhichOneof("data"))
    return metric, {frozenset(values(p.attributes).items()): p for p in data.data_points}


def test_the_metrics_are_those_of_a_scrape(origin, traced):
    o = origin()
    k, c = traced(metrics=True, traces=False)
    with c.client() as client:
        for _ in range(12):
            assert client.get(o.url + "/", SAMPLED).status == 200
    own = frozenset({"origin": o.url, "method": "GET", "code": "200"}.items())
    until(lambda: k.metrics and points(k, "carpool_requests_total")[1].get(own) is not None
          and points(k, "carpool_requests_total")[1][own].as_double == 12, what="the count")
    metric, sums = points(k, "carpool_requests_total")
    assert metric.sum.is_monotonic and metric.sum.aggregation_temporality == 2
    assert 0 < sums[own].start_time_unix_nano < sums[own].time_unix_nano
    metric, gauges = points(k, "carpool_pool_size")
    assert metric.WhichOneof("data") == "gauge" and gauges[frozenset({("origin", o.url)})].as_double == 64
    metric, histograms = points(k, "carpool_request_seconds")
    one = histograms[frozenset({("origin", o.url)})]
    assert metric.unit == "s" and metric.histogram.aggregation_temporality == 2
    assert one.count == sum(one.bucket_counts) == 12 and len(one.bucket_counts) == len(one.explicit_bounds) + 1
    assert 0 < one.sum < 60 and one.explicit_bounds[0] == 1e-4
    def scraped():
        return {name.removesuffix("_bucket").removesuffix("_count").removesuffix("_sum") for name, _ in c.metrics()}
    # Some families are sent only while they count something, such as the leases, of which an export in flight is one.
    until(lambda: {m.name for m in k.metrics[-1]} == scraped(), what="the same families")
    assert not k.spans and o.seen[0].message.all("traceparent") == [SAMPLED[1]]
    assert c.metric(REQUESTS, signal="metrics", result="accepted") >= 1
    assert k.resources[-1]["service.name"] == "carpool"


def test_a_collector_without_metrics_still_gets_the_spans(origin, traced):
    def spans_only(exchange, message):
        if exchange.request.target == "/v1/metrics":
            exchange.reply(404)
            return True
        return None
    o = origin()
    k, c = traced(spans_only, metrics=True)
    for n in range(3):
        get(c, o.url + "/", SAMPLED)
        spans_of(k, n + 1)
    until(lambda: c.metric(REQUESTS, signal="metrics", result="refused") > 2, what="three answers")
    assert len(warnings(c, 1)) == 1, "one line for the change of one signal"
