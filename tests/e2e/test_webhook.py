"""`carpool webhook` as the API server uses it: AdmissionReviews over HTTPS, rotated files, and its end."""
import base64
import http.client
import json
import pathlib
import re
import resource
import signal
import socket
import subprocess
import time

import pytest
from harness.carpool import PROGRAM, SANITIZED
from harness.wait import until
from harness.webhook import INJECTION, Webhook, certificate, pod


def patch_of(response):
    return {op["path"]: op["value"] for op in json.loads(base64.b64decode(response["patch"]))}


def test_a_labelled_pod_gets_the_sidecar(webhook):
    response = webhook.review(pod())
    patch = patch_of(response)
    assert response["allowed"] and response["uid"] == "1" and response["patchType"] == "JSONPatch"
    assert patch["/spec/initContainers"][0]["name"] == "carpool"
    assert patch["/spec/containers/0/env"] == INJECTION["env"]
    assert "api.example.com" in patch["/metadata/annotations/carpool.io~1effective-config"]


def test_one_annotation_intercepts_with_an_authority_of_the_pods_own(webhook, tmp_path):
    ca, trust = str(tmp_path / "ca"), str(tmp_path / "trust")
    sidecar = INJECTION["initContainers"]
    parts = {"caDir": ca, "authority": "carpool-ca", "env": [{"name": "SSL_CERT_FILE", "value": trust + "/bundle.pem"}],
             "initContainers": [{"name": "carpool-ca", "args": ["ca", "init", ca, "--trust", trust, "--days", "30", "--host"]}, *sidecar],
             "volumeMounts": [{"name": "carpool-trust", "mountPath": trust, "readOnly": True}]}
    (webhook.folder / "injection.json").write_text(json.dumps({**INJECTION, "intercept": parts}))
    webhook.line("reloaded")
    asking = pod(**{"carpool.io/intercept": "api.example.com, s3.example.com:8443"})
    del asking["metadata"]["labels"]
    patch = patch_of(webhook.review(asking))
    authority, after = patch["/spec/initContainers"][0], patch["/spec/initContainers/1"]
    assert (authority["name"], after["name"]) == ("carpool-ca", "carpool")
    assert patch["/spec/containers/0/env"] == parts["env"] and patch["/spec/containers/0/volumeMounts"] == parts["volumeMounts"]
    config = tmp_path / "config.toml"
    config.write_text(patch["/metadata/annotations/carpool.io~1effective-config"])

    def run(*words):
        return subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=60)
    assert run("--check", "--config", config).returncode == 1, "there is no authority yet"
    assert run(*authority["args"]).returncode == 0
    checked = run("--check", "--config", config)
    assert checked.returncode == 0, checked.stderr
    shown = run("--print-config", "--config", config).stdout
    assert shown.count("intercept = true") == 2 and "https://s3.example.com:8443" in shown
    refused = webhook.review(pod(**{"carpool.io/intercept": "*.example.com"}))
    assert not refused["allowed"] and "carpool.io/intercept: `*.example.com` is a pattern" in refused["status"]["message"]


def test_many_reviews_share_a_connection_and_are_counted(webhook):
    wire = webhook.wire()
    for _ in range(50):
        assert "patch" in webhook.review(pod(), wire)
    bare = {"metadata": {}, "spec": {"containers": []}}
    assert "patch" not in webhook.review(bare, wire)
    refused = webhook.review(pod(**{"carpool.io/config-overlay": "[pool]\nsise = 1"}), wire)
    assert not refused["allowed"] and "pool.sise" in refused["status"]["message"]
    status, text = webhook.ask("GET", "/metrics", wire=wire)
    assert status == 200
    for outcome, count in (("injected", 50), ("untouched", 1), ("refused", 1), ("malformed", 0)):
        assert 'carpool_webhook_reviews_total{outcome="%s"} %d' % (outcome, count) in text


def test_a_refusal_shows_control_characters_as_escapes(webhook):
    overlay = '[[origin]]\nuri = "https://b.test"\nalias = ["\\u001b[31m"]\n'
    for annotation in ({"carpool.io/config-overlay": overlay}, {"carpool.io/intercept": "\x1b[31m"}, {"carpool.io/intercept": "\x1b[31m:x"}):
        refused = webhook.review(pod(**annotation))
        assert not refused["allowed"] and "\\u001B[31m" in refused["status"]["message"] and "\x1b" not in refused["status"]["message"]


def test_a_large_review_passes_and_a_huge_one_is_refused(webhook):
    large = pod()
    large["spec"]["containers"][0]["args"] = ["x" * 1_000_000]
    assert "patch" in webhook.review(large)
    status, _ = webhook.ask("POST", "/inject", "x" * 5_000_000)
    assert status == 413


