"""A real one-node Kubernetes for a test (../shared/kubernetes), its images, and what one asks of it."""
import json
import os
import pathlib
import shutil
import subprocess
import time

import images
import tools
from shell import ROOT, SHARED

SCRIPT = SHARED / "kubernetes" / "cluster.sh"
NEEDS = ("containerd", "runc", "etcd", "kubectl", "catatonit", "mmdebstrap", "buildah", "podman", "nsenter")
VERSION = "1.34.4"
FLAGS = " ".join("-X k8s.io/component-base/version.%s" % word for word in (
    "gitVersion=v" + VERSION, "gitMajor=1", "gitMinor=34"))


def absent():
    """Why there can be no cluster here; empty: there can."""
    if not SCRIPT.exists():
        return "../shared/kubernetes is not there"
    if os.geteuid() != 0:
        return "a cluster needs root"
    missing = [name for name in NEEDS if not shutil.which(name)]
    return "not installed: " + ", ".join(missing) if missing else ""


def kubeone(log):
    """The one program that is a whole Kubernetes; made once, which takes a quarter of an hour. None: it cannot be made."""
    path = tools.have("kubeone")
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
    def __init__(self, log, folder):
        self.log, self.folder = log, pathlib.Path(folder)
        self.environment, self.buildah, self.podman = images.engines()
        self.environment |= {"KUBEONE": kubeone(log) or "", "CLUSTER_DIR": str(self.folder / "cluster"), "CLUSTER_NS": "carpool-test"}

    def __enter__(self):
        self.down()  # what a run that died may have left
        self.run("up", limit=300)
        self.run("load", self.saved(), limit=300)
        return self

    def __exit__(self, *_):
        self.down()

    def down(self):
        self.log.run(SCRIPT, "down", env=self.environment, limit=180)
        shutil.rmtree(self.folder / "cluster", ignore_errors=True)

    def saved(self):
        archive = self.folder / "images.tar"
        archive.unlink(missing_ok=True)
        if self.log.run(*self.podman, "save", "-q", "-m", "-o", archive, images.NAME, "localhost/app:1", "localhost/pause:1",
                        env=self.environment, limit=300):
            raise RuntimeError("the images cannot be saved")
        return archive

    def run(self, *words, limit=120):
        if self.log.run(SCRIPT, *words, env=self.environment, limit=limit):
            raise RuntimeError("%s failed" % " ".join(map(str, words[:4])))

    def command(self, *words):
        """The words of a command that runs beside the cluster, for those who start it themselves."""
        return [str(SCRIPT), *map(str, words)], self.environment

    def say(self, *words, limit=60):
        """What a command beside the cluster prints; a complaint is an error."""
        argv, environment = self.command(*words)
        done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=limit)
        self.log.say("$ %s\n%s%s" % (" ".join(map(str, words)), done.stdout[-2000:], done.stderr[-2000:]))
        if done.returncode:
            raise RuntimeError("%s: %s" % (" ".join(map(str, words[:5])), done.stderr.strip()[-300:]))
        return done.stdout

    def kubectl(self, *words, limit=60):
        return self.say("kubectl", *words, limit=limit)

    def pods(self, selector, namespace):
        found = json.loads(self.kubectl("get", "pods", "-n", namespace, "-l", selector, "-o", "json"))["items"]
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def until(self, what, look, seconds=60):
        """Asks until the answer is something; an error past the time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            answer = look()
            if answer:
                return answer
            time.sleep(0.2)
        raise RuntimeError("waited %d s for %s" % (seconds, what))
