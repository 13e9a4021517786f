"""Long responses of the admin endpoint: a thousand origins, in chunks, and the cost of a client that does not read."""
import contextlib
import gzip
import json
import re
import select
import socket
import subprocess
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor

import pytest
from harness.carpool import PROGRAM, SANITIZED, Carpool
from harness.ports import tcp_server
from harness.wait import until
from harness.wire import Client, Gone, received
from prometheus_client.parser import text_string_to_metric_families

COUNT = 1000
USES = 10
STEP = 64 * 1024
PACKED = [("Accept-Encoding", "gzip")]


class Once:
    """An origin that responds once to each connection. It is asked ten thousand times for each carpool, and a thread for each request would
    take most of the time."""

    def __init__(self):
        self._server, self._poll, self._open = tcp_server(backlog=512), select.epoll(), {}
        self.authority = "127.0.0.1:%d" % self._server.getsockname()[1]
        self._poll.register(self._server, select.EPOLLIN)
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            for descriptor, _ in self._poll.poll():
                if descriptor in self._open:
                    with self._open.pop(descriptor) as sock:  # closed, it is polled no more
                        if received(sock).endswith(b"\r\n\r\n"):
                            sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
                else:
                    try:
                        sock = self._server.accept()[0]
                    except OSError:
                        return
                    self._open[sock.fileno()] = sock
                    self._poll.register(sock, select.EPOLLIN)

    def stop(self):
        self._server.shutdown(socket.SHUT_RDWR)


@pytest.fixture(scope="module")
def brief():
    o = Once()
    yield o
    o.stop()


def thousand(folder, o, uses=USES, **settings):
    """carpool with a thousand pools, each used until its histograms have their buckets. The admin address is a Unix socket with a small
    buffer: unread data stays in carpool."""
    names = ["origin-%d.test" % i for i in range(COUNT)]
    c = Carpool(folder, origin=[{"uri": "http://" + name, "addresses": [o.authority]} for name in names], log={"access": False},
                metrics={"max_origins": COUNT}, admin={"address": "unix:%s" % (folder / "admin.sock")}, **settings)
    c.admin_address = str(folder / "admin.sock")
    with c.client() as client:
        for name in names * uses:
            assert client.get("http://%s/" % name).status == 200
    return c


@pytest.fixture(scope="module")
def big(tmp_path_factory, brief):
    c = thousand(tmp_path_factory.mktemp("carpool"), brief)
    yield c
    c.stop()


def ask(c, path, headers=(), method="GET"):
    with Client(c.admin_address) as client:
        return client.request(method, path, headers, host="localhost")


def chunks(client):
    """Yields each chunk of a body whose head has been read."""
    while size := int(client.line(), 16):
        yield client.exactly(size)
        assert client.line() == ""
    assert client.line() == ""


def check_pools(text):
    pools = json.loads(text)["pools"]
    assert sorted(p["origin"] for p in pools) == sorted("http://origin-%d.test" % i for i in range(COUNT))
    assert all(p["borrows"] == p["restores"] == USES for p in pools)
    assert text.decode() == json.dumps(json.loads(text), indent=2) + "\n", "as if it were rendered at once"


def check_metrics(text):
    families = list(text_string_to_metric_families(text.decode()))
    assert len({f.name for f in families}) == len(families) > 40
    samples = [s for f in families for s in f.samples]
    assert len({(s.name, frozenset(s.labels.items())) for s in samples}) == len(samples) > 50 * COUNT

    def total(name):
        return sum(s.value for s in samples if s.name == name)
    assert total("carpool_pool_borrows_total") == total("carpool_requests_total") == USES * COUNT
    assert total("carpool_pool_opened_total") - total("carpool_pool_closed_total") == total("carpool_pool_connections")


CHECKS = {"/pools": check_pools, "/metrics": check_metrics}


@pytest.mark.parametrize("path", CHECKS)
def test_all_of_it_arrives_in_chunks_and_the_connection_serves_on(big, path):
    with Client(big.admin_address) as client:
        client.ask("GET", path, host="localhost")
        head = client.head()
        assert head.status == 200 and head.get("transfer-encoding") == "chunked" and head.get("content-length") is None
        parts = list(chunks(client))
        assert all(len(part) >= STEP for part in parts[:-1]) and max(map(len, parts)) < 2 * STEP
        CHECKS[path](b"".join(parts))
        assert client.request("GET", "/version", host="localhost").get("content-length")


@pytest.mark.parametrize("path", CHECKS)
def test_packed_it_is_one_gzip_that_can_be_read_as_it_comes(big, path):
    with Client(big.admin_address) as client:
        client.ask("GET", path, PACKED, host="localhost")
        head = client.head()
        assert head.get("content-encoding") == "gzip" and head.get("vary") == "Accept-Encoding"
        unpack, text, packed = zlib.decompressobj(31), b"", 0
        for part in chunks(client):
            text += unpack.decompress(part)
            packed += len(part)
            assert len(text) >= STEP, "each chunk can be unpacked when it is here"
        assert unpack.eof and packed < len(text) / 5
        CHECKS[path](text)
        again = client.request("GET", path, PACKED, host="localhost")
        assert gzip.decompress(again.body).splitlines()[:9] == text.splitlines()[:9]


def test_those_who_read_when_the_program_ends_get_a_part_and_the_program_its_end(tmp_path, brief):
    for nth in range(3):
        folder = tmp_path / str(nth)
        folder.mkdir()
        c = thousand(folder, brief, uses=1)  # /pools has as many steps

        def read_on():
            with contextlib.suppress(OSError, Gone, ValueError):
                while ask(c, "/pools").status == 200:
                    pass
        with ThreadPoolExecutor(8) as readers:
            reading = [readers.submit(read_on) for _ in range(8)]
            ask(c, "/metrics")
            c.signal(15)
            assert c.wait() == 0
            for one in reading:
                one.result()


