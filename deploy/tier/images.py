"""The image: built by the Dockerfile without a registry, run as a sidecar would be (read-only root, no capabilities, 64 MiB),
checked for its health, and measured. Two builds must yield the same image."""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess

import beside
import tools
from judge import Judge
from outcome import Outcome
from shell import ROOT

BASE, NAME = "localhost/build:bookworm", "localhost/carpool:0.1.0"
MOST = 12_000_000  # bytes, unpacked
RUN = ("--pull=never", "--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--memory", "64m", "--pids-limit", "64")
CLIENTS = 1000
# Inside the container's network: opens clients that send nothing, and reads the metrics until all are accepted.
CROWD = """
import re, socket, urllib.request
crowd = [socket.create_connection(("127.0.0.1", 3128)) for _ in range(%d)]
ask = urllib.request.build_opener(urllib.request.ProxyHandler({})).open
for _ in range(200):
    text = ask("http://127.0.0.1:9902/metrics").read().decode()
    seen = float(re.search(r"^carpool_downstream_connections (\\S+)", text, re.M).group(1))
    if seen >= len(crowd):
        break
print(int(seen), re.search(r"^process_resident_memory_bytes (\\S+)", text, re.M).group(1))
""" % CLIENTS


def engines():
    """Returns the environment and the commands that deploy/image/storage sets."""
    text = tools.output("bash", "-c", ". deploy/image/storage && env -0")
    environment = dict(line.split("=", 1) for line in text.split("\0") if "=" in line)
    return environment, shlex.split(environment["BUILDAH"]), shlex.split(environment["PODMAN"])


def absent():
    missing = [name for name in ("buildah", "podman", "runc", "mmdebstrap") if not shutil.which(name)]
    if os.geteuid() != 0:
        return "images are built as root here"
    return "%s is not installed" % ", ".join(missing) if missing else ""


def packages():
    """Returns the packages that deploy/setup --image installs."""
    return tools.output("deploy/setup", "--list-image").split()


def revision():
    return tools.output("git", "describe", "--tags", "--always", "--dirty", "--abbrev=12", "--match", "v[0-9]*").strip()


def build(log, environment, buildah, tag, *arguments, base=BASE):
    """Builds from the working tree; the build uses ccache's folder."""
    cache = pathlib.Path(os.environ.get("CCACHE_DIR", pathlib.Path.home() / ".cache/ccache"))
    cache.mkdir(parents=True, exist_ok=True)
    return log.run("nice", *buildah, "bud", "--pull-never", "--runtime", "runc", "--isolation", "oci", "--network", "none", "--format",
                   "docker", "--timestamp", "0", "--no-cache", "--volume", "%s:/ccache" % cache, "--build-arg",
                   "BUILD_BASE=" + base, "--build-arg", "REVISION=" + revision(), *arguments, "-f", "deploy/Dockerfile", "-t", tag, ".", limit=3000, env=environment)


def make(log, environment, buildah):
    """Builds base and image. Returns True if both exist."""
    if log.run(*buildah, "inspect", "--type", "image", BASE, env=environment):
        if log.run("nice", "deploy/image/base", BASE, *packages(), limit=1200):
            return False
    return build(log, environment, buildah, NAME) == 0


def image_of(podman, environment, name):
    return json.loads(tools.output(*podman, "image", "inspect", name, env=environment))[0]


def state(podman, environment, name):
    return json.loads(tools.output(*podman, "container", "inspect", name, env=environment))[0]["State"]


def look(judge, podman, environment):
    """Checks the image's metadata and its size."""
    image = image_of(podman, environment, NAME)
    config = image["Config"]
    judge.take(image["Size"] <= MOST, "size", str(image["Size"]))
    judge.take(config["User"] == "65532:65532", "user")
    judge.take(config["Entrypoint"] == ["/usr/bin/carpool"], "entrypoint")
    judge.take("--health" in json.dumps([value for key, value in {**image, **config}.items() if key.lower() == "healthcheck"]), "healthcheck")
    judge.log.say("size %d bytes, %s" % (image["Size"], image["Id"]))
    return image


