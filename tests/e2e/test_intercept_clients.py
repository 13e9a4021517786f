"""Unchanged clients whose https requests pass through carpool: with the environment that `carpool ca env` prints they are intercepted, and
their requests share the connections of the origin's pool."""
import os
import pathlib
import shutil
import ssl
import subprocess
import sys

import pytest
from harness.authority import Authority
from harness.carpool import PROGRAM
from harness.java import compiled
from harness.wait import HANGS, until

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "foreign"))
import fetch  # noqa: E402

CLIENTS = pathlib.Path(__file__).parent / "clients"
NODE_MODULES = pathlib.Path(__file__).parents[2] / "build/bench-apps/node/node_modules"
PATH = os.environ.get("PATH", "") + ":/usr/local/go/bin"
NAME = "origin.test"  # several clients never use a proxy for localhost
RUNS, GETS = 2, 5


def echo(exchange):
    exchange.reply(body=b"hello" if exchange.request.method == "GET" else b"got %d" % len(exchange.read_body()))


class Scene:
    """An origin over TLS, carpool that intercepts it, and the environment of its clients."""

    def __init__(self, origin, carpool, pki, authority):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pki.server, pki.server_key)
        context.set_alpn_protocols(["http/1.1"])
        self.origin = origin(echo, tls=context)
        self.url = "https://%s:%d" % (NAME, self.origin.port)
        # The clients' requests share a connection however long a slow machine takes between two: by default a POST uses none that was idle
        # for more than five seconds.
        reuse = {"reuse": "always", "idle_timeout": "10m"}
        self.carpool = carpool(origin=[{"uri": self.url, "intercept": True, "addresses": ["127.0.0.1:%d" % self.origin.port], "pool": reuse,
                                        "upstream": {"tls": {"ca_file": pki.ca}}}], intercept={"ca_dir": str(authority.folder)})
        self.proxy = "http://%s:%d" % self.carpool.address
        subprocess.run([PROGRAM, "ca", "bundle", authority.folder], check=True, capture_output=True)
        said = subprocess.run([PROGRAM, "ca", "env", authority.folder, "--format", "plain"], check=True, capture_output=True, text=True).stdout
        usual = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
        self.environment = {**usual, **dict(line.split("=", 1) for line in said.splitlines()), "PATH": PATH,
                            "HTTPS_PROXY": self.proxy, "https_proxy": self.proxy}

    def run(self, *command, **more):
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=HANGS, env={**self.environment, **more})
        assert done.returncode == 0, (command, done.stdout, done.stderr, self.carpool.tail())
        return done.stdout

    def check(self, said, version):
        """Each run succeeded, each of its connections was intercepted, and the origin saw the minimum of connections."""
        for lines in said:
            assert lines.splitlines() == ["200 HTTP/%d hello" % version] * GETS + ["200 HTTP/%d got 100000" % version]
        metric = self.carpool.metric
        until(lambda: metric("carpool_requests_total", origin=self.url, code="200") >= RUNS * (GETS + 1), what="the count of every request")
        assert metric("carpool_requests_total", origin=self.url, code="200") == RUNS * (GETS + 1)
        until(lambda: metric("carpool_intercept_connects_total", origin=self.url) == metric(
            "carpool_intercept_connects_total", origin=self.url, result="intercepted") > 0, what="nothing but interceptions")
        assert self.origin.opened == 1, "requests one after the other share a connection"
        assert metric("carpool_pool_opened_total", origin=self.url) == 1


@pytest.fixture
def scene(origin, carpool, pki, tmp_path):
    return Scene(origin, carpool, pki, Authority(tmp_path / "ca", [NAME]))


def need(program):
    found = shutil.which(program, path=PATH)
    if not found:
        pytest.skip(program + " is not installed")
    return found


@pytest.mark.parametrize("version", [1, 2])
def test_curl(scene, version, tmp_path):
    body = tmp_path / "body"
    body.write_bytes(b"x" * 100000)
    show = "%{stderr}%{http_code} HTTP/%{http_version} "
    flags = [need("curl"), "-sS", "--http1.1" if version == 1 else "--http2", "-w", show.replace("%{stderr}", "") + "\n", "-o"]

    def one(*more):
        said = scene.run(*flags, str(tmp_path / "said"), *more).split()
        return "%s %s %s\n" % (said[0], said[1].removesuffix(".1"), (tmp_path / "said").read_text())
    said = ["".join([one(scene.url + "/hello") for _ in range(GETS)] + [one("--data-binary", "@%s" % body, scene.url + "/sink")]) for _ in range(RUNS)]
    scene.check(said, version)