def test_a_client_of_http_1_0_reads_until_the_end(big):
    with Client(big.admin_address) as client:
        client.send(b"GET /pools HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n")
        response = client.response()
        assert response.get("transfer-encoding") is None and response.get("content-length") is None and not response.keeps_alive()
        check_pools(response.body)


def steady(response):
    return [(name, value) for name, value in response.headers if name not in ("content-length", "date")]


def test_head_is_answered_with_the_head_of_get(big):
    with Client(big.admin_address) as client:
        for path in (*CHECKS, "/version", "/leaks"):
            for headers in ([], PACKED):
                head = client.request("HEAD", path, headers, host="localhost")
                assert head.status == 200 and not client.buffer
                got = client.request("GET", path, headers, host="localhost")
                # The date and the length of compressed or time-dependent content may change a moment later.
                assert steady(head) == steady(got) and head.get("date") and got.get("date"), path
                assert (head.get("content-length") is None) == (path in CHECKS)


def number(c, name):
    """Returns the value of a metric without an origin; parsing all metrics takes a second."""
    return sum(map(float, re.findall(rb"^%s(?:{.*})? (.*)$" % name.encode(), ask(c, "/metrics").body, re.M)))


def tasks_run(c):
    return number(c, "carpool_exec_queue_wait_seconds_count")


def test_the_rest_is_made_when_its_reader_comes_to_it(big):
    before = tasks_run(big)
    scrape = tasks_run(big) - before
    before += scrape
    with Client(big.admin_address) as client:
        client.ask("GET", "/metrics", host="localhost")
        assert client.head().status == 200
        first = next(chunks(client))
        assert len(first) >= STEP
        made = tasks_run(big) - before - scrape
        assert made < scrape / 4, "of %d steps %d" % (scrape, made)
        assert client.line() == ""
        text = first + b"".join(chunks(client))
    assert len(text) > scrape / 2 * STEP and b"\nprocess_start_time_seconds " in text[-100:]


@contextlib.contextmanager
def unread(c, path, count, headers=()):
    """Opens clients that request and do not read on; each has read the head, so its response has begun."""
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Client(c.admin_address)) for _ in range(count)]
        for client in clients:
            client.ask("GET", path, headers, host="localhost")
        for client in clients:
            client.buffer = client.sock.recv(20)
        yield clients


@pytest.mark.skipif(SANITIZED, reason="a sanitizer keeps what was freed, and shadows of it")
# Measured: 16.7 to 18.2 MB of /pools, whose facts are 2 MB for each reader, and 8.8 MB of /metrics.
@pytest.mark.parametrize("path, most", [("/pools", 20 << 20), ("/metrics", 16 << 20)])
def test_eight_readers_who_do_not_read_cost_their_facts_and_a_step_each(tmp_path, brief, path, most):
    c = thousand(tmp_path, brief)
    try:
        ask(c, path)
        before = c.rss()
        with unread(c, path, 8):
            until(lambda: c_is_idle(c), what="that nothing is being made")
            grown = c.rss() - before
        print("%s: eight readers who do not read: %.1f MB" % (path, grown / 1e6))
        assert grown < most
    finally:
        c.stop()


def c_is_idle(c):
    return json.loads(ask(c, "/threads").body)["tasks"]["existing"] == 0


def test_gzips_contexts_come_back_from_readers_who_leave(big):
    with unread(big, "/metrics", 4, PACKED) as readers:
        assert all(b"200" in reader.buffer for reader in readers)
        plain = ask(big, "/metrics", PACKED)
        assert plain.get("content-encoding") is None and b"\ncarpool_build_info{" in plain.body, "all four are lent"
    until(lambda: ask(big, "/metrics", PACKED).get("content-encoding") == "gzip", what="a context")
    until(lambda: number(big, "carpool_admin_connections") == 1, what="their sessions' end")
    with unread(big, "/metrics", 4, PACKED):
        assert ask(big, "/metrics", PACKED).get("content-encoding") is None, "there are four again"


def test_clients_that_leave_at_any_moment_leave_nothing(big):
    def leave(number):
        packed = number % 3 != 0
        with Client(big.admin_address) as client:
            client.ask("GET", ("/metrics", "/pools")[number % 2], PACKED if packed else (), host="localhost")
            taken = 0
            while taken < number * (200 if packed else 20_000):
                taken += len(client.sock.recv(5000))
    with ThreadPoolExecutor(8) as clients:
        list(clients.map(leave, range(64)))
    until(lambda: c_is_idle(big), what="that nothing is being made")
    check_pools(gzip.decompress(ask(big, "/pools", PACKED).body))


def test_steps_that_are_refused_are_made_later(tmp_path, brief):
    c = thousand(tmp_path, brief, threads={"max_tasks": 1, "max": 1, "min": 1, "reserved": 0})
    try:
        with ThreadPoolExecutor(6) as clients:
            responses = list(clients.map(lambda _: ask(c, "/pools"), range(24)))
        assert {a.status for a in responses} <= {200, 503} and any(a.status == 200 for a in responses)
        for response in responses:
            assert response.complete
            if response.status == 200:
                check_pools(response.body)
    finally:
        c.stop()


def test_the_subcommands_understand_it(big):
    def run(*arguments):
        return subprocess.run([PROGRAM, *arguments, "--admin", "unix:" + big.admin_address], capture_output=True, timeout=30)
    told = run("pools", "--json")
    assert told.returncode == 0
    check_pools(told.stdout)
    table = run("pools")
    assert table.returncode == 0 and len(table.stdout.splitlines()) == COUNT + 1
    assert run("connections", "http://origin-7.test").returncode == 0
