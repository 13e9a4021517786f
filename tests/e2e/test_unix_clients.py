"""The recipes of docs/unix-sockets.md: clients that reach carpool through its Unix socket."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pytest

CLIENTS = pathlib.Path(__file__).parent / "clients"
GO = shutil.which("go", path=os.environ.get("PATH", "") + ":/usr/local/go/bin")


@pytest.fixture
def tmp_path():
    """A short one: the path of a socket has at most 107 bytes."""
    with tempfile.TemporaryDirectory() as folder:
        yield pathlib.Path(folder)


@pytest.fixture
def proxy_socket(origin, carpool, tmp_path):
    """carpool's Unix socket, and an origin."""
    o, path = origin(), str(tmp_path / "proxy.sock")
    c = carpool(listeners=[{"address": "unix:" + path, "mode": "0660"}])
    assert oct(os.stat(path).st_mode & 0o777) == "0o660"
    return o, path, c


def said_by(command, **env):
    base = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env={**base, **env})
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout


def test_curl_through_the_socket(proxy_socket):
    o, path, _ = proxy_socket
    assert said_by(["curl", "-sS", "--noproxy", "*", "--unix-socket", path, o.url + "/curl"]) == "ok"
    assert o.targets() == ["/curl"]


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_node_through_the_socket(proxy_socket):
    o, path, _ = proxy_socket
    assert said_by(["node", str(CLIENTS / "unix.js"), path, o.url]) == "200 ok\n200 ok\n200 ok\n"
    assert o.opened == 1 and o.targets() == ["/node"] * 3


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_undici_through_the_socket(proxy_socket):
    o, path, _ = proxy_socket
    assert said_by(["node", str(CLIENTS / "unix.js"), path, o.url, "undici"]) == "200 ok\n200 ok\n200 ok\n"
    assert o.opened == 1 and o.targets() == ["/undici"] * 3


@pytest.mark.skipif(GO is None, reason="go is not installed")
def test_go_through_the_socket(proxy_socket, tmp_path):
    o, path, _ = proxy_socket
    program = tmp_path / "client"
    said_by([GO, "build", "-o", str(program), str(CLIENTS / "unix.go")], GO111MODULE="off")
    assert said_by([str(program), path, o.url]) == "200 ok\n200 ok\n200 ok\n"
    assert o.opened == 1 and o.targets() == ["/go"] * 3


@pytest.mark.parametrize("library", ["requests", "httpx"])
def test_python_through_the_socket(proxy_socket, library):
    pytest.importorskip(library)
    o, path, _ = proxy_socket
    assert said_by([sys.executable, str(CLIENTS / "unix.py"), path, o.url, library]) == "200 ok\n200 ok\n200 ok\n"
    assert o.opened == 1 and o.targets() == ["/" + library] * 3


def test_grpc_through_the_socket(carpool, tmp_path):
    grpc = pytest.importorskip("grpc")
    from test_grpc import serve
    server, _, port = serve()
    path = "unix:%s" % (tmp_path / "proxy.sock")
    c = carpool(listeners=[{"address": path}], origin=[
        {"uri": "http://echo", "addresses": ["127.0.0.1:%d" % port], "upstream": {"protocols": ["h2"]}}])
    with grpc.insecure_channel(path, options=[("grpc.default_authority", "echo")]) as channel:
        for _ in range(20):
            assert channel.unary_unary("/t.Echo/Unary")(b"abc", timeout=20) == b"cba"
    assert c.metric("carpool_requests_total", origin="http://echo", code="200") == 20
    server.stop(None)
