"""Tests changes under a running sidecar: its configuration and its secrets in place, the whole pod in a roll-out under load."""
import re
import time
import tomllib

from cluster import end
from kubernetes_scene import ADMIN, KEEP, SPACE, name_of, status

ROLLOUTS, RATE = 20, 100


def same_process(scene, pod, process, what):
    now = scene.pod("one")
    scene.judge.take(name_of(now) == name_of(pod) and scene.process(now) == process, what + " in place",
                     "restarts: %d" % status(now, "carpool")["restartCount"])


def configuration_arrives(scene):
    """A changed ConfigMap (`onConfigChange: keep` keeps the pods) takes effect without a restart."""
    pod = scene.pod("one")
    process = scene.process(pod)
    values = scene.values(carpool={**KEEP, "config": {"pool": {"size": 61}}})
    before = tomllib.loads(scene.past(pod, ADMIN + "/config.toml"))["pool"]["size"]
    began = time.monotonic()
    scene.helm_do("upgrade", "one", "examples/sidecar", values)
    scene.nudge(pod)
    scene.cluster.until("the new size", lambda: tomllib.loads(scene.past(pod, ADMIN + "/config.toml"))["pool"]["size"] == 61, 90)
    scene.judge.take(before == 64, "another size before", str(before))
    scene.figure("a changed ConfigMap in force after %.1f s" % (time.monotonic() - began))
    same_process(scene, pod, process, "a ConfigMap's change")


def secrets_rotate(scene):
    """The CA in a Secret is replaced: the same process then trusts an origin that it rejected before."""
    pod, judge = scene.pod("one"), scene.judge
    process = scene.process(pod)
    first = {name: scene.ask(pod, "http://%s/" % name)[0] for name in ("old", "new")}
    judge.take(first["old"].startswith("200") and first["new"].startswith("502"), "the first CA", str(first))
    text = scene.cluster.kubectl("create", "secret", "generic", "trust", "-n", SPACE, "--from-file=ca.crt=%s" % (scene.files / "new.crt"),
                                 "--dry-run=client", "-o", "json")
    began = time.monotonic()
    scene.cluster.kubectl("apply", "-n", SPACE, "-f", "-", stdin=text)
    scene.nudge(pod)
    scene.cluster.until("trust in the new certificate", lambda: scene.ask(pod, "http://new/")[0].startswith("200"), 90)
    scene.figure("a changed Secret in force after %.1f s" % (time.monotonic() - began))
    same_process(scene, pod, process, "a Secret's change")


class Followers:
    """Follows the applications' output to their end: a deleted pod has no log."""
    def __init__(self, scene, release):
        self.scene, self.release, self.held = scene, release, {}

    def look(self):
        """Starts following new pods."""
        for pod in self.scene.pods(self.release):
            name = name_of(pod)
            if name not in self.held and "running" in status(pod, "app")["state"]:
                path = self.scene.files / (name + ".log")
                with path.open("w") as out:
                    self.held[name] = (path, self.scene.cluster.start("kubectl", "logs", "-f", "-n", SPACE, name, "-c", "app", stdout=out))

    def sums(self):
        """Returns (pods with a summary, requests answered, failed)."""
        whole = good = bad = 0
        for path, process in self.held.values():
            process.wait(30)
            last = re.findall(r"in all: (\d+) answered, (\d+) failed", path.read_text())
            if last:
                whole, good, bad = whole + 1, good + int(last[0][0]), bad + int(last[0][1])
        return whole, good, bad

    def close(self):
        for _, process in self.held.values():
            end(process)


def rolled_out(scene):
    """Twenty roll-outs under load: every pod's application counts its own failures until it ends."""
    judge, kubectl = scene.judge, scene.cluster.kubectl
    scene.install("rolled", "sidecar", scene.values(rate=RATE))
    followers = Followers(scene, "rolled")
    try:
        followers.look()
        for _ in range(ROLLOUTS):
            kubectl("rollout", "restart", "-n", SPACE, "deployment/rolled")
            kubectl("rollout", "status", "-n", SPACE, "deployment/rolled", "--timeout=60s", limit=90)
            followers.look()
        scene.remove("rolled")
        whole, good, bad = followers.sums()
    finally:
        followers.close()
    scene.figure("%d roll-outs, %d requests, %d lost" % (ROLLOUTS, good + bad, bad))
    judge.take(whole == ROLLOUTS + 1 == len(followers.held), "every pod is heard to its end", "%d of %d" % (whole, len(followers.held)))
    judge.take(good > ROLLOUTS * RATE and bad == 0, "no request is lost", "%d of %d" % (bad, good + bad))
