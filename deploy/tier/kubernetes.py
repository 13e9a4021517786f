"""carpool in real pods: the example charts installed into a namespace that enforces the level `restricted`, and what
docs/kubernetes.md promises of them looked at one by one."""
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time

import chart
import images
import tools
from cluster import Cluster, absent, kubeone
from judge import Judge
from outcome import Outcome
from shell import ROOT

SPACE = "shop"
PAUSE = "FROM scratch\nCOPY catatonit /pause\nUSER 65535:65535\nENTRYPOINT [\"/pause\", \"-P\"]\n"
ROLLOUTS, RATE = 20, 50
ASK = "import urllib.request as u; print(u.build_opener(u.ProxyHandler({})).open('%s').read().decode())"


def status(pod, name):
    both = pod["status"].get("initContainerStatuses", []) + pod["status"].get("containerStatuses", [])
    return next(s for s in both if s["name"] == name)


def helpers(log, cluster):
    """The application's image and the sandbox's, made once."""
    environment, buildah = cluster.environment, cluster.buildah
    if log.run(*buildah, "inspect", "--type", "image", "localhost/app:1", env=environment):
        cluster.log.run("nice", "deploy/image/base", "localhost/app:1", "python3", limit=1200)
    if log.run(*buildah, "inspect", "--type", "image", "localhost/pause:1", env=environment):
        folder = cluster.folder / "pause"
        folder.mkdir(exist_ok=True)
        (folder / "catatonit").write_bytes(pathlib.Path(tools.have("catatonit")).read_bytes())
        (folder / "catatonit").chmod(0o755)
        (folder / "Dockerfile").write_text(PAUSE)
        log.run(*buildah, "bud", "--pull-never", "--runtime", "runc", "--isolation", "oci", "--network", "none", "-f",
                folder / "Dockerfile", "-t", "localhost/pause:1", folder, env=environment)


def built(log, folder):
    """A cluster that is not up yet, and every image that it will need."""
    cluster = Cluster(log, folder)
    helpers(log, cluster)
    if log.run(*cluster.buildah, "inspect", "--type", "image", images.NAME, env=cluster.environment):
        images.make(log, cluster.environment, cluster.buildah)
    return cluster


class Scene:
    """The cluster with an origin in it, and helm for the examples."""
    def __init__(self, cluster, judge, helm):
        self.cluster, self.judge, self.helm = cluster, judge, helm
        self.charts = chart.lay_out(cluster.folder / "charts")
        say = cluster.kubectl
        say("create", "namespace", SPACE)
        say("label", "namespace", SPACE, "pod-security.kubernetes.io/enforce=restricted")
        cluster.until("the account", lambda: "default" in say("get", "serviceaccounts", "-n", SPACE))
        say("create", "configmap", "origin", "-n", SPACE, "--from-file", ROOT / "tests/kubernetes/origin.py")
        say("apply", "-n", SPACE, "-f", ROOT / "tests/kubernetes/origin.yaml")
        say("wait", "-n", SPACE, "--for=condition=Ready", "pod/origin", "--timeout=60s", limit=90)
        self.origin = say("get", "pod", "origin", "-n", SPACE, "-o", "jsonpath={.status.podIP}")

    def install(self, name, example, *values, namespace=SPACE, wait=True):
        sets = ["image=localhost/app:1", "rate=%d" % RATE, "carpool.config.log.access=false",
                "carpool.config.origin[0].uri=http://shop.test:8080", "carpool.config.origin[0].alias[0]=shop",
                "carpool.config.origin[0].addresses[0]=%s:8080" % self.origin, *values]
        words = [word for value in sets for word in ("--set", value)]
        self.cluster.say("run", self.helm, "install", name, self.charts / "examples" / example, "-n", namespace, *words,
                         *(["--wait", "--timeout", "90s"] if wait else []), limit=120)

    def pod(self, name):
        return self.cluster.pods("app.kubernetes.io/instance=" + name, SPACE)[0]

    def exec(self, pod, url):
        """Asks from inside the pod, past the proxy: its loopback is carpool's."""
        return self.cluster.kubectl("exec", "-n", SPACE, pod["metadata"]["name"], "-c", "app", "--", "python3", "-c", ASK % url)

    def counts(self, pod):
        said = self.cluster.kubectl("logs", "-n", SPACE, pod["metadata"]["name"], "-c", "app")
        found = re.findall(r"(\d+) answered, (\d+) failed", said)
        return tuple(map(int, found[-1])) if found else (0, 0)


