"""The admin endpoint over HTTP/2: the same responses and rules as over HTTP/1.1, many streams at once, and clients that misuse it."""
import contextlib
import json
import shutil
import signal
import socket
import struct
import subprocess
import urllib.request

import h2.settings
import pytest
from harness.carpool import SANITIZED, Carpool
from harness.h2_client import CONTINUATION, DATA, HEADERS, PING, PREFACE, PRIORITY, RST, SETTINGS, WINDOW, H2Client, frame
from harness.ports import free_port
from harness.wait import until


@pytest.fixture
def proxy(tmp_path):
    c = Carpool(tmp_path)
    yield c
    c.stop()


def ended(client, *streams):
    while not all(client.responses[s].ended or client.responses[s].reset is not None for s in streams):
        assert client.read()
    return [client.responses[s] for s in streams]


def ask(client, path, **how):
    return ended(client, client.ask(path, authority="localhost", **how))[0]


def over_h1(c, path):
    with urllib.request.urlopen("http://127.0.0.1:%d%s" % (c.admin_address[1], path)) as response:
        return response.status, response.headers, response.read()


def abuses(c):
    lines = over_h1(c, "/metrics")[2].decode().splitlines()
    counts = [line.removeprefix('carpool_admin_abuse_total{door="admin",kind="') for line in lines if line.startswith("carpool_admin_abuse_total")]
    return {line.split('"')[0] for line in counts if not line.endswith(" 0")}


def test_a_response_is_the_same_over_both_protocols(proxy):
    with H2Client(proxy.admin_address) as client:
        for path in ("/livez", "/readyz", "/version", "/config", "/config.toml", "/log-level", "/openapi.json"):
            status, headers, body = over_h1(proxy, path)
            response = ask(client, path)
            assert (response.status, response.get("content-type"), response.body) == (status, headers["Content-Type"], body), path
            head = ask(client, path, method="HEAD")
            assert head.get("content-length") == headers["Content-Length"] and head.body == b""


def test_the_rules_of_access_are_the_same(proxy):
    with H2Client(proxy.admin_address) as client:
        foreign = ended(client, client.ask("/pools", authority="evil.example"))[0]
        assert foreign.status == 403 and "Host must be" in json.loads(foreign.body)["detail"]
        forged = ask(client, "/quit", method="POST", headers=[("sec-fetch-site", "cross-site")])
        assert forged.status == 403 and "another site" in json.loads(forged.body)["detail"]
        unknown = ask(client, "/nope")
        assert unknown.status == 404 and unknown.get("content-type") == "application/problem+json"
        assert ask(client, "/livez", method="POST").get("allow") == "GET, HEAD"
        assert ask(client, "/livez").status == 200


def test_sixty_four_streams_mix_scrapes_dumps_probes_and_a_reload(proxy):
    paths = ["/metrics", "/pools", "/readyz", "/threads", "/config", "/overload", "/livez"]
    with H2Client(proxy.admin_address) as client:
        client.ask("/livez", authority="localhost")
        for _ in range(5):
            streams = [client.ask("/reload?dry_run=1", method="POST", authority="localhost")]
            streams += [client.ask(paths[i % len(paths)], authority="localhost") for i in range(63)]
            assert {a.status for a in ended(client, *streams)} == {200}


def test_a_window_of_zero_holds_its_responses_and_no_other_client(proxy):
    with H2Client(proxy.admin_address) as slow, H2Client(proxy.admin_address) as other:
        slow.h2.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: 0})
        slow.flush()
        stuck = [slow.ask("/metrics", authority="localhost") for _ in range(40)]
        assert ask(other, "/metrics").status == 200
        probe = slow.ask("/nope-has-a-body", authority="localhost")
        while not slow.responses[stuck[15]].headers:
            assert slow.read()
        assert all(not slow.responses[s].body for s in stuck)
        for stream in [*stuck, probe]:
            slow.h2.increment_flow_control_window(1 << 20, stream)
        slow.h2.increment_flow_control_window(1 << 28)
        slow.flush()
        responses = ended(slow, *stuck, probe)
        assert {a.status for a in responses[:-1]} == {200} and responses[-1].status == 404
        assert all(a.body.endswith(b"\n") for a in responses[:-1])