def test_bodies_that_never_end_share_a_limit(webhook):
    def resident():
        status = pathlib.Path("/proc/%d/status" % webhook.process.pid).read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) * 1024
    before, wires = resident(), []
    for _ in range(20):
        wire = webhook.wire()
        wire.putrequest("POST", "/inject")
        wire.putheader("Content-Length", "4000000")
        wire.endheaders(b"x" * 3_900_000)
        wires.append(wire)
    assert wires[0].sock.recv(1) == b"", "the one that has been incomplete for longest"
    text = webhook.ask("GET", "/metrics")[1]
    assert int(re.search(r'^carpool_webhook_shed_total\{what="body"\} (\d+)$', text, re.M).group(1)) >= 16
    assert "patch" in webhook.review(pod())
    if not SANITIZED:
        assert resident() - before < 40 << 20
    for wire in wires:
        wire.close()


def test_the_memory_of_a_body_counts_not_its_size(webhook):
    """Memory doubles: each of these has 4 MiB, and the fourth is the first beyond 12 MiB."""
    wires = []
    for _ in range(4):
        wire = webhook.wire()
        wire.putrequest("POST", "/inject")
        wire.putheader("Content-Length", "4000000")
        wire.endheaders(b"x" * 2_200_000)
        wires.append(wire)
    assert wires[0].sock.recv(1) == b"", "the one that has been incomplete for longest"
    text = webhook.ask("GET", "/metrics")[1]
    assert 'carpool_webhook_shed_total{what="body"} 1\n' in text
    for wire in wires:
        wire.close()


def test_reviews_over_a_limit_are_counted(webhook):
    long = pod(**{"carpool.io/config-overlay": "#" * (256 * 1024 + 1)})
    assert "262144" in webhook.review(long)["status"]["message"]
    many = "[" + "0," * 100_000 + "0]"
    assert webhook.ask("POST", "/inject", many)[0] == webhook.ask("POST", "/inject", many)[0] == 400
    assert webhook.ask("POST", "/inject", "{}")[0] == 400  # malformed, but over no limit
    text = webhook.ask("GET", "/metrics")[1]
    for limit, count in (("body", 2), ("overlay", 1)):
        assert 'carpool_webhook_limits_total{limit="%s"} %d' % (limit, count) in text


def test_what_is_no_review_is_refused(webhook):
    assert webhook.ask("POST", "/inject", "{}")[0] == 400
    wire = webhook.wire()
    wire.request("GET", "/inject")
    response = wire.getresponse()
    assert response.status == 405 and response.getheader("Allow") == "POST"
    assert webhook.ask("GET", "/elsewhere")[0] == 404
    assert webhook.ask("GET", "/livez")[0] == webhook.ask("GET", "/readyz")[0] == 200
    assert "patch" in webhook.review(pod())


def test_plain_text_and_silence_do_not_disturb_it(webhook):
    plain = http.client.HTTPConnection("127.0.0.1", webhook.port, timeout=10)
    with pytest.raises((OSError, http.client.HTTPException)):
        plain.request("GET", "/livez")
        plain.getresponse()
    assert "patch" in webhook.review(pod())


def test_a_renewed_certificate_is_served_and_a_wrong_one_is_not(webhook):
    before = webhook.wire()
    assert "patch" in webhook.review(pod(), before)
    certificate(webhook.folder, "second")
    webhook.line("reloaded")
    assert "patch" in webhook.review(pod())  # the new one is trusted now
    assert "patch" in webhook.review(pod(), before)  # the earlier client stays
    good = (webhook.folder / "tls.crt").read_bytes()
    (webhook.folder / "trust.crt").write_bytes(good)
    (webhook.folder / "tls.crt").write_text("no certificate")
    assert "tls.crt" in webhook.line("reload refused")
    assert "patch" in webhook.review(pod(), webhook.wire(webhook.folder / "trust.crt"))


def test_what_is_injected_can_be_changed(webhook):
    (webhook.folder / "injection.json").write_text(json.dumps({**INJECTION, "env": [{"name": "other", "value": "1"}]}))
    webhook.line("reloaded")
    assert patch_of(webhook.review(pod()))["/spec/containers/0/env"] == [{"name": "other", "value": "1"}]


