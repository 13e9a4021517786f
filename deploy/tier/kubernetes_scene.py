"""The fixture of the tests in pods: a namespace that enforces the level `restricted`, an origin, the example charts,
and access to a pod from outside."""
import json
import os
import pathlib
import re
import signal

import chart
from shell import ROOT

PROGRAMS = ROOT / "tests" / "kubernetes"
SPACE, LEVEL = "shop", "pod-security.kubernetes.io/enforce=%s"
ADMIN, METRICS = "http://127.0.0.1:9901", "http://127.0.0.1:9902/metrics"
PAST = "import urllib.request as u; print(u.build_opener(u.ProxyHandler({})).open('%s').read().decode())"
KEEP = {"onConfigChange": "keep"}  # a changed configuration does not roll out the pods
CALM = {"rate": 2, "lingerSeconds": 2}


def status(pod, name):
    """Returns one container's status."""
    both = pod["status"].get("initContainerStatuses", []) + pod["status"].get("containerStatuses", [])
    return next((s for s in both if s["name"] == name), {"restartCount": 0, "state": {}, "ready": False, "started": False})


def name_of(pod):
    return pod["metadata"]["name"]


def metric(text, name):
    return float(re.search(r"^%s (\S+)" % re.escape(name), text, re.M).group(1))


