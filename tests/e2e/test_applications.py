"""The programs of docs/applications.md run exactly as printed there, in front of one origin with TLS."""
import os
import pathlib
import shutil
import subprocess
import sys

import pytest
from harness.ports import free_port
from harness.transcript import Reader, blocks

PAGE = "docs/applications.md"
LANGUAGES = {"PHP": ("php", "orders.php"), "Python": ("python", "orders.py"), "Node": ("js", "orders.js"), "Go": ("go", "orders.go"),
             "Java": ("java", "Orders.java")}
PATH = "%s:%s:/usr/local/go/bin" % (pathlib.Path(sys.executable).parent, os.environ["PATH"])


def need(program):
    """Skips a test. Must be called before `reader` is set up, which expects a connection of each test."""
    if not shutil.which(program, path=PATH):
        pytest.skip("%s is not installed" % program)


@pytest.fixture
def node():
    need("node")


@pytest.fixture
def program(language):
    kind, _ = LANGUAGES[language]
    need({"python": "python3", "js": "node"}.get(kind, kind))
    if kind == "php" and "curl" not in subprocess.run(["php", "-m"], capture_output=True, text=True).stdout:
        pytest.skip("PHP's curl is not installed")


@pytest.fixture
def reader(origin, carpool, context, pki):
    def orders(exchange):
        exchange.read_body()
        assert exchange.request.target == "/orders"
        exchange.reply(body=b"[1, 2, 3]")
    o = origin(orders, tls=context)
    uri, direct = "https://origin.test:%d" % o.port, "127.0.0.1:%d" % free_port()
    c = carpool(origin=[{"uri": uri, "alias": ["api"], "addresses": [o.authority]}], upstream={"tls": {"ca_file": pki.ca}}, start=False)
    c.config.write_text(c.config.read_text() + '\n[[listen]]\naddress = "%s"\norigin = "%s"\n' % (direct, uri))
    c.start()
    one = Reader(c)
    one.real = lambda text, real=one.real: real(text).replace("127.0.0.1:3129", direct)
    one.environment["PATH"] = "%s:%s" % (pathlib.Path(sys.executable).parent, one.environment["PATH"])
    yield one
    assert c.metric("carpool_pool_opened_total", origin=uri) == 1


def test_a_base_url_is_enough(node, reader):
    reader.follow(PAGE, "Any language: only the base URL")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_program_of_the_page_runs(program, reader, language, monkeypatch):
    kind, file = LANGUAGES[language]
    (text,) = blocks(PAGE, language, kind)
    assert file in text.splitlines()[0]
    port = str(reader.carpool.address[1])
    (reader.carpool.folder / file).write_text(reader.real(text).replace("port: 3128", "port: " + port).replace('1", 3128', '1", ' + port))
    reader.environment["GO111MODULE"] = "off"
    reader.follow(PAGE, language)
    if language == "PHP":  # two borrows, as many as the page's last session needs to be in the plural
        reader.follow(PAGE, "See that it works")