def test_a_reload_that_finds_no_descriptor_is_tried_again(webhook):
    # Three, which are open, so that the log may poll its own.
    before = resource.prlimit(webhook.process.pid, resource.RLIMIT_NOFILE, (3, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    (webhook.folder / "injection.json").write_text(json.dumps({**INJECTION, "env": [{"name": "other", "value": "1"}]}))
    webhook.line("reload refused")
    resource.prlimit(webhook.process.pid, resource.RLIMIT_NOFILE, before)
    webhook.line("reloaded")
    assert patch_of(webhook.review(pod()))["/spec/containers/0/env"] == [{"name": "other", "value": "1"}]


def test_hup_reloads_and_usr1_ends_nothing(webhook):
    webhook.process.send_signal(signal.SIGUSR1)
    webhook.process.send_signal(signal.SIGHUP)
    webhook.line("reloaded")
    assert "patch" in webhook.review(pod())


def test_its_metrics_have_the_end_of_the_certificate(webhook):
    text = webhook.ask("GET", "/metrics")[1]
    end = re.search(r'^carpool_certificate_end_timestamp_seconds\{use="webhook",file="(.*)"\} (\S+)$', text, re.M)
    assert end.group(1) == str(webhook.folder / "tls.crt")
    assert 24 * 3600 < float(end.group(2)) - time.time() <= 2 * 24 * 3600


def test_it_ends_on_term_with_clients_at_rest(webhook):
    wire = webhook.wire()
    assert "patch" in webhook.review(pod(), wire)
    webhook.process.send_signal(signal.SIGTERM)
    assert webhook.process.wait(10) == 0


@pytest.fixture
def half_sent(webhook):
    """A review of which only the first part has arrived, the response to it, and how its rest is sent."""
    text = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
                       "request": {"uid": "1", "kind": {"kind": "Pod"}, "operation": "CREATE", "object": pod()}}).encode()
    wire = webhook.wire()
    assert webhook.ask("GET", "/livez", wire=wire)[0] == 200
    wire.putrequest("POST", "/inject")
    wire.putheader("Content-Length", str(len(text)))
    wire.endheaders(text[:100])
    return wire, lambda: wire.send(text[100:])


def stop(webhook):
    webhook.process.send_signal(signal.SIGTERM)

    def stopped():
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", webhook.port)) != 0
    until(stopped, what="the end of listening")


def test_on_term_a_request_that_has_begun_to_arrive_is_answered(webhook, half_sent):
    wire, send_rest = half_sent
    idle = webhook.wire()
    assert webhook.ask("GET", "/livez", wire=idle)[0] == 200
    stop(webhook)
    assert idle.sock.recv(1) == b""
    send_rest()
    response = wire.getresponse()
    assert (response.status, response.getheader("connection")) == (200, "close")
    assert "patch" in json.loads(response.read())["response"]
    assert webhook.process.wait(10) == 0


def test_a_second_term_does_not_wait_for_such_a_request(webhook, half_sent):
    stop(webhook)
    webhook.process.send_signal(signal.SIGTERM)
    assert webhook.process.wait(10) == 0


def test_it_accepts_for_the_drain_delay_after_term_while_it_is_not_ready(tmp_path):
    webhook = Webhook(tmp_path, "--drain-delay=3s")
    try:
        began = time.monotonic()
        webhook.process.send_signal(signal.SIGTERM)
        until(lambda: webhook.ask("GET", "/readyz")[0] == 503, what="draining")
        wire = webhook.wire()
        assert "patch" in webhook.review(pod(), wire)
        assert wire.sock is None  # the response has `Connection: close`
        assert webhook.process.wait(10) == 0
        assert time.monotonic() - began > 2.9
    finally:
        webhook.stop()


def test_a_second_term_does_not_wait_for_the_drain_delay(tmp_path):
    webhook = Webhook(tmp_path, "--drain-delay", "1h")
    try:
        webhook.process.send_signal(signal.SIGTERM)
        until(lambda: webhook.ask("GET", "/readyz")[0] == 503, what="draining")
        webhook.process.send_signal(signal.SIGTERM)
        assert webhook.process.wait(10) == 0
    finally:
        webhook.stop()


def test_a_wrong_command_line_or_file_says_so(tmp_path):
    def run(*words):
        return subprocess.run([PROGRAM, "webhook", *words], capture_output=True, text=True, timeout=20)
    assert run("--sekrit", "x").returncode == 1
    wrong = run("--drain-delay", "5")
    assert wrong.returncode == 1 and "needs a duration such as 5s, not `5`" in wrong.stderr
    done = run("--listen", "127.0.0.1:0", "--certificate", tmp_path / "none.crt", "--key", tmp_path / "none.key")
    assert done.returncode == 1 and "none.crt" in done.stderr
    shown = run("--help").stdout
    assert "--injection" in shown and "2 cannot listen" in shown


def test_an_address_in_use_has_its_exit_code(webhook):
    done = subprocess.run([PROGRAM, "webhook", "--listen", "127.0.0.1:%d" % webhook.port, "--certificate", webhook.folder / "tls.crt", "--key",
                           webhook.folder / "tls.key", "--injection", webhook.folder / "injection.json"],
                          capture_output=True, text=True, timeout=20)
    assert done.returncode == 2 and "in use" in done.stderr, done.stderr
