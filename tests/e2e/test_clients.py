"""Real clients against a real nginx: through HTTP_PROXY, and with an absolute-form https target where they can."""
import os
import pathlib
import shutil
import subprocess

import pytest
from harness.java import QUICK_JAVA
from harness.wait import until

CLIENTS = pathlib.Path(__file__).parent / "clients"
GO = shutil.which("go", path=os.environ.get("PATH", "") + ":/usr/local/go/bin")


class Front:
    """carpool before nginx, which it knows as origin.test."""

    def __init__(self, carpool, nginx, pki):
        self.base, self.tls_base = "http://origin.test:%d" % nginx.port, "https://origin.test:%d" % nginx.tls_port
        self.carpool = carpool(upstream={"tls": {"ca_file": pki.ca}}, origin=[
            {"uri": self.base, "addresses": ["127.0.0.1:%d" % nginx.port]},
            {"uri": self.tls_base, "addresses": ["127.0.0.1:%d" % nginx.tls_port]}])
        self.proxy = "http://%s:%d" % self.carpool.address

    def run(self, *command, **env):
        base = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
        done = subprocess.run(command, capture_output=True, text=True, timeout=120,
                              env={**base, "http_proxy": self.proxy, "HTTP_PROXY": self.proxy, **env})
        assert done.returncode == 0, (command, done.stdout, done.stderr, self.carpool.tail())
        return done.stdout

    def opened(self, label):
        return self.carpool.metric("carpool_pool_opened_total", origin=label)


@pytest.fixture
def front(carpool, nginx, pki):
    return Front(carpool, nginx, pki)


def common(front, said, tls=True):
    """The output that every client of clients/ must print, and the upstream connections allowed."""
    lines = said.splitlines()
    assert lines[0] == "big 1048576"
    assert lines[1].startswith("got 1048576 via 1.1 carpool-")
    assert lines[2:] == (["hello over https"] if tls else [])
    until(lambda: front.carpool.metric("carpool_requests_total", origin=front.base, code="200") == 182, what="the requests")
    if tls:
        assert front.opened(front.tls_base) == 1
    assert front.carpool.metric("carpool_pool_closed_total", origin=front.base) == 0


def test_curl_through_http_proxy(front, tmp_path):
    body = tmp_path / "body"
    body.write_bytes(b"x" * (1 << 20))
    assert front.run("curl", "-sS", "--fail", *[front.base + "/hello"] * 20) == "hello over http\n" * 20
    assert front.run("curl", "-sS", "--fail", "--data-binary", "@%s" % body, front.base + "/sink").startswith("got 1048576 via")
    assert front.run("curl", "-sS", "--fail", "-L", front.base + "/redirect") == "hello over http\n"
    front.run("curl", "-sS", "--fail", "-o", str(tmp_path / "big"), front.base + "/big")
    assert (tmp_path / "big").read_bytes() == bytes(range(256)) * 4096
    assert "404" in front.run("curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", front.base + "/none")
    assert "Content-Length: 1048576" in front.run("curl", "-sS", "-I", front.base + "/big")
    assert front.opened(front.base) == 1


def test_curl_asks_for_https_in_absolute_form(front):
    said = front.run("curl", "-sS", "--fail", "--noproxy", "*", "--request-target", front.tls_base + "/hello", front.proxy + "/")
    assert said == "hello over https\n"


def test_curl_reaches_an_https_url_through_a_tunnel(front, pki):
    said = front.run("curl", "-sS", "--fail", "--noproxy", "", "-x", front.proxy, "--cacert", str(pki.ca),
                     "--connect-to", "::127.0.0.1:", front.tls_base + "/hello")
    assert said == "hello over https\n"


def test_requests_through_http_proxy(front, monkeypatch):
    requests = pytest.importorskip("requests")
    monkeypatch.setenv("http_proxy", front.proxy)
    monkeypatch.delenv("no_proxy", raising=False)
    with requests.Session() as session:
        for _ in range(20):
            assert session.get(front.base + "/hello", timeout=10).text == "hello over http\n"
        assert session.post(front.base + "/sink", data=b"x" * 5000, timeout=10).text.startswith("got 5000 via")
        assert session.post(front.base + "/sink", data=iter([b"x" * 700] * 9), timeout=10).status_code == 200
        with session.get(front.base + "/big", stream=True, timeout=10) as response:
            assert sum(map(len, response.iter_content(9999))) == 1 << 20
    assert front.opened(front.base) == 1


def test_httpx_through_http_proxy_and_absolute_https(front, monkeypatch):
    httpx = pytest.importorskip("httpx")
    monkeypatch.setenv("http_proxy", front.proxy)
    monkeypatch.delenv("no_proxy", raising=False)
    with httpx.Client() as client:
        for _ in range(20):
            assert client.get(front.base + "/hello").text == "hello over http\n"
    with httpx.Client(trust_env=False) as client:
        response = client.get(front.proxy + "/", extensions={"target": (front.tls_base + "/hello").encode()})
        assert response.text == "hello over https\n"
    assert front.opened(front.base) == 1


@pytest.mark.skipif(not GO, reason="go is not installed")
def test_go_net_http(front, tmp_path):
    program = tmp_path / "client"
    front.run(GO, "build", "-o", str(program), str(CLIENTS / "client.go"), GO111MODULE="off")
    common(front, front.run(str(program), front.base, front.tls_base, front.proxy))


@pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")
def test_node_http(front):
    common(front, front.run("node", str(CLIENTS / "client.js"), front.base, front.tls_base, front.proxy))


@pytest.mark.skipif(not shutil.which("javac"), reason="a JDK is not installed")
def test_java_httpclient(front):
    common(front, front.run(*QUICK_JAVA, str(CLIENTS / "Client.java"), front.base, front.tls_base, front.proxy), tls=False)
