"""An upgrade: a new process takes over the sockets of the running one, and no request is lost between them."""
import os
import pathlib
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.parse

import pytest
from harness.carpool import PROGRAM
from harness.h2_client import H2Client
from harness.origin import Gate
from harness.pki import Pki
from harness.wait import until
from harness.wire import Client, Gone


class Load(threading.Thread):
    """Sends requests at an even rate on a kept connection; a client that is asked to close reconnects."""

    def __init__(self, address, url, rate):
        super().__init__(daemon=True)
        self.address, self.url, self.pause = address, url, 1 / rate
        self.done, self.connections, self.errors, self.over = 0, 0, [], False

    def run(self):
        client, due = None, time.monotonic()
        while not self.over:
            try:
                if client is None:
                    client = Client(self.address)
                    self.connections += 1
                response = client.get(self.url + "/")
                if response.status != 200 or response.body != b"ok":
                    self.errors.append(response)
                if not response.keeps_alive():
                    client.close()
                    client = None
            except (OSError, Gone) as error:
                self.errors.append(error)
                client = None
            self.done += 1
            due = max(due + self.pause, time.monotonic() - 0.05)
            threading.Event().wait(max(0, due - time.monotonic()))  # a pace; no condition is waited for


def fds(c):
    return len(os.listdir("/proc/%d/fd" % c.process.pid))


def test_restarts_under_load_lose_no_request_and_no_descriptor(origin, line, full):
    restarts, threads, rate = (20, 10, 1000) if full else (4, 4, 400)
    o = origin()
    c = line(shutdown_grace="6s", log={"access": False}, pool={"size": 16})
    load = [Load(c.address, o.url, rate / threads) for _ in range(threads)]
    for one in load:
        one.start()
    until(lambda: all(one.done > 10 for one in load), what="load")
    began, counted = time.monotonic(), sum(one.done for one in load)
    open_fds, before = [], c
    for _ in range(restarts):
        c = line.next(before)
        assert before.wait(15) == 0, "the one before ends by itself"
        assert c.get_json("/version"), "and the successor answers at the same admin address"
        until(lambda: c.pool(o.url)["borrows"] > 20, what="load on the successor")
        open_fds.append(fds(c))
        before = c
    seconds = time.monotonic() - began
    done = sum(one.done for one in load) - counted
    for one in load:
        one.over = True
    for one in load:
        one.join(10)
    assert [one.errors for one in load] == [[]] * threads
    print("%d restarts, %.0f requests/s over %.1f s, descriptors %s" % (restarts, done / seconds, seconds, open_fds))
    assert max(open_fds[1:]) - min(open_fds[1:]) <= threads + 4, open_fds


def test_a_pause_goes_to_the_successor_with_the_time_that_is_left(origin, line):
    o, other, drained = origin(), origin(), origin()
    c = line(pool={"wait_timeout": "1s"})
    with c.client() as client:
        for each in (o, other, drained):
            assert client.get(each.url + "/").status == 200
    for each, order in ((o, "pause?for=10m"), (drained, "drain")):
        assert c.admin("POST", "/pools/%s/%s" % (urllib.parse.quote(each.url, safe=""), order)).status == 200
    after = line.next(c)
    assert c.wait(15) == 0
    assert after.pool(o.url)["paused"] and 0 < after.pool(o.url)["resumes_in_seconds"] <= 600
    assert after.pool(drained.url)["draining"] and after.pool(drained.url)["resumes_in_seconds"] is None
    assert not after.pool(other.url)["paused"]
    with after.client() as client:
        assert client.get(o.url + "/").status == 503
        assert client.get(other.url + "/").status == 200


