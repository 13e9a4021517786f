"""Spans and metrics that OpenTelemetry's own collector receives and writes to a file."""
import json
import os
import pathlib
import shutil
import socket
import subprocess

import pytest
from harness.carpool import ROOT
from harness.ports import free_port
from harness.wait import until

SOURCE = pathlib.Path(__file__).parent / "collector"
PROGRAM = ROOT / "build/tools/otelcol"
BUILD = 300  # seconds; downloads included
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


@pytest.fixture(scope="module")
def program():
    """Built once; carpool's own tests do not need it."""
    if not os.access(PROGRAM, os.X_OK):
        if not shutil.which("go"):
            pytest.skip("there is no Go to build OpenTelemetry's collector with")
        PROGRAM.parent.mkdir(parents=True, exist_ok=True)
        try:
            done = subprocess.run(["nice", "go", "build", "-o", str(PROGRAM), "."], cwd=SOURCE, capture_output=True, text=True,
                                  timeout=BUILD)
        except subprocess.TimeoutExpired:
            pytest.skip("OpenTelemetry's collector was not built within %d s" % BUILD)
        if done.returncode:
            pytest.skip("OpenTelemetry's collector cannot be built: " + done.stderr.strip()[-200:])
    return PROGRAM


def listens(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def collector(program, tmp_path):
    port, out = free_port(), tmp_path / "received.json"
    settings = {
        "receivers": {"otlp": {"protocols": {"http": {"endpoint": "127.0.0.1:%d" % port}}}},
        "exporters": {"file": {"path": str(out)}},
        "service": {"telemetry": {"metrics": {"level": "none"}},
                    "pipelines": {"traces": {"receivers": ["otlp"], "exporters": ["file"]},
                                  "metrics": {"receivers": ["otlp"], "exporters": ["file"]}}}}
    (tmp_path / "config.yaml").write_text(json.dumps(settings))  # YAML is a superset of JSON
    log = open(tmp_path / "log", "w")
    process = subprocess.Popen([program, "--config", "file:" + str(tmp_path / "config.yaml")], stdout=log, stderr=log)

    def ready():
        assert process.poll() is None, (tmp_path / "log").read_text()
        return listens(port)
    until(ready, 30, "the collector")

    def received(kind):
        lines = out.read_text().rpartition("\n")[0].splitlines() if out.exists() else []  # whole ones
        return [part for line in lines for part in json.loads(line).get(kind, [])]
    yield port, received
    process.terminate()
    process.wait(20)
    log.close()


def values(attributes):
    return {a["key"]: next(iter(a["value"].values())) for a in attributes}


def test_the_collector_understands_every_span_and_metric(origin, carpool, collector):
    port, received = collector
    o = origin()
    c = carpool(otlp={"endpoint": "http://127.0.0.1:%d" % port, "interval": "100ms", "sample": 1, "service_name": "orders"})
    with c.client() as client:
        for _ in range(200):
            assert client.get(o.url + "/a?key=planted", ("traceparent", "00-%s-00f067aa0ba902b7-01" % TRACE)).status == 200
        assert client.get(o.url + "/own").status == 200

    def spans():
        return [s for r in received("resourceSpans") for scope in r["scopeSpans"] for s in scope["spans"]]
    until(lambda: len(spans()) == 201, what="every span")
    until(lambda: c.metric("carpool_otlp_spans_total", result="exported") == 201, what="the count")
    assert c.metric("carpool_otlp_spans_total") == 201, "none was rejected or dropped"
    child = [s for s in spans() if s["traceId"] == TRACE]
    assert len(child) == 200 and {s["parentSpanId"] for s in child} == {"00f067aa0ba902b7"}
    assert len({s["spanId"] for s in spans()}) == 201
    sent = {s.message.get("traceparent").split("-")[2] for s in o.seen}
    assert sent == {s["spanId"] for s in spans()}, "the origin's parents are these spans"
    one = values(child[0]["attributes"])
    assert one["http.response.status_code"] == "200" and one["url.full"] == o.url + "/a?key=***"
    assert child[0]["kind"] == 3 and {"carpool.send", "carpool.first_byte"} <= {e["name"] for e in child[0]["events"]}
    root = next(s for s in spans() if s["traceId"] != TRACE)
    assert not root.get("parentSpanId")
    resources = received("resourceSpans") + received("resourceMetrics")
    assert {values(r["resource"]["attributes"])["service.name"] for r in resources} == {"orders"}

    def counted():
        for r in received("resourceMetrics"):
            for metric in (m for scope in r["scopeMetrics"] for m in scope["metrics"]):
                for p in metric.get("sum", {}).get("dataPoints", ()):
                    if metric["name"] == "carpool_requests_total" and values(p["attributes"]).get("origin") == o.url:
                        yield p["asDouble"]
    until(lambda: 201 in counted(), what="the metric")
    # An export may end between the two readings.
    until(lambda: c.metric("carpool_otlp_requests_total") == c.metric("carpool_otlp_requests_total", result="accepted"), what="accepted")
