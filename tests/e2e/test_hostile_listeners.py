"""Hostile clients and files at the interfaces beside the proxy's own: webhook, admin, metrics, the configuration file. Each test checks
how other clients are served meanwhile."""
import json
import socket
import subprocess
import threading
import time

import pytest
from harness.acceptor import Acceptor
from harness.carpool import PROGRAM, SANITIZED, Carpool
from harness.ports import free_port, tcp_server
from harness.wait import until
from harness.webhook import pod

OVERLAY = "carpool.io/config-overlay"
LEVELS = 100_000


def deep_tomls():
    yield "x = " + "[" * LEVELS
    yield "x = " + "[" * LEVELS + "]" * LEVELS
    yield "x = " + "{a=" * (LEVELS // 2)
    yield "a." * LEVELS + "b = 1"
    yield "[" + "a." * LEVELS + "b]"
    yield "[pool]\nx = {" + "a." * LEVELS + "b = 1}"


def deep_bodies():
    yield "[" * LEVELS
    yield '{"a":' * LEVELS
    yield '{"level":' + "[" * LEVELS + "]" * LEVELS + "}"


def idle_connections(port, count):
    """Opens as many as the system accepts; those that the other side closes are closed."""
    made = []
    for _ in range(count):
        made.append(socket.create_connection(("127.0.0.1", port), 5))
    return made


# ---- the webhook

def test_a_webhook_cuts_no_character_of_a_refusal_in_two(webhook):
    for ascii in range(70, 84):
        for overlay in ('[[origin]]\nuri = "http://%séé/é"\n', '[log]\nlevel = "%sééé"\n', '[pool]\nidle_timeout = "%sééé"\n'):
            response = webhook.review(pod(**{OVERLAY: overlay % ("a" * ascii)}))
            assert not response["allowed"] and OVERLAY in response["status"]["message"]


def test_a_webhook_refuses_what_nests_and_lives(webhook):
    for text in deep_tomls():
        response = webhook.review(pod(**{OVERLAY: text}))
        assert not response["allowed"] and "nests deeper than 16 levels" in response["status"]["message"]
    for body in deep_bodies():
        status, text = webhook.ask("POST", "/inject", body)
        assert status == 400 and "nests deeper than 64 levels" in text
    nested = json.dumps({"apiVersion": "admission.k8s.io/v1", "request": {"uid": "1", "object": {"x": "@"}}})
    status, _ = webhook.ask("POST", "/inject", nested.replace('"@"', "[" * LEVELS + "]" * LEVELS))
    assert status == 400
    assert "patch" in webhook.review(pod())


def test_a_webhook_refuses_reviews_of_too_many_values(webhook):
    status, text = webhook.ask("POST", "/inject", "{" + ",".join('"a%d":1' % i for i in range(150_000)) + "}")
    assert status == 400 and "has more than 100000 values" in text


@pytest.mark.skipif(SANITIZED, reason="measures time")
def test_an_overlay_of_many_origins_takes_no_more_than_its_length(webhook):
    def took(count):
        start = time.monotonic()
        response = webhook.review(pod(**{OVERLAY: "".join('[[origin]]\nuri = "http://a%d"\n' % i for i in range(count))}))
        assert response["allowed"]
        return time.monotonic() - start
    took(100)
    small, large = min(took(700) for _ in range(3)), min(took(7000) for _ in range(3))
    assert large < 40 * max(small, 0.01), (small, large)


def test_an_overlay_longer_than_an_annotation_is_refused(webhook):
    response = webhook.review(pod(**{OVERLAY: "#" * 300_000}))
    assert not response["allowed"] and "is longer than 262144 bytes" in response["status"]["message"]


def test_clients_that_do_not_end_their_handshake_keep_no_review_out(webhook):
    held = idle_connections(webhook.port, 200)
    assert "patch" in webhook.review(pod())
    _, text = webhook.ask("GET", "/metrics")
    line = next(line for line in text.splitlines() if line.startswith('carpool_webhook_shed_total{what="handshake"}'))
    assert int(line.split()[-1]) >= 200 - 64
    for one in held:
        one.close()


def test_clients_that_say_nothing_after_their_handshake_keep_no_review_out(webhook):
    held = [webhook.wire() for _ in range(140)]
    for one in held:
        one.connect()
    assert "patch" in webhook.review(pod())
    for one in held:
        one.close()


# ---- admin and metrics

@pytest.mark.parametrize("held", ["admin", "metrics"])
def test_idle_connections_to_a_door_keep_no_probe_out_of_any(carpool, held):
    port = free_port()
    c = carpool(metrics={"address": "127.0.0.1:%d" % port})
    listeners = {"admin": c.admin_address, "metrics": ("127.0.0.1", port)}
    idle = idle_connections(listeners[held][1], 300)
    for address in listeners.values():
        for path in ("/livez", "/readyz", "/metrics"):
            with socket.create_connection(address, 5) as probe:
                probe.sendall(("GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n" % path).encode())
                assert probe.recv(12) == b"HTTP/1.1 200", (path, address)
    assert c.metric("carpool_admin_shed_total", door=held, what="idle") >= 300 - 128
    assert c.metric("carpool_admin_shed_total", door="metrics" if held == "admin" else "admin") == 0
    for one in idle:
        one.close()


def test_clients_that_take_no_answer_keep_no_probe_out(carpool):
    port = free_port()
    c = carpool(metrics={"address": "127.0.0.1:%d" % port})
    greedy = idle_connections(port, 200)
    for one in greedy:
        try:
            one.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 20)
        except OSError:
            pass  # closed for another
    with socket.create_connection(("127.0.0.1", port), 5) as probe:
        probe.sendall(b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        assert probe.recv(12) == b"HTTP/1.1 200"
    assert c.admin("GET", "/readyz").status == 200
    for one in greedy:
        one.close()


def test_a_change_that_names_two_origins_or_another_scheme_is_refused(carpool):
    c = carpool()
    own = "http://127.0.0.1:%d" % c.admin_address[1]
    level = "/log-level?level=info"
    assert c.admin("PUT", level, [("Origin", own)]).status == 200
    assert c.admin("PUT", level, [("Origin", own), ("Origin", "http://evil.example")]).status == 403
    assert c.admin("PUT", level, [("Origin", own.replace("http:", "https:"))]).status == 403
    assert c.admin("GET", level).status == 400, "GET sets nothing"


def test_a_body_that_nests_is_refused_and_the_proxy_lives(carpool):
    c = carpool()
    for body in (b'{"level":' + b"[" * 15000 + b"}", b'{"a":' * 2600 + b"1" + b"}" * 2600, b'{"x":' + b'{"a":' * 2600 + b"1" + b"}" * 2600 + b',"b":1}',
                 b'{"x":' + b"[" * 8000 + b"]" * 8000 + b',"b":1,"c":2}'):
        with socket.create_connection(c.admin_address, 5) as admin:
            admin.sendall(b"PUT /log-level HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            assert admin.recv(12) == b"HTTP/1.1 400"
    assert c.admin("GET", "/livez").status == 200


# ---- commands

class Liar:
    """Responds to each request with the same body."""

    def __init__(self, body):
        self.body = body
        server = tcp_server()
        self.address = "127.0.0.1:%d" % server.getsockname()[1]
        self.acceptor = Acceptor(server, self.serve)

    def serve(self, client):
        with client:
            client.recv(65536)
            client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(self.body) + self.body)


@pytest.mark.parametrize("body", [b"[" * LEVELS, b'{"pools":' * LEVELS + b"1" + b"}" * LEVELS, b'{"pools": ' + b"[" * LEVELS + b"]" * LEVELS + b', "b": 1}',
                                  b'{"pools": [1]}', b'{"pools": [{"borrowed": "x", "origin": 1}, {}]}', b'{"pools": "x"}', b"\xff"])
def test_a_command_that_is_lied_to_says_so_or_shows_it(body):
    liar = Liar(body)
    for command in (["pools"], ["top", "--once"], ["pools", "--json"], ["pool", "example"], ["threads"]):
        done = subprocess.run([PROGRAM, *command, "--admin", liar.address], capture_output=True, timeout=20)
        assert done.returncode in (0, 3), (command, done)
    liar.acceptor.stop()


# ---- the configuration file

def test_a_file_that_nests_is_refused_by_reload_and_by_check(carpool):
    c = carpool()
    good = c.config.read_text()
    for text in deep_tomls():
        c.config.write_text(text)
        assert "nests deeper than 16 levels" in c.check()
        response = c.admin("POST", "/reload")
        assert response.status == 400 and b"nests deeper than 16 levels" in response.body
    c.config.write_text(good)
    assert c.admin("POST", "/reload").status == 200


def test_a_file_without_end_is_refused(tmp_path):
    c = Carpool(tmp_path, start=False)
    c.config = "/dev/zero"
    assert "longer than 16777216 bytes" in c.check()


def test_a_variable_that_holds_structure_is_a_text(carpool, monkeypatch):
    monkeypatch.setenv("DEEP", "[" * LEVELS)
    c = carpool(start=False)
    c.config.write_text(c.config.read_text() + '\n[dns]\nmin_ttl = "${DEEP}"\n')
    assert "expected a duration" in c.check() or "expands to more than" in c.check()


def shown(c):
    return c.admin("GET", "/config.toml").body.decode()


def with_retries(text, count):
    return text.replace("max_retries = 1", "max_retries = %d" % count)


def test_a_file_that_is_back_where_it_was_after_a_reload_in_between_is_read_again(carpool):
    c = carpool(request={"max_retries": 1})
    text = c.config.read_text()
    c.config.write_text(with_retries(text, 4))
    assert c.admin("POST", "/reload").status == 200
    c.config.write_text(text)
    until(lambda: "max_retries = 1" in shown(c), what="the file's content in force")


def test_a_file_in_a_directory_that_is_never_quiet_is_read_within_seconds(carpool):
    c = carpool(request={"max_retries": 1})
    stop = threading.Event()

    def noise():
        while not stop.wait(0.02):
            (c.folder / "noise").write_text("x")
    thread = threading.Thread(target=noise)
    thread.start()
    try:
        c.config.write_text(with_retries(c.config.read_text(), 4))
        until(lambda: "max_retries = 4" in shown(c), 8, "the changed file in force")
    finally:
        stop.set()
        thread.join()
