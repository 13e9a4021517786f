"""A hand-over of which one side fails, stops, says something else or is late."""
import os
import signal
import socket
import struct
import subprocess
import tomllib

import pytest
from harness.carpool import PROGRAM
from harness.ports import tcp_server
from harness.wait import until
from harness.wire import Client


def test_a_successor_that_fails_changes_nothing(origin, line):
    o, c = origin(), line()
    taken = tcp_server()
    good = c.config.read_text()
    c.config.write_text(good + '\n[[listen]]\naddress = "127.0.0.1:%d"\n' % taken.getsockname()[1])
    done = subprocess.run([PROGRAM, "--config", c.config], capture_output=True, text=True, timeout=20)
    assert done.returncode == 2 and str(taken.getsockname()[1]) in done.stderr
    taken.close()
    until(lambda: disconnected(c), what="the log's word")
    with c.client() as client:
        assert client.get(o.url + "/").keeps_alive()
    c.config.write_text(good)
    line.next(c)
    assert c.wait(10) == 0, "the next one may try again"


def test_a_successor_that_says_another_word_changes_nothing(origin, line):
    o, c = origin(), line()
    address = tomllib.loads(c.config.read_text())["handover"]["address"]
    with socket.socket(socket.AF_UNIX) as successor:
        successor.connect(address.removeprefix("unix:"))
        until(lambda: any("sockets sent to the new process" in row for row in c.output), what="the parcel")
        successor.sendall(b"no")
        until(lambda: any("sent an unexpected message" in row for row in c.output), what="the log's word")
        with c.client() as client:
            assert client.get(o.url + "/").keeps_alive()
    line.next(c)
    assert c.wait(10) == 0, "one that says it may come after it"


def disconnected(c):
    return any("the new process disconnected" in row for row in c.output)


def test_term_to_a_successor_that_is_not_ready_leaves_the_old_process_alone(origin, line, starting, tmp_path, monkeypatch):
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind(str(tmp_path / "notify.sock"))
    manager.settimeout(10)
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify.sock"))
    o, c = origin(), line()
    assert manager.recv(100) == b"READY=1"
    successor = starting(c)
    successor.signal(signal.SIGTERM)
    until(lambda: any("draining: not ready" in row for row in successor.output), what="the drain of the successor")
    starting.settle()
    until(lambda: disconnected(c), what="the end of the hand-over")
    successor.signal(signal.SIGTERM)
    assert successor.wait(10) == 0 and not any("carpool ready" in row for row in successor.output)
    with c.client() as client:
        assert client.get(o.url + "/").keeps_alive()
    after = line.next(c)
    assert c.wait(10) == 0, "the next one may try again"
    told = [manager.recv(100) for _ in range(2)]
    assert told == [b"MAINPID=%d" % after.process.pid, b"READY=1"], "STOPPING=1 would end the service, with the old process"
    manager.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_of_the_start_of_a_successor_leaves_the_old_process_alone(origin, line, number):
    o, c = origin(), line()
    for _ in range(8):  # the loop decides in which turn it sees the signal
        c.signal(signal.SIGSTOP)
        successor = line.next(c, start=False)
        successor.launch()
        until(lambda: any('"starting"' in row for row in successor.output), what="the start")
        successor.signal(number)
        c.signal(signal.SIGCONT)
        assert successor.wait(10) == 0 and not any("asked to stop accepting" in row for row in successor.output)
        with c.client() as client:
            assert client.get(o.url + "/").keeps_alive()


