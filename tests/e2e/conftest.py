"""Fixtures: each test starts its own processes, and they end with it."""
import collections
import json
import pathlib
import ssl
import sys
import threading

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from harness import nginx as nginx_module  # noqa: E402
from harness import late, names  # noqa: E402
from harness.acceptor import Acceptor  # noqa: E402
from harness.carpool import PROGRAM, Carpool  # noqa: E402
from harness.origin import Gate, Origin, hello  # noqa: E402
from harness.pki import Pki  # noqa: E402
from harness.ports import tcp_server  # noqa: E402
from harness.pressure import Pressure  # noqa: E402
from harness.successor import Successor  # noqa: E402
from harness.wait import until  # noqa: E402
from harness.webhook import Webhook  # noqa: E402
from harness.wire import Stream  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--full", action="store_true", help="long forms of the tests")
    parser.addoption("--late", action="store_true", help="the log and the accepts of origins reach the tests late")
    parser.addoption("--report", help="write counts as JSON to this file")


# Of the files whose tests take longest in total. Without this order one of them would be left alone at the end.
LONGEST = ("test_grpc_addresses.py", "test_page.py", "test_intercept_clients.py", "test_admin_stream.py", "test_h2_attacks.py", "test_prometheus.py",
           "test_auto_size.py", "test_openapi.py", "test_ca.py", "test_completion.py", "test_h2_upstream.py", "test_addresses.py", "test_top.py", "test_bodies.py",
           "test_pool.py", "test_pool_study.py", "test_cool_down.py", "test_client_identity.py", "test_stop.py", "test_page_connection.py")


def pytest_collection_modifyitems(items):
    """Those files begin first, in their order, then those with the most tests."""
    counts = collections.Counter(item.path.name for item in items)
    first = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: (first.get(item.path.name, len(first)), -counts[item.path.name], item.path.name))


def pytest_sessionstart(session):
    if not PROGRAM.exists() and not session.config.option.collectonly:
        pytest.exit("there is no %s" % PROGRAM, 2)


class Counts:
    def __init__(self):
        self.counts = {"passed": 0, "failed": 0, "skipped": 0, "names": []}

    def pytest_runtest_logreport(self, report):
        """Counts a test once: by its body, or by the fixture that failed before or after it."""
        if report.skipped:
            self.counts["skipped"] += 1
        elif report.failed:
            name = report.nodeid.removeprefix("tests/e2e/")
            if name in self.counts["names"]:
                return
            self.counts["failed"] += 1
            self.counts["names"].append(name)
            self.counts["passed"] -= report.when == "teardown"  # its body passed
        elif report.when == "call":
            self.counts["passed"] += 1


def pytest_configure(config):
    late.enabled = config.getoption("late")
    config.counts = Counts()
    config.pluginmanager.register(config.counts)


def pytest_sessionfinish(session):
    worker = hasattr(session.config, "workerinput")  # with -n: each process sees its part, the distributing one sees all
    if session.config.option.report and not worker:
        pathlib.Path(session.config.option.report).write_text(json.dumps(session.config.counts.counts))


@pytest.fixture
def full(request):
    return request.config.getoption("--full")


@pytest.fixture(scope="session")
def pki(tmp_path_factory):
    return Pki(tmp_path_factory.mktemp("pki"))


@pytest.fixture
def context(pki):
    """The TLS of an origin with the certificate of pki."""
    one = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    one.load_cert_chain(pki.server, pki.server_key)
    return one


@pytest.fixture(scope="session")
def nginx(tmp_path_factory, pki):
    if not nginx_module.available():
        pytest.skip("nginx is not installed")
    server = nginx_module.Nginx(tmp_path_factory.mktemp("nginx"), pki)
    yield server
    server.stop()


@pytest.fixture
def gate():
    """Holds requests until the test releases them, at its end at the latest."""
    one = Gate()
    yield one
    one.open()


@pytest.fixture
def long_responses(origin, gate):
    """An origin whose chunked responses to /long end when the gate opens; and the gate."""
    def handler(exchange):
        exchange.read_body()
        if exchange.request.target != "/long":
            return exchange.reply()
        exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n")
        gate.enter()
        exchange.send(b"4\r\nhalf\r\n0\r\n\r\n")
    return origin(handler), gate


@pytest.fixture
def pressure(origin, carpool, gate):
    """Memory that is in use as the test says; see harness/pressure.py."""
    one = Pressure(origin, gate)
    yield one
    one.close()


@pytest.fixture
def webhook(tmp_path):
    """`carpool webhook` with a certificate and an injection of its own."""
    made = Webhook(tmp_path)
    yield made
    made.stop()


@pytest.fixture
def resolver(tmp_path):
    """A name server, and the mount namespace in which carpool sees it and its own /etc/hosts."""
    server = names.start(tmp_path)
    if server is None:
        pytest.skip("a name server of our own needs root: port 53 and a mount namespace")
    yield server
    server.stop()


@pytest.fixture
def origin():
    """origin(handler, tls=...) -> a scripted origin."""
    started = []

    def start(handler=hello, **more):
        started.append(Origin(handler, **more))
        return started[-1]
    yield start
    for one in started:
        one.stop()


@pytest.fixture
def carpool(tmp_path_factory):
    """carpool(pool={...}, ...) -> the program with this configuration; at the end TERM, and exit status 0."""
    started = []

    def start(**settings):
        started.append(Carpool(tmp_path_factory.mktemp("carpool"), **settings))
        return started[-1]
    yield start
    end(started)


def end(processes):
    """Stops each, and fails with the errors of all."""
    errors = []
    for one in processes:
        try:
            one.stop()
        except AssertionError as error:
            errors.append(str(error))
    assert not errors, "\n".join(errors)


@pytest.fixture
def line(tmp_path_factory):
    """line(...) -> the first process; line.next(c) -> its successor. All must end by themselves, without an error."""
    all_of_them = []

    class Line:
        def __call__(self, **settings):
            folder = tmp_path_factory.mktemp("line")
            settings.setdefault("handover", {"address": "unix:%s" % (folder / "h.sock")})
            all_of_them.append(Carpool(folder, **settings))
            return all_of_them[-1]

        def next(self, before, **more):
            all_of_them.append(Successor(before, **more))
            return all_of_them[-1]
    yield Line()
    end(all_of_them)


@pytest.fixture
def starting(line):
    """starting(c) -> a successor that has the sockets and becomes ready only after starting.settle(), which ends its warm-up."""
    opened = []

    def start(before):
        server = tcp_server()
        server.settimeout(20)
        successor = line.next(before, start=False)
        successor.config = before.folder / "starting.toml"
        successor.config.write_text(
            'drain_delay = "60s"\n' + before.config.read_text() + '\n[[origin]]\nuri = "https://127.0.0.1:%d"\n'
            '[origin.pool]\nconnect_timeout = "60s"\n[origin.pool.warm_up]\nenabled = true\nsize = 1\n' % server.getsockname()[1])
        successor.launch()
        opened.extend((server, server.accept()[0]))  # its loops run
        return successor
    start.settle = lambda: [opened.pop().close() for _ in list(opened)]
    yield start
    start.settle()


@pytest.fixture
def peer():
    """A TCP server that gives each connection to a function of its own: peer(function) -> port."""
    acceptors = []

    def start(talk):
        server = tcp_server()
        acceptors.append(Acceptor(server, lambda sock: threading.Thread(target=talk, args=(Stream(sock),), daemon=True).start()))
        return server.getsockname()[1]
    yield start
    for acceptor in acceptors:
        acceptor.stop()