def test_nobody_is_refused_while_the_sockets_change_hands(origin, line):
    """Opens connections, one after the other, from before the successor starts until after the other process has ended."""
    o = origin()
    c = line(shutdown_grace="4s")
    over, errors, served = threading.Event(), [], [0]

    def come_and_go():
        while not over.is_set():
            try:
                with Client(c.address) as client:
                    if client.get(o.url + "/").status != 200:
                        errors.append("status")
                served[0] += 1
            except (OSError, Gone) as error:
                errors.append(error)
    visitor = threading.Thread(target=come_and_go)
    visitor.start()
    until(lambda: served[0] > 20, what="visits")
    successor = line.next(c)
    assert c.wait(10) == 0
    seen = served[0]
    until(lambda: served[0] > seen + 20, what="more visits")
    over.set()
    visitor.join(10)
    assert errors == [] and successor.metric("carpool_requests_total", origin=o.url) > 20


def test_a_request_that_runs_is_finished_and_its_client_asked_to_come_again(origin, line):
    gate = Gate()

    def held(exchange):
        gate.enter()
        exchange.reply()
    o, c = origin(held), line(shutdown_grace="20s", workers=1)
    with c.client() as running, H2Client(c.address) as session:
        running.ask("GET", o.url + "/")
        gate.wait_for(1)
        line.next(c)
        assert session.until(lambda: session.goaways), "its loop knows of the hand-over"
        session.sock.close()
        gate.open()
        response = running.response()
        assert (response.status, response.body, response.keeps_alive()) == (200, b"ok", False)
        assert running.at_end()
    assert c.wait(10) == 0


def test_a_client_whose_long_answer_ends_after_it_is_served_once_more(long_responses, line):
    (o, gate), c = long_responses, line(shutdown_grace="20s")
    clients = [c.client() for _ in range(10)]
    for client in clients:
        client.ask("GET", o.url + "/long")
        assert client.head().keeps_alive()
    line.next(c)
    gate.open()
    for client in clients:
        assert client.exactly(23) == b"4\r\nhalf\r\n4\r\nhalf\r\n0\r\n\r\n"
        response = client.request("POST", o.url + "/", body=b"x")
        assert (response.status, response.keeps_alive()) == (200, False)
        assert client.at_end()
    assert c.wait(10) == 0


def test_a_session_of_http_2_is_told_twice_and_its_long_answer_ends(long_responses, line):
    (o, gate), c = long_responses, line(shutdown_grace="20s")
    with H2Client(c.address) as client:
        stream = client.ask("/long", authority=o.authority)
        client.until(lambda: client.responses[stream].body)
        line.next(c)
        client.until(lambda: len(client.goaways) == 2)
        assert client.goaways == [(2**31 - 1, 0), (stream, 0)]
        gate.open()
        assert client.response(stream).body == b"halfhalf"
    assert c.wait(10) == 0


def test_a_client_that_rests_is_served_once_more(origin, line):
    o, c = origin(), line(shutdown_grace="20s")
    with c.client() as idle_client, H2Client(c.address) as session:
        assert idle_client.get(o.url + "/").keeps_alive()
        assert session.get("/", authority=o.authority).status == 200
        line.next(c)
        assert session.until(lambda: session.goaways), "clients of HTTP/2 are told at once"
        session.sock.close()
        response = idle_client.get(o.url + "/")
        assert (response.status, response.keeps_alive()) == (200, False)
    assert c.wait(10) == 0


def test_clients_of_the_admin_endpoint_move_to_the_successor(long_responses, line):
    """The old process still has a request to complete; its kept admin connections would report its state, not the service's."""
    (o, gate), c = long_responses, line(shutdown_grace="20s")
    with c.client() as client, Client(c.admin_address) as kept, Client(c.admin_address) as page, H2Client(c.admin_address) as session:
        client.ask("GET", o.url + "/long")
        assert client.head().status == 200
        host = "127.0.0.1:%d" % c.admin_address[1]
        assert kept.request("GET", "/readyz", host=host).status == 200
        page.ask("GET", "/events", host=host)
        assert page.head().status == 200
        events = session.ask("/events", authority=host)
        session.until(lambda: session.responses[events].body)
        line.next(c)
        assert kept.at_end()
        while page.more():
            page.buffer = b""
        session.until(lambda: session.closed)
        assert session.goaways[0] == (events, 0) and session.responses[events].ended
        assert c.process.poll() is None, "the old process has not completed its request"
        assert c.admin("GET", "/readyz").status == 200
        gate.open()
        assert client.exactly(23).endswith(b"0\r\n\r\n")
    assert c.wait(10) == 0