class Scene:
    def __init__(self, cluster, judge, helm):
        self.cluster, self.judge, self.helm, self.figures = cluster, judge, helm, []
        self.files = cluster.state / "files"
        self.files.mkdir()
        self.charts = chart.lay_out(cluster.state / "charts")
        self.space(SPACE, "restricted")
        self.origin = self.make_origin()

    def figure(self, text):
        self.figures.append(text)
        self.judge.log.say("FIGURE: " + text)

    def space(self, name, level):
        kubectl = self.cluster.kubectl
        kubectl("create", "namespace", name)
        kubectl("label", "namespace", name, LEVEL % level)
        self.cluster.until("the account", lambda: "default" in kubectl("get", "serviceaccounts", "-n", name))

    def certificate(self, name, host="shop.test"):
        """Returns (certificate, key), self-signed."""
        paths = [self.files / (name + ending) for ending in (".crt", ".key")]
        self.judge.log.run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                           "-subj", "/CN=" + host, "-addext", "subjectAltName=DNS:" + host, "-out", paths[0], "-keyout", paths[1])
        return paths

    def make_origin(self):
        """Returns its address. The application's pods trust its certificate `old`, until that changes."""
        kubectl = self.cluster.kubectl
        for name in ("old", "new"):
            crt, key = self.certificate(name)
            (self.files / (name + ".pem")).write_text(crt.read_text() + key.read_text())
        kubectl("create", "secret", "generic", "origin", "-n", SPACE, *("--from-file=%s" % (self.files / (n + ".pem")) for n in ("old", "new")))
        kubectl("create", "secret", "generic", "trust", "-n", SPACE, "--from-file=ca.crt=%s" % (self.files / "old.crt"))
        kubectl("create", "configmap", "origin", "-n", SPACE, "--from-file", PROGRAMS / "origin.py")
        kubectl("apply", "-n", SPACE, "-f", PROGRAMS / "origin.yaml")
        kubectl("wait", "-n", SPACE, "--for=condition=Ready", "pod/origin", "--timeout=60s", limit=90)
        return self.cluster.get("pod", "origin", "-n", SPACE)["status"]["podIP"]

    def origins(self):
        """Returns config.origin: a plain one, and two over TLS of which the second is not trusted."""
        plain = {"uri": "http://shop.test:8080", "alias": ["shop"], "addresses": [self.origin + ":8080"]}
        trust = {"tls": {"ca_file": "/etc/trust/ca.crt"}}
        secure = [{"uri": "https://shop.test:%d" % port, "alias": [alias], "addresses": ["%s:%d" % (self.origin, port)], "upstream": trust,
                   "pool": {"size": 256, "max_waiting": 256}} for port, alias in ((8443, "old"), (8444, "new"))]
        return [plain, *secure]

    def values(self, **more):
        """Returns the sidecar example's values for this cluster."""
        carpool = {"config": {"log": {"access": False}, "origin": self.origins()},
                   "secrets": [{"name": "trust", "secret": "trust", "mountPath": "/etc/trust"}]}
        return merged({"image": "localhost/app:1", **CALM, "carpool": carpool}, more)

    def helm_do(self, verb, name, example, values, *words, namespace=SPACE):
        path = self.files / (name + ".json")
        path.write_text(json.dumps(values))
        return self.cluster.say("run", self.helm, verb, name, self.charts / example, "-n", namespace, "-f", path, *words, limit=150)

    def install(self, name, example, values, *words, namespace=SPACE):
        return self.helm_do("install", name, "examples/" + example, values, *(words or ("--wait", "--timeout", "90s")), namespace=namespace)

    def remove(self, name, namespace=SPACE):
        self.cluster.say("run", self.helm, "uninstall", name, "-n", namespace, "--wait", "--timeout", "90s", limit=120)

    def pods(self, release, namespace=SPACE):
        found = self.cluster.get("pods", "-n", namespace, "-l", "app.kubernetes.io/instance=" + release)["items"]
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def pod(self, release, namespace=SPACE):
        return self.pods(release, namespace)[0]

    def python(self, pod, program, *arguments, limit=90, namespace=SPACE):
        """Runs one of tests/kubernetes' programs in the application's container; returns its output."""
        return self.cluster.kubectl("exec", "-i", "-n", namespace, name_of(pod), "-c", "app", "--", "python3", "-", *arguments,
                                    stdin=(PROGRAMS / program).read_text(), limit=limit)

    def ask(self, pod, url, times=1, namespace=SPACE):
        """Returns [status and Proxy-Status] of requests through the proxy."""
        return self.python(pod, "ask.py", times, url, namespace=namespace).splitlines()

    def past(self, pod, url):
        """Returns the response of the pod's loopback, bypassing the proxy."""
        return self.cluster.kubectl("exec", "-n", SPACE, name_of(pod), "-c", "app", "--", "python3", "-c", PAST % url)

    def carpool(self, pod, *words):
        """Runs `kubectl exec … carpool WORDS`."""
        return self.cluster.kubectl("exec", "-n", SPACE, name_of(pod), "-c", "carpool", "--", "carpool", *words)

    def log(self, pod, container, *words):
        return self.cluster.kubectl("logs", "-n", SPACE, name_of(pod), "-c", container, *words)

    def counts(self, pod, namespace=SPACE):
        """Returns (answered, failed) as the application reported last."""
        said = self.cluster.kubectl("logs", "-n", namespace, name_of(pod), "-c", "app")
        found = re.findall(r"(\d+) answered, (\d+) failed", said)
        return tuple(map(int, found[-1])) if found else (0, 0)

    def process(self, pod, container="carpool"):
        """Returns the id of its first process on this machine."""
        held = []
        number = status(pod, container)["containerID"].split("//")[1]
        for path in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if number in (path / "cgroup").read_text():
                    held.append(int(path.name))
            except OSError:
                pass  # it has ended
        if not held:
            raise RuntimeError("no process of " + container)
        return min(held)

    def kill(self, pod):
        os.kill(self.process(pod), signal.SIGKILL)

    def nudge(self, pod):
        """Changes an annotation so that the kubelet syncs the pod at once, its mounted ConfigMaps and Secrets too; else
        that takes a minute."""
        self.cluster.kubectl("annotate", "pod", "-n", SPACE, name_of(pod), "--overwrite", "example/nudge=%d" % os.urandom(1)[0])


def merged(one, other):
    """Merges nested tables."""
    result = dict(one)
    for key, value in other.items():
        result[key] = merged(result[key], value) if isinstance(value, dict) and isinstance(result.get(key), dict) else value
    return result


def group_file(process, name):
    """Reads a file of the memory control group of a process, for either version of control groups."""
    for line in pathlib.Path("/proc/%d/cgroup" % process).read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            return pathlib.Path("/sys/fs/cgroup/memory" + path) / {"limit": "memory.limit_in_bytes", "peak": "memory.max_usage_in_bytes"}[name]
    path = pathlib.Path("/proc/%d/cgroup" % process).read_text().split("::")[1].strip()
    return pathlib.Path("/sys/fs/cgroup" + path) / {"limit": "memory.max", "peak": "memory.peak"}[name]


def resident(process):
    """MiB."""
    text = pathlib.Path("/proc/%d/status" % process).read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", text).group(1)) / 1024