@pytest.mark.parametrize("client, version", [("requests", 1), ("httpx", 1), ("httpx-h2", 2)])
def test_python(scene, client, version):
    pytest.importorskip(client.removesuffix("-h2"))
    scene.check([scene.run(sys.executable, CLIENTS / "intercepted.py", scene.url, client) for _ in range(RUNS)], version)


@pytest.fixture(scope="module")
def go_client(tmp_path_factory):
    program = tmp_path_factory.mktemp("go") / "client"
    subprocess.run([need("go"), "build", "-o", program, CLIENTS / "intercepted.go"], check=True, timeout=HANGS, env={**os.environ, "GO111MODULE": "off"})
    return program


@pytest.fixture(scope="module")
def java_client(tmp_path_factory):
    return compiled(need("javac"), CLIENTS / "Intercepted.java", tmp_path_factory.mktemp("java"))


@pytest.mark.parametrize("version", [1, 2])
def test_go_net_http(go_client, scene, version):
    scene.check([scene.run(go_client, scene.url, "h%d" % version) for _ in range(RUNS)], version)


@pytest.mark.parametrize("how, version", [("h1", 1), ("h2", 2), ("fetch", 1)])
def test_node(scene, how, version):
    if how == "fetch" and not (NODE_MODULES / "undici").exists():
        pytest.skip("undici is not in build/bench-apps; tests/bench/apps/scene_apps.py gets it")
    scene.check([scene.run(need("node"), CLIENTS / "intercepted.js", scene.url, how, NODE_PATH=str(NODE_MODULES)) for _ in range(RUNS)], version)


@pytest.mark.parametrize("version", [1, 2])
def test_java_httpclient(java_client, scene, version):
    scene.check([scene.run(*java_client, scene.url, "h%d" % version, scene.proxy) for _ in range(RUNS)], version)


RUBY = ["ruby3.1", "libruby3.1", "libyaml-0-2", "libgmp10"]
PHP = ["php8.2-cli", "php8.2-common", "libargon2-1", "libsodium23", "libxml2", "libedit2", "libbsd0", "libmd0", "libicu72"]


def obtained(program, full, name, packages):
    """Returns the installed program, or with --full Debian's in build/foreign, and the environment that it needs."""
    found = shutil.which(program, path=PATH)
    if found:
        return found, {}
    if not full:
        pytest.skip(program + " is not installed; --full gets it")
    try:
        path, environment = fetch.debian(name, *packages)
    except fetch.Absent as reason:
        pytest.skip(str(reason))
    library = path.parents[1] / "lib"
    folders = [*library.glob("ruby/3*"), *library.glob("*-linux-gnu/ruby/3*")]
    return path, {**environment, "RUBYOPT": "--disable-gems", "RUBYLIB": ":".join(map(str, folders))}


def test_ruby_net_http(scene, full):
    """It reads http_proxy for https too."""
    ruby, environment = obtained("ruby", full, "ruby3.1", RUBY)
    scene.check([scene.run(ruby, CLIENTS / "intercepted.rb", scene.url, http_proxy=scene.proxy, **environment) for _ in range(RUNS)], 1)


def test_php_stream(scene, full):
    php, environment = obtained("php", full, "php8.2", PHP)
    scene.check([scene.run(php, CLIENTS / "intercepted.php", scene.url, **environment) for _ in range(RUNS)], 1)


def refused(scene, **labels):
    return scene.carpool.metric("carpool_intercept_refusals_total", origin=scene.url, **labels)


@pytest.mark.parametrize("client, alert, times", [("curl", "unknown_ca", 1), ("node h1", "none", 2), ("node h2", "none", 2)])
def test_a_client_that_trusts_the_origin_alone_is_found_out_and_gets_a_tunnel(scene, pki, client, alert, times):
    """Node sends no alert."""
    program, _, how = client.partition(" ")
    command = {"curl": ["curl", "-sS", scene.url + "/hello"], "node": ["node", CLIENTS / "intercepted.js", scene.url, how]}[program]
    doubting = {**scene.environment, "CURL_CA_BUNDLE": pki.ca, "SSL_CERT_FILE": pki.ca, "NODE_EXTRA_CA_CERTS": pki.ca}

    def ask():
        return subprocess.run([need(program), *map(str, command[1:])], capture_output=True, text=True, timeout=HANGS, env=doubting)
    for n in range(times):
        assert ask().returncode != 0
        until(lambda n=n: refused(scene, alert=alert) == (n + 1 == times), what="refusal after %d" % times)
    ask()
    assert scene.carpool.metric("carpool_intercept_connects_total", origin=scene.url, result="distrusted") > 0
