"""A real Prometheus: it scrapes, our rules load and fire on an induced fault, and every query of the dashboard has data."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import time
import urllib.parse
import urllib.request

import pytest
import requests
from harness.authority import Authority
from harness.carpool import ROOT
from harness.origin import Gate
from harness.ports import free_port
from harness.wait import until

RULES = ROOT / "deploy/prometheus"
PATH = "%s:%s" % (ROOT / "build/tools", os.environ["PATH"])  # deploy/setup unpacks them there
PROMETHEUS, PROMTOOL = shutil.which("prometheus", path=PATH), shutil.which("promtool", path=PATH)
UNUSED = {"Requests sent again, by proof"}  # this series begins with the first retry


@pytest.fixture(autouse=True)
def installed():
    if not (PROMETHEUS and PROMTOOL):
        pytest.skip("no Prometheus is installed")


class Prometheus:
    def __init__(self, folder, target, rules=()):
        self.url = "http://127.0.0.1:%d" % free_port()
        config = {"global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "rule_files": [str(r) for r in rules],
                  "scrape_configs": [{"job_name": "carpool", "static_configs": [{"targets": [target]}]}]}
        (folder / "prometheus.yml").write_text(json.dumps(config))
        self._process = subprocess.Popen(
            [PROMETHEUS, "--config.file=%s" % (folder / "prometheus.yml"), "--storage.tsdb.path=%s" % (folder / "data"),
             "--web.listen-address=%s" % self.url.removeprefix("http://"), "--log.level=error"])
        until(self._ready, 30, "Prometheus")

    def _ready(self):
        try:
            return urllib.request.urlopen(self.url + "/-/ready", timeout=5).status == 200
        except OSError:
            return False

    def get(self, path, **query):
        with urllib.request.urlopen(self.url + path + "?" + urllib.parse.urlencode(query), timeout=20) as response:
            return json.load(response)["data"]

    def ask(self, expression):
        return self.get("/api/v1/query", query=expression)["result"]

    def stop(self):
        self._process.terminate()
        self._process.wait(20)


@pytest.fixture
def prometheus(tmp_path):
    started = []

    def start(c, rules=()):
        started.append(Prometheus(tmp_path, "%s:%d" % c.admin_address, rules))
        return started[-1]
    yield start
    for one in started:
        one.stop()


def eager_alerts(tmp_path):
    """The alerts as they are, but without `for`, and with a window of a few seconds."""
    files = []
    for name in ("recording.yml", "alerts.yml"):
        text = re.sub(r"\n\s+for: \w+", "", (RULES / name).read_text())
        (tmp_path / name).write_text(re.sub(r"\[\d+m\]", "[10s]", text))
        files.append(tmp_path / name)
    return files


def test_the_rules_hold_what_their_own_tests_say():
    for command in (["check", "rules", "recording.yml", "alerts.yml"], ["test", "rules", "rules_test.yml"]):
        done = subprocess.run([PROMTOOL, *command], cwd=RULES, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr


def test_what_we_export_pleases_promtool(origin, carpool):
    o, c = origin(), carpool()
    with c.client() as client:
        client.get(o.url + "/")
    page = c.admin("GET", "/metrics").body
    done = subprocess.run([PROMTOOL, "check", "metrics"], input=page, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_exhausted_pool_and_a_failing_origin_raise_their_alerts(origin, carpool, prometheus, tmp_path):
    gate = Gate()

    def held(exchange):
        exchange.read_body()
        gate.enter()
        exchange.reply()
    o, c = origin(held), carpool(pool={"size": 1, "wait_timeout": "60s"})
    nobody = "http://127.0.0.1:%d" % free_port()
    p = prometheus(c, eager_alerts(tmp_path))
    clients = [c.client() for _ in range(3)]
    for client in clients:
        client.ask("GET", o.url + "/")
    with c.client() as unlucky:
        def firing():
            for _ in range(3):
                unlucky.get(nobody + "/")
            return {(a["labels"]["alertname"], a["labels"].get("origin")) for a in p.get("/api/v1/alerts")["alerts"] if a["state"] == "firing"}
        wanted = {("CarpoolPoolExhausted", o.url), ("CarpoolOriginFailing", nobody), ("CarpoolConnectionsFail", nobody)}
        until(lambda: wanted <= firing(), 40, "the alerts")
    gate.open()
    for client in clients:
        assert client.response().status == 200
        client.close()
    until(lambda: ("CarpoolPoolExhausted", o.url) not in {(a["labels"]["alertname"], a["labels"].get("origin")) for a in p.get("/api/v1/alerts")["alerts"]},
          30, "the end of the alert")


def test_waits_leaks_poor_reuse_scarce_descriptors_and_silence_raise_theirs(origin, carpool, prometheus, tmp_path):
    gate = Gate()

    def held(exchange):
        if exchange.request.target == "/held":
            gate.enter()
        exchange.reply()
    slow, wasteful = origin(held), origin()
    c = carpool(inside=["prlimit", "--nofile=200:200"], origin=[
        {"uri": slow.url, "pool": {"size": 1, "wait_timeout": "60s", "leak_timeout": "200ms"}},
        {"uri": wasteful.url, "pool": {"max_usage": 1}}])
    p = prometheus(c, eager_alerts(tmp_path))

    def firing():
        return {(a["labels"]["alertname"], a["labels"].get("origin")) for a in p.get("/api/v1/alerts")["alerts"] if a["state"] == "firing"}
    with c.client() as client:
        for _ in range(10):  # from then on its percentiles are there
            assert client.get(slow.url + "/").status == 200
    until(lambda: p.ask('carpool_pool_leaks_total{origin="%s"}' % slow.url), 40, "a look before the fault")
    with contextlib.ExitStack() as stack:
        descriptors = pathlib.Path("/proc/%d/fd" % c.process.pid)
        until(lambda: stack.enter_context(c.client()).get(wasteful.url + "/").status == 200 and len(list(descriptors.iterdir())) > 163,
              40, "clients")
        clients = [stack.enter_context(c.client()) for _ in range(2)]
        clients[0].ask("GET", slow.url + "/held")
        gate.wait_for(1)
        clients[1].ask("GET", slow.url + "/")  # waits for the only connection
        until(lambda: c.pool(slow.url)["max_wait_seconds"] > 1.5, what="a long wait")
        gate.open()
        assert [one.response().status for one in clients] == [200, 200]
        seen = set()

        def look():
            for _ in range(5):
                with c.client() as one:
                    assert one.get(wasteful.url + "/").status == 200
            seen.update(firing())
            return wanted <= seen
        wanted = {("CarpoolWaitsTooLong", slow.url), ("CarpoolLeaks", slow.url), ("CarpoolPoorReuse", wasteful.url),
                  ("CarpoolNearDescriptorLimit", None)}
        until(look, 40, "the alerts")
    c.stop()
    until(lambda: ("CarpoolDown", None) in firing(), 40, "the last one")


def queries():
    board = json.loads((ROOT / "deploy/grafana/carpool.json").read_text())
    for panel in board["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], re.sub(r"\$(instance|origin)\b", ".*", target["expr"].replace("$__rate_interval", "10s").replace("[1h]", "[10s]"))


def test_every_query_of_the_dashboard_has_data(origin, carpool, prometheus, pki, tmp_path):
    import ssl
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pki.server, pki.server_key)
    plain, secure, inside = origin(), origin(tls=context), origin(tls=context)
    authority = Authority(tmp_path / "ca", ["localhost"])
    intercepted = "https://localhost:%d" % inside.port
    c = carpool(upstream={"tls": {"ca_file": pki.ca}}, intercept={"ca_dir": str(authority.folder)},
                origin=[{"uri": intercepted, "intercept": True}, {"uri": secure.url, "pool": {"max_usage": 1}}])
    proxies = {"https": "http://%s:%d" % c.address}
    p = prometheus(c, [RULES / "recording.yml", RULES / "alerts.yml"])
    missing = dict(queries())
    assert len(missing) >= 20
    deadline = time.monotonic() + 40
    with c.client() as client:
        while not set(missing) <= UNUSED and time.monotonic() < deadline:
            for o in (plain, secure):
                assert client.get(o.url + "/").status == 200
            assert requests.get(intercepted + "/", proxies=proxies, verify=str(authority.ca), timeout=20).status_code == 200
            client.get("http://127.0.0.1:1/")
            for title, expression in list(missing.items()):
                if p.ask(expression):
                    del missing[title]
    assert set(missing) <= UNUSED, missing
    up = p.get("/api/v1/targets")["activeTargets"]
    assert [t["health"] for t in up] == ["up"] and pathlib.Path(tmp_path).exists()