def moment(text):
    return time.mktime(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ"))


def starts_first(scene):
    pod = scene.pod("one")
    sidecar, app = status(pod, "carpool"), status(pod, "app")
    began, followed = (moment(s["state"]["running"]["startedAt"]) for s in (sidecar, app))
    scene.judge.take(sidecar["started"] and sidecar["ready"] and began <= followed, "the sidecar is first")
    scene.judge.take(followed - began <= 2, "within two seconds", "%d s" % (followed - began))
    scene.judge.log.say("FIGURE: carpool started to application started: %d s" % (followed - began))


def is_seen(scene):
    """Metrics, pools and the loops that the quota grants, from inside; the page by port-forward."""
    judge, pod = scene.judge, scene.pod("one")
    scene.cluster.until("an answer", lambda: scene.counts(pod)[0])
    metrics = scene.exec(pod, "http://127.0.0.1:9902/metrics")
    judge.take('carpool_requests_total{origin="http://shop.test:8080"' in metrics, "metrics")
    resident = float(re.search(r"^process_resident_memory_bytes (\S+)", metrics, re.M).group(1))
    judge.log.say("FIGURE: resident at %d requests a second: %.1f MiB" % (RATE, resident / 2**20))
    judge.take(resident < 32 * 2**20, "memory", str(resident))
    pools = json.loads(scene.exec(pod, "http://127.0.0.1:9901/pools"))
    judge.take("shop.test" in json.dumps(pools), "pools")
    argv, environment = scene.cluster.command("kubectl", "port-forward", "-n", SPACE, pod["metadata"]["name"], "19901:9901")
    forward = subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        forward.stdout.readline()
        page = scene.cluster.say("run", "curl", "-s", "http://127.0.0.1:19901/")
        judge.take("carpool" in page.lower(), "port-forward")
    finally:
        os.killpg(forward.pid, signal.SIGTERM)


def killed(scene):
    """SIGKILL: it alone is started again, and the application's next requests are answered."""
    pod, judge = scene.pod("one"), scene.judge
    container = status(pod, "carpool")["containerID"].split("//")[1]
    held = [int(p.name) for p in pathlib.Path("/proc").glob("[0-9]*")
            if container in (p / "cgroup").read_text() and (p / "comm").read_text().strip() == "carpool"]
    judge.take(len(held) == 1, "one process", str(held))
    os.kill(held[0], signal.SIGKILL)
    again = scene.cluster.until("the restart", lambda: (lambda p: p if status(p, "carpool")["restartCount"] == 1
                                                        and status(p, "carpool")["ready"] else None)(scene.pod("one")))
    judge.take(status(again, "app")["restartCount"] == 0, "the application lives on")
    good = json.loads(scene.exec(again, "http://127.0.0.1:9901/pools"))
    judge.take(bool(good), "it answers again")
    pools = scene.cluster.until("requests through it", lambda: "shop.test" in scene.exec(again, "http://127.0.0.1:9901/pools"))
    judge.take(bool(pools), "requests go on")


def rolled_out(scene):
    """Twenty times anew under load: every pod's application counts its own failures to its last moment."""
    judge, cluster = scene.judge, scene.cluster
    followed = {}

    def follow(pod):
        name = pod["metadata"]["name"]
        if name not in followed:
            argv, environment = cluster.command("kubectl", "logs", "-f", "-n", SPACE, name, "-c", "app")
            path = cluster.folder / (name + ".log")
            followed[name] = (path, subprocess.Popen(argv, env=environment, stdout=path.open("w"), stderr=subprocess.DEVNULL))
    for number in range(ROLLOUTS):
        follow(scene.pod("two"))
        cluster.kubectl("rollout", "restart", "-n", SPACE, "deployment/two")
        cluster.kubectl("rollout", "status", "-n", SPACE, "deployment/two", "--timeout=60s", limit=90)
        follow(scene.pod("two"))
        judge.log.say("rollout %d" % (number + 1))
    cluster.say("run", scene.helm, "uninstall", "two", "-n", SPACE, "--wait", "--timeout", "60s", limit=90)
    good = bad = whole = 0
    for path, process in followed.values():
        process.wait(30)
        last = re.findall(r"in all: (\d+) answered, (\d+) failed", path.read_text())
        whole += bool(last)
        good, bad = (good + int(last[0][0]), bad + int(last[0][1])) if last else (good, bad)
    judge.log.say("FIGURE: %d roll-outs, %d pods seen to their end, %d requests, %d failed" % (ROLLOUTS, whole, good + bad, bad))
    judge.take(whole == len(followed) and good > 100 and bad == 0, "no request is lost", "%d of %d; %d pods of %d" % (
        bad, good + bad, whole, len(followed)))


def job_completes(scene):
    scene.install("three", "sidecar", "jobRequests=20", wait=False)
    scene.cluster.kubectl("wait", "-n", SPACE, "--for=condition=Complete", "job/three", "--timeout=60s", limit=90)
    said = scene.cluster.kubectl("logs", "-n", SPACE, "job/three", "-c", "app")
    scene.judge.take("in all: 20 answered, 0 failed" in said, "a Job completes", said)


def limits_hold(scene):
    """The limit stands in the cgroup; a thousand idle clients fit."""
    pod, judge = scene.pod("one"), scene.judge
    program = ("import socket,time,urllib.request as u\n"
               "s=[socket.create_connection(('127.0.0.1',3128)) for _ in range(1000)]\n"
               "print(u.build_opener(u.ProxyHandler({})).open('http://127.0.0.1:9902/metrics').read().decode())\n")
    text = scene.cluster.kubectl("exec", "-n", SPACE, pod["metadata"]["name"], "-c", "app", "--", "python3", "-c", program)
    clients = float(re.search(r"^carpool_downstream_connections (\S+)", text, re.M).group(1))
    resident = float(re.search(r"^process_resident_memory_bytes (\S+)", text, re.M).group(1))
    judge.log.say("FIGURE: resident with %d clients: %.1f MiB" % (clients, resident / 2**20))
    judge.take(clients >= 1000 and status(scene.pod("one"), "carpool")["restartCount"] <= 1, "a thousand clients in 64 MiB")


def on_every_node(scene):
    cluster, space = scene.cluster, "nodes"
    cluster.kubectl("create", "namespace", space)
    cluster.kubectl("label", "namespace", space, "pod-security.kubernetes.io/enforce=privileged")
    scene.install("four", "daemonset", "carpool.config.egress.allow[0]=%s:8080" % scene.origin, "carpool.config.egress.allow[1]=shop.test:8080",
                  namespace=space)
    name = cluster.pods("app.kubernetes.io/name=daemonset", space)[0]["metadata"]["name"]
    said = cluster.until("an answer", lambda: (lambda t: t if " answered" in t else "")(cluster.kubectl("logs", "-n", space, name)))
    scene.judge.take(re.search(r"[1-9]\d* answered", said) is not None, "through the node's port", said)


PARTS = (starts_first, is_seen, limits_hold, killed, job_completes, on_every_node)


def kubernetes(log, full):
    why = absent()
    helm, no_helm = tools.get(log, "helm") if not why else (None, "")
    why = why or no_helm or ("" if kubeone(log) else "Kubernetes cannot be built: there is no Go")
    if why:
        return Outcome(skipped=1, note=why)
    judge = Judge(log)
    with tempfile.TemporaryDirectory(prefix="carpool-kubernetes-") as name, built(log, name) as cluster:
        scene = Scene(cluster, judge, helm)
        scene.install("one", "sidecar")
        judge.take(True, "installs where `restricted` is enforced")
        for part in PARTS:
            try:
                part(scene)
            except Exception as error:  # the next parts have their say
                judge.take(False, part.__name__, str(error))
        scene.cluster.say("run", helm, "uninstall", "one", "-n", SPACE)
        scene.install("two", "sidecar")
        try:
            rolled_out(scene)
        except Exception as error:
            judge.take(False, "rolled_out", str(error))
    outcome = judge.outcome()
    figures = "; ".join(line.removeprefix("FIGURE: ") for line in log.tail("FIGURE: ", 100))
    outcome.note = "; ".join(n for n in (outcome.note, figures) if n)
    return outcome