def test_a_successor_that_does_not_take_over_leaves_the_files_of_the_sockets(origin, line, starting, tmp_path):
    path, admin = tmp_path / "proxy.sock", tmp_path / "admin.sock"
    o, c = origin(), line(listeners=[{"address": "unix:%s" % path}], admin={"address": "unix:%s" % admin})
    files = (path, admin, c.folder / "h.sock")
    with tcp_server() as taken:
        fails = c.folder / "fails.toml"
        fails.write_text(c.config.read_text() + '\n[[listen]]\naddress = "127.0.0.1:%d"\n' % taken.getsockname()[1])
        assert subprocess.run([PROGRAM, "--config", fails], capture_output=True, timeout=20).returncode == 2
    assert all(file.exists() for file in files), "one that cannot start"
    until(lambda: disconnected(c), what="the end of the first hand-over")
    successor = starting(c)
    successor.signal(signal.SIGTERM)
    until(lambda: any("draining: not ready" in row for row in successor.output), what="the drain of the successor")
    successor.signal(signal.SIGTERM)
    assert successor.wait(10) == 0 and all(file.exists() for file in files), "one that is told to stop"
    with Client(str(path)) as client:
        assert client.get(o.url + "/").status == 200
    until(lambda: sum("the new process disconnected" in row for row in c.output) == 2, what="the end of the second hand-over")
    last = line.next(c)
    assert c.wait(10) == 0 and all(file.exists() for file in files)
    last.stop()
    assert not any(file.exists() for file in files), "they go with the last one"


def serve_and_end(successor, path, o):
    """The successor serves at the Unix socket; then a first TERM begins its drain, and a second one ends it."""
    with Client(str(path)) as client:
        assert client.get(o.url + "/").status == 200
    successor.signal(signal.SIGTERM)
    until(lambda: any("draining: not ready" in row for row in successor.output), what="the drain of the successor")
    successor.stop()


def test_the_files_of_the_sockets_stay_if_the_old_process_stops_before_the_successor_is_ready(origin, line, starting, tmp_path):
    path = tmp_path / "proxy.sock"
    o, c = origin(), line(listeners=[{"address": "unix:%s" % path}])
    successor = starting(c)
    c.signal(signal.SIGTERM)
    assert c.wait(10) == 0 and path.exists() and (c.folder / "h.sock").exists()
    starting.settle()
    until(lambda: any("carpool ready" in row for row in successor.output), what="the successor")
    serve_and_end(successor, path, o)
    assert not path.exists() and not (c.folder / "h.sock").exists()


def test_a_successor_answers_the_admin_endpoint_when_the_old_process_stops_before_it_is_ready(line, starting):
    c = line()
    successor = starting(c)
    c.signal(signal.SIGTERM)
    assert c.wait(10) == 0
    response = successor.admin("GET", "/readyz")
    assert response.status == 503 and "draining" not in response.body.decode(), response.body
    starting.settle()
    until(successor._is_ready, what="ready")
    assert successor.admin("GET", "/readyz").status == 200
    successor.signal(signal.SIGTERM)  # a second one ends its drain_delay
    until(lambda: any("draining: not ready" in row for row in successor.output), what="the drain of the successor")


def test_an_old_process_that_drains_leaves_the_admin_endpoint_to_the_successor(long_responses, line, starting):
    (o, gate), c = long_responses, line(shutdown_grace="20s")
    with c.client() as client:
        client.ask("GET", o.url + "/long")
        assert client.head().status == 200
        successor = starting(c)
        c.signal(signal.SIGTERM)
        until(lambda: any("draining: no new clients" in row for row in c.output), what="the drain")
        starting.settle()
        until(successor._is_ready, what="ready")
        assert [c.admin("GET", "/readyz").status for _ in range(40)] == [200] * 40
        assert c.process.poll() is None, "the old process has not completed its request"
        gate.open()
        assert client.exactly(23).endswith(b"0\r\n\r\n")
    assert c.wait(10) == 0
    successor.signal(signal.SIGTERM)  # a second one ends its drain_delay
    until(lambda: any("draining: not ready" in row for row in successor.output), what="the drain of the successor")


def test_a_successor_that_is_not_ready_has_no_successor(origin, line, starting):
    o, c = origin(), line()
    successor = starting(c)
    c.signal(signal.SIGSTOP)  # both accept at the same socket; now only the successor does
    third = subprocess.run([PROGRAM, "--config", c.config], capture_output=True, text=True, timeout=20)
    c.signal(signal.SIGCONT)
    assert third.returncode == 2 and "another process takes over" in third.stderr
    starting.settle()
    assert c.wait(10) == 0, "the first one is told to stop"
    last = line.next(c)
    assert successor.wait(15) == 0, "a ready one has a successor"
    with last.client() as client:
        assert client.get(o.url + "/").status == 200


