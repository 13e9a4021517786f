"""A real one-node Kubernetes for a test (../shared/kubernetes) in a network namespace of its own, and queries of it.

A machine has one such cluster, in one folder: a new run first removes the remains of one that died. Two kubelets side by
side would take each other's pods for orphans, so a lock excludes a second run."""
import fcntl
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

import tools
from shell import SHARED

SCRIPT = SHARED / "kubernetes" / "cluster.sh"
NEEDS = ("containerd", "runc", "etcd", "kubectl", "catatonit", "mmdebstrap", "buildah", "podman", "nsenter", "ip", "openssl", "curl")
VERSION = "1.34.4"
FLAGS = " ".join("-X k8s.io/component-base/version.%s" % word for word in (
    "gitVersion=v" + VERSION, "gitMajor=1", "gitMinor=34"))
SPACE = "carpool-test"  # the network's name


def absent():
    """Returns why no cluster is possible here, or an empty string."""
    if not SCRIPT.exists():
        return "../shared/kubernetes is not there"
    if os.geteuid() != 0:
        return "a cluster needs root"
    missing = [name for name in NEEDS if not shutil.which(name)]
    return "not installed: " + ", ".join(missing) if missing else ""


def kubeone(log):
    """Builds the single program that is a whole Kubernetes, once; this takes a quarter of an hour. Returns None if it
    cannot be built."""
    path = os.environ.get("KUBEONE") or tools.have("kubeone")
    if path or not shutil.which("go"):
        return path
    source, target = tools.FOLDER / "kubeone-source", tools.FOLDER / "kubeone"
    shutil.copytree(SHARED / "kubernetes" / "kubeone", source, dirs_exist_ok=True)
    for words in (("sh", "gen.sh", VERSION), ("go", "mod", "tidy"),
                  ("nice", "go", "build", "-p", "2", "-trimpath", "-o", target, "-ldflags", "-s -w " + FLAGS, ".")):
        if log.run(*words, cwd=source, limit=3600):
            return None
    return str(target)


class Cluster:
    def __init__(self, log, program):
        self.log = log
        self.folder = pathlib.Path(tempfile.gettempdir()) / "carpool-kubernetes"
        self.state = self.folder / "cluster"
        self.environment = {"KUBEONE": program, "CLUSTER_DIR": str(self.state), "CLUSTER_NS": SPACE}

    def __enter__(self):
        self.folder.mkdir(exist_ok=True)
        self.lock = (self.folder / "lock").open("w")
        fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            self.down()
            self.run("up", limit=300)
        except BaseException:
            self.down()
            raise
        return self

    def __exit__(self, *_):
        self.down()
        self.lock.close()

    def down(self):
        """Removes every process, mount, network and folder of the cluster, also after a run that was killed."""
        self.forget_strangers()
        self.log.run(SCRIPT, "down", env=self.environment, limit=180)
        for process in self.processes():  # unknown to the script: shims of containers whose containerd died
            os.kill(process, signal.SIGKILL)
        shutil.rmtree(self.state, ignore_errors=True)

    def forget_strangers(self):
        """Removes recorded process ids that now belong to other programs, which the script must not end."""
        mine = self.processes()
        for path in self.state.glob("*.pid"):
            if int(path.read_text() or 0) not in mine:
                path.unlink()

    def processes(self):
        """Returns the processes whose command line names the cluster's folder."""
        found = set()
        for path in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if str(self.state).encode() in (path / "cmdline").read_bytes() and int(path.name) != os.getpid():
                    found.add(int(path.name))
            except OSError:
                pass  # it has ended
        return found

    def load(self, podman, environment, names):
        archive = self.folder / "images.tar"
        archive.unlink(missing_ok=True)
        if self.log.run(*podman, "save", "-q", "-m", "-o", archive, *names, env=environment, limit=300):
            raise RuntimeError("the images cannot be saved")
        self.run("load", archive, limit=300)
        archive.unlink()

    def run(self, *words, limit=120):
        if self.log.run(SCRIPT, *words, env=self.environment, limit=limit):
            raise RuntimeError("%s failed" % " ".join(map(str, words[:4])))

    def start(self, *words, **more):
        """Starts a command beside the cluster; the caller reads its output and ends it."""
        return subprocess.Popen([str(SCRIPT), *map(str, words)], env={**os.environ, **self.environment}, text=True, start_new_session=True,
                                **more)

    def try_out(self, *words, limit=60, stdin=None):
        """Returns (exit status, stdout, stderr) of a command beside the cluster."""
        done = subprocess.run([str(SCRIPT), *map(str, words)], env={**os.environ, **self.environment}, capture_output=True, text=True,
                              timeout=limit, input=stdin if stdin is not None else "")
        self.log.say("$ %s\n%s%s" % (" ".join(map(str, words)), done.stdout[-2000:], done.stderr[-2000:]))
        return done.returncode, done.stdout, done.stderr

    def say(self, *words, limit=60, stdin=None):
        """Returns the output of a command beside the cluster; a failure raises an error."""
        status, out, err = self.try_out(*words, limit=limit, stdin=stdin)
        if status:
            raise RuntimeError("%s: %s" % (" ".join(map(str, words[:5])), (err or out).strip()[-300:]))
        return out

    def kubectl(self, *words, limit=60, stdin=None):
        return self.say("kubectl", *words, limit=limit, stdin=stdin)

    def get(self, *words):
        return json.loads(self.kubectl("get", *words, "-o", "json"))

    def until(self, what, look, seconds=60):
        """Polls until the result is true; raises an error after the timeout."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            answer = look()
            if answer:
                return answer
            time.sleep(0.2)
        raise RuntimeError("waited %d s for %s" % (seconds, what))


def end(process):
    """Ends a command that start() began."""
    try:
        os.killpg(process.pid, signal.SIGTERM)
    except ProcessLookupError:
        pass
    process.wait(10)