def test_the_old_process_answers_the_admin_endpoint_until_the_successor_is_ready(origin, line, starting):
    c = line()
    started = c.metric("process_start_time_seconds")
    successor = starting(c)
    for _ in range(20):
        assert c.admin("GET", "/readyz").status == 200
        assert c.metric("process_start_time_seconds") == started
    starting.settle()
    until(successor._is_ready, what="ready")
    assert c.metric("process_start_time_seconds") > started
    assert c.wait(10) == 0
    successor.signal(signal.SIGTERM)  # a second one ends its drain_delay
    until(lambda: any("draining: not ready" in row for row in successor.output), what="the drain of the successor")


def test_a_unix_listener_that_the_successor_does_not_have_leaves_no_file(line, tmp_path):
    stays, goes = tmp_path / "stays.sock", tmp_path / "goes.sock"
    c = line(listeners=[{"address": "unix:%s" % stays}, {"address": "unix:%s" % goes}])
    successor = line.next(c, start=False)
    successor.config = c.folder / "next.toml"
    successor.config.write_text(c.config.read_text().replace('[[listen]]\naddress = "unix:%s"' % goes, ""))
    successor.start()
    assert c.wait(10) == 0 and stays.exists() and not goes.exists()


STRANGER = """
import os, socket, sys
if len(sys.argv) > 2:
    os.setgroups([])
    os.setgid(int(sys.argv[2]))
    os.setuid(int(sys.argv[2]))
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen(4)
os.chmod(sys.argv[1], 0o777)
print("up", flush=True)
c, _ = s.accept()
c.settimeout(20)
print("heard", c.recv(10), flush=True)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
@pytest.mark.parametrize("whose", ["the listening process", "the file"])
def test_sockets_are_taken_from_nobody_but_root_and_the_own_user(carpool, tmp_path_factory, whose):
    folder = tmp_path_factory.mktemp("public")
    for at in (folder, *folder.parents[:3]):
        if at.stat().st_uid == os.geteuid():
            at.chmod(0o777)
    path = folder / "h.sock"
    other = ["65534"] if whose == "the listening process" else []
    stranger = subprocess.Popen([sys.executable, "-c", STRANGER, str(path), *other], stdout=subprocess.PIPE)
    try:
        assert stranger.stdout.readline() == b"up\n"
        os.chown(path, *((0, 0) if other else (65534, 65534)))
        c = carpool(start=False, handover={"address": "unix:%s" % path})
        done = subprocess.run([PROGRAM, "--config", c.config], capture_output=True, text=True, timeout=20)
        assert done.returncode == 2 and str(path) in done.stderr and "root or the user of this process" in done.stderr, done
        assert stranger.stdout.readline() == b"heard b''\n"
    finally:
        stranger.kill()
        stranger.wait()


def test_what_was_learned_and_what_was_open_come_along(origin, line, pki):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pki.server, pki.server_key)
    resumed, gate = [], Gate()

    def note(exchange):
        resumed.append(exchange.stream.sock.session_reused)
        gate.enter()
        exchange.reply(headers=[("Keep-Alive", "timeout=7")])
    o = origin(note, tls=context)
    c = line(upstream={"tls": {"ca_file": str(pki.ca)}, "protocols": ["h1"]}, pool={"size": 8}, handover={
        "address": "unix:%s" % (pathlib.Path(str(pki.ca)).parent / "learned.sock"), "warm_rate": 20})
    clients = [c.client() for _ in range(5)]
    for client in clients:
        client.ask("GET", o.url + "/")
    gate.wait_for(5)
    gate.open()
    assert [client.response().status for client in clients] == [200] * 5
    until(lambda: c.pool(o.url)["learned_idle_timeout_seconds"] == 7, what="the hint")
    successor = line.next(c)
    pool = successor.pool(o.url)
    assert pool["learned_idle_timeout_seconds"] == 7
    assert {k: v for k, v in pool["opened"].items() if v} == {"warm_up": 5} and pool["active"] == 5
    del resumed[:]
    with successor.client() as client:
        assert client.get(o.url + "/").status == 200
    assert resumed == [True], "its TLS session was resumed"
    for client in clients:
        client.close()
    assert c.wait(10) == 0


@pytest.mark.parametrize("replaced", ["authority", "system's authority", "client certificate"])
def test_no_session_is_resumed_under_other_certificates(origin, line, pki, tmp_path, monkeypatch, replaced):
    """The first process cannot follow: its configuration is broken when the files change."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pki.server, pki.server_key)
    context.load_verify_locations(pki.ca)
    context.verify_mode = ssl.CERT_OPTIONAL
    (tmp_path / "other").mkdir()
    other = Pki(tmp_path / "other")

    def who(exchange):
        exchange.reply(body=str((exchange.stream.sock.getpeercert() or {}).get("subject")).encode())
    files = {"ca_file": pki.ca, "cert_file": pki.client, "key_file": pki.client_key}
    for name, source in files.items():
        (tmp_path / name).write_bytes(pathlib.Path(source).read_bytes())
    settings = {name: str(tmp_path / name) for name in files}
    if replaced == "system's authority":
        monkeypatch.setenv("SSL_CERT_FILE", settings.pop("ca_file"))
        monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path / "none"))
    o, c = origin(who, tls=context), line(upstream={"tls": settings, "protocols": ["h1"]})
    with c.client() as client:
        assert b"client.test" in client.get(o.url + "/").body
    good = c.config.read_text()
    c.config.write_text(good + "\n[of_a_later_version]\nx = 1\n")
    if replaced == "client certificate":
        files = {"cert_file": pki.wrong_name, "key_file": pki.wrong_name_key}
    else:
        files = {"ca_file": other.ca}
    for name, source in files.items():
        (tmp_path / name).write_bytes(pathlib.Path(source).read_bytes())
    until(lambda: any("configuration in force stays" in row for row in c.output), what="the refused reload")
    successor = line.next(c, start=False)
    successor.config = tmp_path / "good.toml"
    successor.config.write_text(good)
    successor.start()
    assert c.wait(10) == 0
    with successor.client() as client:
        response = client.get(o.url + "/")
    if replaced == "client certificate":
        assert b"other.test" in response.body
    else:
        assert response.status == 502, response


