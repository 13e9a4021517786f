"""The image of applications that nobody changed: Python, Node, Go and Java, each with its own HTTP client."""
import re
import shutil
import subprocess

import tools
from kubernetes_scene import PROGRAMS

IMAGE = "localhost/clients:1"
SOURCES = PROGRAMS / "clients"
FILE = "FROM localhost/app:1\nCOPY . /clients\nENV LD_LIBRARY_PATH=/clients/lib\nUSER 10001:10001\n"
COMMANDS = {
    "python": ["python3", "/clients/ask.py"], "node": ["/clients/node", "/clients/ask.mjs"], "go": ["/clients/ask"],
    "java": ["/clients/jre/bin/java", "-cp", "/clients", "Ask"],
}
LIBC = re.compile(r"lib(c|m|dl|rt|pthread)\.so|ld-linux")  # the base has these


def libraries(program, folder):
    """Copies the shared objects that a program brings along."""
    folder.mkdir(exist_ok=True)
    for path in re.findall(r"=> (/\S+)", tools.output("ldd", program)):
        if not LIBC.search(path):
            shutil.copy(path, folder)


def has_node(log, folder):
    """Node reads HTTPS_PROXY since 22.21 and 24."""
    node = tools.have("node")
    version = tools.output(node, "--version").strip() if node else ""
    major, minor = (int(n) for n in re.match(r"v(\d+)\.(\d+)", version).groups()) if version else (0, 0)
    if major < 24 and (major, minor) < (22, 21):
        log.say("node %s does not read HTTPS_PROXY" % (version or "is not installed, so it"))
        return False
    shutil.copy(node, folder / "node")
    libraries(node, folder / "lib")
    return True


def has_go(log, folder):
    return shutil.which("go") and log.run("go", "build", "-ldflags", "-s -w", "-o", folder / "ask", SOURCES / "ask.go",
                                          env={"CGO_ENABLED": "0", "GO111MODULE": "off"}, limit=600) == 0


def has_java(log, folder):
    """A runtime of the few modules that it needs."""
    if not shutil.which("javac") or not shutil.which("jlink"):
        return False
    made = log.run("javac", "-d", folder, SOURCES / "Ask.java", limit=120) or log.run(
        "jlink", "--add-modules", "java.net.http,jdk.crypto.ec", "--strip-debug", "--no-man-pages", "--no-header-files", "--output", folder / "jre",
        limit=300)
    if made == 0:
        libraries(folder / "jre/lib/server/libjvm.so", folder / "lib")
        libraries(folder / "jre/lib/libjimage.so", folder / "lib")
        libraries(folder / "jre/lib/libzip.so", folder / "lib")
    return made == 0


def make(log, environment, buildah, folder):
    """Returns the names of the applications in the image; none if it cannot be built."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for source in ("ask.py", "ask.mjs"):
        shutil.copy(SOURCES / source, folder)
    names = ["python", *(name for name, has in (("node", has_node), ("go", has_go), ("java", has_java)) if has(log, folder))]
    (folder / "Dockerfile").write_text(FILE)
    subprocess.run(["chmod", "-R", "a+rX", folder], check=True)
    done = log.run(*buildah, "bud", "--pull-never", "--runtime", "runc", "--isolation", "oci", "--network", "none", "-f", folder / "Dockerfile", "-t",
                   IMAGE, folder, env=environment, limit=300)
    return names if done == 0 else []
