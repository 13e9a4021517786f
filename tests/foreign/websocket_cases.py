"""Autobahn's testsuite for WebSocket with carpool between its two ends, in each way that a WebSocket can take: an upgrade in absolute
form, an upgrade to a listener with an origin, a tunnel by CONNECT, and a stream of HTTP/2."""
import contextlib
import json
import os
import pathlib
import subprocess
import tempfile

import fetch
import scene
from websocket_bridge import Bridge

PYTHON = "libpython2.7-minimal", "libpython2.7-stdlib", "python2.7-minimal"
WHEELS = ("Twisted==20.3.0 zope.interface==5.4.0 constantly==15.1.0 incremental==17.5.0 Automat==20.2.0 hyperlink==21.0.0 attrs==21.4.0 "
          "six==1.16.0 idna==2.10 typing==3.10.0.0 txaio==2.10.0 setuptools==44.1.1 Jinja2==2.11.3 MarkupSafe==1.1.1").split()
SOURCES = "autobahn==0.10.9", "autobahntestsuite==25.10.1"
# Those of compression have a thousand messages each, in seventeen sizes and settings, of which a proxy notices nothing: the first of each.
COMPRESSION = ["12.%d.%d" % (kind, size) for kind in range(1, 6) for size in range(2, 19)] + [
    "13.%d.%d" % (kind, size) for kind in range(1, 8) for size in range(2, 19)]
PASSED = ("OK", "NON-STRICT", "INFORMATIONAL")


@contextlib.contextmanager
def runner():
    """Yields a function that starts one role of the suite with what it is told."""
    python, environment = fetch.debian("python2.7", *PYTHON, release="bullseye")
    packages = fetch.FOLDER / "autobahn"
    fetch.packages_of_python2(packages, WHEELS, SOURCES)
    environment = {**os.environ, **environment, "PYTHONPATH": str(packages), "PYTHONDONTWRITEBYTECODE": "1"}
    with tempfile.TemporaryDirectory() as folder:
        def start(role, port=None, **told):
            argv = [python, "-W", "ignore", pathlib.Path(__file__).with_name("wstest.py"), json.dumps({"role": role, **told})]
            if port:
                return scene.program(*argv, port=port, env=environment, cwd=folder)
            done = subprocess.run(list(map(str, argv)), env=environment, cwd=folder, capture_output=True, text=True, timeout=1200, check=False)
            if done.returncode:
                raise RuntimeError("the suite ended with %d: %s" % (done.returncode, done.stderr[-300:]))
            return None
        yield start


def url(port):
    return "ws://127.0.0.1:%d" % port


def tell(report, form, folder):
    """The suite's own judgement of what was received, and of how the connection ended."""
    for name, case in json.loads((folder / "index.json").read_text())["peer"].items():
        ends = {case["behavior"], case["behaviorClose"]}
        report.case("%s/%s" % (form, name), ends <= set(PASSED), " ".join(sorted(ends)))


def fuzz_a_server(report, start, folder, ways, without):
    """`ways` names for each form the address and the options of the client, if the server has this port."""
    server = scene.free_port()
    with start("echo-server", server, url=url(server)):
        for form, told in ways(server):
            start("fuzzing-client", reports=str(folder / form), cases=["*"], without=without, **told)
            tell(report, form, folder / form)


def fuzz_a_client(report, start, folder, proxy, without):
    server = scene.free_port()
    with start("fuzzing-server", server, url=url(server), reports=str(folder / "origin"), cases=["*"], without=without):
        with scene.carpool(proxy, 'origin = "http://127.0.0.1:%d"' % server) if proxy else contextlib.nullcontext():
            start("echo-client", url=url(proxy or server))
    tell(report, "origin", folder / "origin")


def suite(report, peer):
    with runner() as start, tempfile.TemporaryDirectory() as name:
        folder, port = pathlib.Path(name), scene.free_port()
        if peer:
            fuzz_a_server(report, start, folder, lambda server: [("absolute", {"url": url(server)})], COMPRESSION)
            fuzz_a_client(report, start, folder, 0, COMPRESSION)
            return
        with scene.carpool(port):
            fuzz_a_server(report, start, folder, lambda server: [("absolute", {"url": url(server), "absolute": port})], COMPRESSION)
            fuzz_a_server(report, start, folder, lambda server: [("connect", {"url": url(server), "through": port})], [*COMPRESSION, "9.*"])
            fuzz_over_h2(report, start, folder, port)
        fuzz_a_client(report, start, folder, port, [*COMPRESSION, "9.*"])


def fuzz_over_h2(report, start, folder, port):
    with contextlib.ExitStack() as stack:
        def ways(server):
            bridge = stack.enter_context(Bridge(port, server))
            return [("h2", {"url": url(bridge.port)})]
        fuzz_a_server(report, start, folder, ways, COMPRESSION)


if __name__ == "__main__":
    scene.main(suite, peers=["none"])