def resident(process):
    """MiB."""
    text = pathlib.Path("/proc/%d/status" % process).read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", text).group(1)) / 1024


def crowd(judge, process):
    """A thousand idle clients fit into the container's memory."""
    rest = resident(process)
    done = subprocess.run(["nsenter", "--net=/proc/%d/ns/net" % process, "python3", "-c", CROWD], capture_output=True, text=True, timeout=60)
    seen = done.stdout.split() or ["0", "0"]
    judge.take(int(seen[0]) >= CLIENTS, "%d clients in 64 MiB" % CLIENTS, done.stdout + done.stderr[-500:])
    judge.log.say("resident %.1f MiB at rest, %.1f MiB with %s clients" % (rest, float(seen[1]) / 2**20, seen[0]))


def trusts(judge, podman, environment):
    """The program finds the image's public authorities, by which origins are verified."""
    said = subprocess.run([*podman, "run", "--rm", *RUN, "--network", "none", "--tmpfs", "/made:mode=1777", NAME, "ca", "init", "/made/ca", "--host",
                           "api.example.com", "--trust", "/made/trust"], env=environment, capture_output=True, text=True, timeout=60)
    found = re.search(r"(\d+) authorities of the system", said.stdout)
    judge.take(found and int(found.group(1)) > 50, "public authorities", said.stdout + said.stderr)


def run(judge, podman, environment):
    """Read-only, without capabilities: it gets ready, is healthy, and ends cleanly."""
    name = "carpool-image-test"

    def do(*words):
        return judge.log.run(*podman, *words, env=environment, limit=60)
    do("rm", "-f", name)
    try:
        judge.take(do("run", "-d", "--name", name, *RUN, NAME) == 0, "starts")
        # The healthcheck's own command retries until it gets a response; each try is a process, so this is no busy wait.
        healthy = any(do("healthcheck", "run", name) == 0 for _ in range(30))
        judge.take(healthy, "is healthy")
        status = subprocess.run([*podman, "exec", name, "carpool", "--version"], env=environment, capture_output=True, text=True)
        judge.take(status.stdout.startswith("carpool %s (%s)\n" % (NAME.split(":")[1], revision())), "exec", status.stdout + status.stderr)
        process = state(podman, environment, name)["Pid"]
        rights = pathlib.Path("/proc/%d/status" % process).read_text()
        judge.log.say(rights)
        judge.take("CapEff:\t0000000000000000" in rights and "NoNewPrivs:\t1" in rights, "without rights")
        crowd(judge, process)
        judge.take(do("stop", "-t", "30", name) == 0, "stops")
        judge.take(state(podman, environment, name)["ExitCode"] == 0, "exit status 0")
    finally:
        do("logs", name)
        do("rm", "-f", name)


def images(log, full):
    why = absent()
    if why:
        return Outcome(skipped=1, note=why)
    judge = Judge(log)
    environment, buildah, podman = engines()
    judge.take(make(log, environment, buildah), "builds")
    if judge.total.failed:
        return judge.outcome()
    first = look(judge, podman, environment)
    trusts(judge, podman, environment)
    run(judge, podman, environment)
    if log.run(*buildah, "inspect", "--type", "image", beside.APPLICATION, env=environment):
        judge.take(log.run("nice", "deploy/image/base", beside.APPLICATION, "python3", limit=1200) == 0, "the application's base")
    beside.beside(judge, podman, environment, NAME)
    if full:
        judge.take(build(log, environment, buildah, NAME + "-again") == 0, "builds again")
        again = image_of(podman, environment, NAME + "-again")
        judge.take(again["RootFS"]["Layers"] == first["RootFS"]["Layers"], "the same twice")
    return judge.outcome()