def test_events_follow_over_http2(proxy):
    with H2Client(proxy.admin_address) as client:
        stream = client.ask("/events", authority="localhost")
        while client.responses[stream].body.count(b"event: ") < 2:
            assert client.read()
        assert client.responses[stream].body.startswith(b"event: state\n")
        assert ask(client, "/livez").status == 200


# :method GET, :scheme http, :path /livez, :authority localhost
LIVEZ = b"\x82\x86\x04\x06/livez\x01\x09localhost"
# An entry of 3,000 bytes in the table of header fields, and references to it.
BOMB = LIVEZ + b"\x40\x01a\x7f\xb9\x16" + b"x" * 3000 + b"\xbe" * 100
ABUSES = {
    "resets": lambda n: b"".join(frame(HEADERS, 5, i, LIVEZ) + frame(RST, 0, i, struct.pack(">I", 8)) for i in range(1, 2 * n, 2)),
    "resets of streams beyond the limit": lambda n: b"".join(frame(HEADERS, 4, i, LIVEZ) for i in range(1, 2 * n, 2)),
    "control": lambda n: frame(PING, 0, 0, b"12345678") * n + frame(SETTINGS, 0, 0) * n,
    "control by priorities and windows": lambda n: (frame(PRIORITY, 0, 1, b"\0\0\0\0\1") + frame(WINDOW, 0, 0, b"\0\0\0\1")) * n,
    "control by empty data": lambda n: frame(HEADERS, 4, 1, LIVEZ) + frame(DATA, 0, 1) * n,
    "header_list": lambda n: frame(HEADERS, 5, 1, BOMB),
    "continuations": lambda n: frame(HEADERS, 0, 1, LIVEZ) + frame(CONTINUATION, 0, 1, b"") * n,
}


@pytest.mark.parametrize("kind", ABUSES)
def test_a_flood_ends_its_connection_and_is_counted(proxy, kind):
    with H2Client(proxy.admin_address) as client:
        with contextlib.suppress(ConnectionError):
            for _ in range(20):
                client.sock.sendall(ABUSES[kind](1000))
        until(lambda: abuses(proxy) == {kind.split()[0]})  # while it is open: a reset would discard unread bytes
    assert over_h1(proxy, "/readyz")[0] == 200


ERRORS = {
    "a frame of a wrong size": (frame(SETTINGS, 0, 0, b"abc"), 6),
    "a window that overflows": (frame(WINDOW, 0, 0, b"\x7f\xff\xff\xff") * 2, 3),
    "a header block that cannot be decoded": (frame(HEADERS, 5, 1, b"\xff\xff\xff\xff\xff\xff\xff"), 9),
    "a frame inside a header block": (frame(HEADERS, 1, 1, LIVEZ) + frame(PING, 0, 0, b"12345678"), 1),
    "a stream of the server's": (frame(HEADERS, 5, 2, LIVEZ), 1),
}


@pytest.mark.parametrize("error", ERRORS)
def test_an_error_of_the_protocol_ends_its_connection_alone(proxy, error):
    data, code = ERRORS[error]
    with H2Client(proxy.admin_address) as client:
        client.sock.sendall(data)
        while client.read():
            pass
        assert [c for _, c in client.goaways] == [code]
    with H2Client(proxy.admin_address) as client:
        assert ask(client, "/livez").status == 200


def test_a_window_that_overflows_on_a_stream_ends_the_stream_alone(proxy):
    with H2Client(proxy.admin_address) as client:
        stream = client.ask("/log-level", method="PUT", authority="localhost", end=False)
        client.sock.sendall(frame(WINDOW, 0, stream, b"\x7f\xff\xff\xff"))
        assert client.until(lambda: client.responses[stream].reset == 3)
        assert ask(client, "/livez").status == 200 and not client.goaways