def test_a_unix_listener_is_taken_over_too(origin, line, tmp_path):
    o = origin()
    path = tmp_path / "proxy.sock"
    c = line(listeners=[{"address": "unix:%s" % path}])
    inode = os.stat(path).st_ino
    successor = line.next(c)
    assert c.wait(10) == 0
    assert os.stat(path).st_ino == inode, "the socket's file stays"
    with Client(str(path)) as client:
        assert client.get(o.url + "/").status == 200
    successor.stop()
    assert not path.exists(), "and goes with the last one"


def test_term_to_the_successor_ends_it_alone(origin, line):
    o, c = origin(), line()
    successor = line.next(c)
    assert c.wait(10) == 0
    successor.signal(signal.SIGTERM)
    assert successor.wait(10) == 0
    again = line.next(successor)
    with again.client() as client:
        assert client.get(o.url + "/").status == 200


def test_the_service_manager_is_told_whom_to_watch(line, tmp_path, monkeypatch):
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind(str(tmp_path / "notify.sock"))
    manager.settimeout(10)
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify.sock"))
    c = line()
    assert manager.recv(100) == b"READY=1"
    successor = line.next(c)
    assert manager.recv(100) == b"MAINPID=%d" % successor.process.pid
    assert manager.recv(100) == b"READY=1"
    assert c.wait(10) == 0
    manager.close()


def test_the_address_must_be_a_unix_socket(carpool):
    c = carpool(start=False, handover={"address": "127.0.0.1:1"})
    assert "handover.address" in c.check() and "not a Unix socket" in c.check()
