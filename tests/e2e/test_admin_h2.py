"""The admin endpoint over HTTP/2: the same responses and rules as over HTTP/1.1, many streams at once, and clients that misuse it."""
import contextlib
import json
import shutil
import socket
import struct
import subprocess
import urllib.request

import h2.settings
import pytest
from harness.carpool import Carpool
from harness.h2_client import CONTINUATION, HEADERS, PING, PREFACE, RST, SETTINGS, H2Client
from harness.wait import until


@pytest.fixture
def proxy(tmp_path):
    c = Carpool(tmp_path)
    yield c
    c.stop()


@contextlib.contextmanager
def client_of(c):
    with H2Client(c.admin_address) as client:
        yield client


def ended(client, *streams):
    while not all(client.answers[s].ended or client.answers[s].reset is not None for s in streams):
        assert client.read()
    return [client.answers[s] for s in streams]


def ask(client, path, **how):
    return ended(client, client.ask(path, authority="localhost", **how))[0]


def over_h1(c, path):
    with urllib.request.urlopen("http://127.0.0.1:%d%s" % (c.admin_address[1], path)) as answer:
        return answer.status, answer.headers, answer.read()


def raw(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def test_a_response_is_the_same_over_both_protocols(proxy):
    with client_of(proxy) as client:
        for path in ("/livez", "/readyz", "/version", "/config", "/log-level", "/openapi.json"):
            status, headers, body = over_h1(proxy, path)
            answer = ask(client, path)
            assert (answer.status, answer.get("content-type"), answer.body) == (status, headers["Content-Type"], body), path
            head = ask(client, path, method="HEAD")
            assert head.get("content-length") == headers["Content-Length"] and head.body == b""


def test_the_rules_of_access_are_the_same(proxy):
    with client_of(proxy) as client:
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
    with client_of(proxy) as client:
        client.ask("/livez", authority="localhost")
        for _ in range(5):
            streams = [client.ask("/reload?dry_run=1", method="POST", authority="localhost")]
            streams += [client.ask(paths[i % len(paths)], authority="localhost") for i in range(63)]
            assert {a.status for a in ended(client, *streams)} == {200}


def test_a_window_of_zero_holds_its_responses_and_no_other_client(proxy):
    with client_of(proxy) as slow, client_of(proxy) as other:
        slow.h2.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: 0})
        slow.flush()
        stuck = [slow.ask("/metrics", authority="localhost") for _ in range(40)]
        assert ask(other, "/metrics").status == 200
        probe = slow.ask("/nope-has-a-body", authority="localhost")
        while not slow.answers[stuck[15]].headers:
            assert slow.read()
        assert all(not slow.answers[s].body for s in stuck)
        for stream in [*stuck, probe]:
            slow.h2.increment_flow_control_window(1 << 20, stream)
        slow.h2.increment_flow_control_window(1 << 28)
        slow.flush()
        answers = ended(slow, *stuck, probe)
        assert {a.status for a in answers[:-1]} == {200} and answers[-1].status == 404
        assert all(a.body.endswith(b"\n") for a in answers[:-1])


def test_events_follow_over_http2(proxy):
    with client_of(proxy) as client:
        stream = client.ask("/events", authority="localhost")
        while client.answers[stream].body.count(b"event: ") < 2:
            assert client.read()
        assert client.answers[stream].body.startswith(b"event: state\n")
        assert ask(client, "/livez").status == 200


ABUSES = {
    "resets": lambda n: b"".join(raw(HEADERS, 5, i, LIVEZ) + raw(RST, 0, i, struct.pack(">I", 8)) for i in range(1, 2 * n, 2)),
    "control": lambda n: raw(PING, 0, 0, b"12345678") * n + raw(SETTINGS, 0, 0) * n,
    "continuations": lambda n: raw(HEADERS, 0, 1, LIVEZ) + raw(CONTINUATION, 0, 1, b"") * n,
}
# :method GET, :scheme http, :path /livez, :authority localhost
LIVEZ = b"\x82\x86\x04\x06/livez\x01\x09localhost"


@pytest.mark.parametrize("kind", ABUSES)
def test_a_flood_ends_its_connection_and_is_counted(proxy, kind):
    with client_of(proxy) as client:
        with contextlib.suppress(ConnectionError):
            for _ in range(20):
                client.sock.sendall(ABUSES[kind](1000))
    want = 'carpool_admin_abuse_total{door="admin",kind="'
    until(lambda: any(line.startswith(want) and not line.endswith(" 0") for line in over_h1(proxy, "/metrics")[2].decode().splitlines()))
    assert over_h1(proxy, "/readyz")[0] == 200


def test_bytes_that_are_no_frames_end_their_connection_alone(proxy):
    with client_of(proxy) as client:
        client.sock.sendall(raw(SETTINGS, 0, 0, b"abc"))
        while client.read():
            pass
        assert client.goaways
    with H2Client(proxy.admin_address) as client:
        assert ask(client, "/livez").status == 200


def test_idle_http2_connections_keep_no_probe_out(proxy):
    with contextlib.ExitStack() as stack:
        for _ in range(60):
            stack.enter_context(client_of(proxy)).flush()
        for _ in range(200):
            half = stack.enter_context(contextlib.closing(socket.create_connection(proxy.admin_address)))
            half.sendall(PREFACE[:10])
        assert over_h1(proxy, "/readyz")[0] == 200
        with client_of(proxy) as client:
            assert ask(client, "/readyz").status == 200


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_curl_speaks_http2_to_it(proxy):
    url = "http://127.0.0.1:%d/metrics" % proxy.admin_address[1]
    got = subprocess.run(["curl", "-s", "--compressed", "--http2-prior-knowledge", "-w", "%{http_version}", url], capture_output=True, text=True)
    assert got.returncode == 0 and got.stdout.endswith("2") and "carpool_build_info" in got.stdout