def test_idle_http2_connections_keep_no_probe_out(proxy):
    with contextlib.ExitStack() as stack:
        for _ in range(60):
            stack.enter_context(H2Client(proxy.admin_address)).flush()
        for _ in range(200):
            half = stack.enter_context(contextlib.closing(socket.create_connection(proxy.admin_address)))
            half.sendall(PREFACE[:10])
        assert over_h1(proxy, "/readyz")[0] == 200
        with H2Client(proxy.admin_address) as client:
            assert ask(client, "/readyz").status == 200


@pytest.mark.skipif(SANITIZED, reason="a sanitizer keeps what was freed")
def test_clients_that_read_nothing_hold_a_bounded_number_of_responses(proxy):
    with contextlib.ExitStack() as stack:
        before = proxy.rss()
        clients = [stack.enter_context(H2Client(proxy.admin_address)) for _ in range(15)]
        streams = []
        for client in clients:
            client.h2.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: 0})
            client.flush()
            streams += [(client, client.ask("/pools" if i % 2 else "/metrics", authority="localhost")) for i in range(40)]
        for client, stream in streams[::40]:
            assert client.until(lambda c=client, s=stream: c.responses[s].headers)
        until(lambda: [c.ask("/livez", authority="localhost") and c.read() for c in clients] and
              sum(c.responses[s].status == 503 for c, s in streams if c.responses[s].headers) > 0)
        assert sum(c.responses[s].status == 200 for c, s in streams if c.responses[s].headers) <= 96
        assert proxy.rss() < before + (24 << 20)
        assert over_h1(proxy, "/readyz")[0] == 200


def test_a_foreign_address_demands_the_token_over_http2(tmp_path):
    token, port = tmp_path / "token", free_port()
    token.write_text("s3cret-of-the-server\n")
    proxy = Carpool(tmp_path, admin={"address": "0.0.0.0:%d" % port, "token_file": str(token)}, metrics={"address": "127.0.0.1:0"})
    try:
        with H2Client(("127.0.0.1", port)) as client:
            right = ("authorization", "Bearer s3cret-of-the-server")
            for path in ("/pools", "/threads", "/events", "/log-level", "/"):
                refused = ask(client, path)
                assert refused.status == 401 and "Bearer" in refused.get("www-authenticate"), path
            assert ask(client, "/quit", method="POST").status == 401
            assert ask(client, "/pools", headers=[("authorization", "Bearer wrong")]).status == 401
            assert ask(client, "/pools", headers=[right, ("authorization", "Bearer wrong")]).status == 401
            assert ask(client, "/pools", headers=[right]).status == 200
            assert [ask(client, path).status for path in ("/livez", "/readyz", "/metrics")] == [200] * 3
    finally:
        proxy.stop()


def test_the_metrics_listener_shows_the_same_over_http2(tmp_path):
    port = free_port()
    proxy = Carpool(tmp_path, metrics={"address": "127.0.0.1:%d" % port})
    try:
        with H2Client(("127.0.0.1", port)) as client:
            for path, status in (("/metrics", 200), ("/livez", 200), ("/readyz", 200), ("/", 404), ("/pools", 404), ("/threads", 404), ("/events", 404)):
                assert ask(client, path).status == status, path
            assert ask(client, "/quit", method="POST").status == 404
    finally:
        proxy.stop()


def test_a_connection_gets_goaway_when_the_process_ends(proxy):
    with H2Client(proxy.admin_address) as client:
        assert ask(client, "/livez").status == 200
        proxy.signal(signal.SIGTERM)
        while client.read():
            pass
        assert client.goaways == [(1, 0)]
    assert proxy.wait() == 0


def test_a_half_closed_connection_that_began_as_http2_ends(proxy):
    with socket.create_connection(proxy.admin_address, 10) as half:
        half.sendall(PREFACE[:10])
        half.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionResetError):  # the preface was never read
            assert half.recv(1) == b""


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_curl_speaks_http2_to_it(proxy):
    url = "http://127.0.0.1:%d/metrics" % proxy.admin_address[1]
    got = subprocess.run(["curl", "-s", "--compressed", "--http2-prior-knowledge", "-w", "%{http_version}", url], capture_output=True, text=True)
    assert got.returncode == 0 and got.stdout.endswith("2") and "carpool_build_info" in got.stdout
