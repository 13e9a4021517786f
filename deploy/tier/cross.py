"""The image for arm64: cross-compiled in a base that has both architectures' packages, and the program in it run by qemu:
its --version, and a request through it to an origin on this machine."""
import http.server
import pathlib
import re
import shutil
import subprocess
import tempfile
import threading
import urllib.request

import images
import tools
from judge import Judge
from outcome import Outcome

ARCHITECTURE, MACHINE = "arm64", 183  # e_machine of its programs
BASE, NAME = "localhost/build-%s:bookworm" % ARCHITECTURE, images.NAME + "-" + ARCHITECTURE
CONFIG = '[[listen]]\naddress = "127.0.0.1:0"\n\n[admin]\nenabled = false\n'


class Origin(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *_):
        pass


def ask(proxy, port):
    """Returns (body, Via) of one request through the proxy."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": "http://" + proxy}))
    with opener.open("http://127.0.0.1:%d/" % port, timeout=30) as answer:
        return answer.read(), answer.headers["Via"] or ""


def served(program, config):
    """Returns the response to a request through the program, and its exit status after TERM."""
    carpool = subprocess.Popen([*program, "--config", config], stderr=subprocess.PIPE, text=True)
    with carpool, http.server.ThreadingHTTPServer(("127.0.0.1", 0), Origin) as origin:
        threading.Thread(target=origin.serve_forever, daemon=True).start()
        try:
            ready = next((line for line in carpool.stderr if "carpool ready" in line), "it never got ready")
            threading.Thread(target=carpool.stderr.read, daemon=True).start()
            found = re.search(r"127\.0\.0\.1:\d+", ready)
            answer = ask(found.group(0), origin.server_port) if found else (ready, "")
        finally:
            carpool.terminate()
            origin.shutdown()
        return *answer, carpool.wait(60)


def emulated(judge, root):
    qemu = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
    if not qemu:
        return judge.skip("qemu-user is not installed")
    program = [qemu, "-L", str(root), str(root / "usr/bin/carpool")]
    version = subprocess.run([*program, "--version"], capture_output=True, text=True)
    judge.take(version.returncode == 0 and version.stdout.startswith("carpool "), "--version", version.stdout + version.stderr)
    checked = subprocess.run([*program, "--check", "--config", root / "etc/carpool/config.toml"], capture_output=True, text=True)
    judge.take(checked.returncode == 0, "--check", checked.stdout + checked.stderr)
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder) / "config.toml"
        config.write_text(CONFIG)
        body, via, status = served(program, config)
    judge.take(body == b"hello" and "carpool-" in via, "a request through it", "%r, Via: %s" % (body, via))
    return judge.take(status == 0, "ends by TERM", str(status))


def cross(log, full):
    why = images.absent()
    if why:
        return Outcome(skipped=1, note=why)
    judge = Judge(log)
    environment, buildah, podman = images.engines()
    if log.run(*buildah, "inspect", "--type", "image", BASE, env=environment):
        names = tools.output("deploy/setup", "--list-image", ARCHITECTURE).split()
        judge.take(log.run("nice", "deploy/image/base", BASE, *names, limit=1800) == 0, "the base")
    built = images.build(log, environment, buildah, NAME, "--build-arg", "ARCHITECTURE=" + ARCHITECTURE, base=BASE) == 0
    judge.take(built, "cross-compiles")
    if built:
        size = images.image_of(podman, environment, NAME)["Size"]
        log.say("size %d bytes" % size)
        judge.take(size <= images.MOST, "size", str(size))
        root = pathlib.Path(tools.output(*podman, "image", "mount", NAME, env=environment).strip())
        try:
            head = (root / "usr/bin/carpool").read_bytes()[:20]
            judge.take(int.from_bytes(head[18:20], "little") == MACHINE, "a program for " + ARCHITECTURE)
            emulated(judge, root)
        finally:
            log.run(*podman, "image", "umount", NAME, env=environment)
    return judge.outcome()