def test_a_confirmation_that_comes_late_makes_the_successor_the_owner_of_the_files(origin, line, starting, tmp_path):
    path, admin = tmp_path / "proxy.sock", tmp_path / "admin.sock"
    o, c = origin(), line(listeners=[{"address": "unix:%s" % path}], admin={"address": "unix:%s" % admin})
    successor = starting(c)
    c.signal(signal.SIGSTOP)
    starting.settle()
    until(successor._is_ready, 15, "no confirmation for five seconds")
    assert any("did not confirm" in row for row in successor.output)
    c.signal(signal.SIGCONT)
    assert c.wait(10) == 0, "it was told to stop"
    until(lambda: any("the old process has stopped accepting" in row for row in successor.output), what="the late confirmation")
    serve_and_end(successor, path, o)
    assert not any(each.exists() for each in (path, admin, c.folder / "h.sock"))


def send_state(successor, text="", descriptors=()):
    """Sends what an old process sends."""
    state = b"carpool-handover 1\n" + text.encode() + b"end\n"
    length = struct.pack("=Q", len(state))
    socket.send_fds(successor, [length], descriptors)
    successor.sendall(state)


def test_the_service_manager_watches_the_new_process_before_the_old_one_may_end(carpool, tmp_path, monkeypatch):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager, socket.socket(socket.AF_UNIX) as old:
        manager.bind(str(tmp_path / "notify.sock"))
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify.sock"))
        old.bind(str(tmp_path / "old.sock"))
        old.listen()
        new = carpool(start=False, handover={"address": "unix:%s" % (tmp_path / "old.sock")})
        new.launch()
        with old.accept()[0] as successor:
            old.close()  # before the state: with it, the new process binds the address
            send_state(successor)
            assert successor.recv(2) == b"go"
            assert manager.recv(100, socket.MSG_DONTWAIT) == b"MAINPID=%d" % new.process.pid
        manager.settimeout(10)
        assert manager.recv(100) == b"READY=1"


@pytest.mark.parametrize("kind", ["pipe", "file", "datagram", "bound", "connected"])
def test_a_descriptor_that_accepts_nobody_ends_the_start(carpool, tmp_path, kind):
    pair, pipe = socket.socketpair(), os.pipe()
    bound, datagram = socket.socket(), socket.socket(type=socket.SOCK_DGRAM)
    bound.bind(("127.0.0.1", 0))
    with open(tmp_path / "file", "w") as file, socket.socket(socket.AF_UNIX) as old:
        given = {"pipe": pipe[0], "file": file.fileno(), "datagram": datagram.fileno(), "bound": bound.fileno(), "connected": pair[0].fileno()}
        old.bind(str(tmp_path / "old.sock"))
        old.listen()
        new = carpool(start=False, handover={"address": "unix:%s" % (tmp_path / "old.sock")})
        new.launch()
        with old.accept()[0] as successor:
            send_state(successor, "socket listen %s:%d\n" % new.address, [given[kind]])
            assert new.process.wait(10) == 2
            until(lambda: any("no listening socket" in row for row in new.output), what="the reason")
            new.process = None
    for each in (*pair, bound, datagram):
        each.close()
    for each in pipe:
        os.close(each)


def test_a_listening_socket_that_blocks_holds_no_loop_up(origin, carpool, tmp_path):
    with tcp_server() as listening, socket.socket(socket.AF_UNIX) as old:
        old.bind(str(tmp_path / "old.sock"))
        old.listen()
        new = carpool(start=False, handover={"address": "unix:%s" % (tmp_path / "old.sock")})
        new.launch()
        with old.accept()[0] as successor:
            old.close()
            send_state(successor, "socket listen %s:%d\n" % new.address, [listening.fileno()])
            assert successor.recv(2) == b"go"
        until(new._is_ready, what="the start")
        for _ in range(2):
            with Client(listening.getsockname()) as client:
                assert client.get(origin().url + "/").status == 200
