"""Tests a sidecar's life: ready before its application starts, alive until that has ended, restarted alone when it dies."""
import datetime
import json
import os
import pathlib
import re
import threading
import time

from cluster import end
from kubernetes_scene import KEEP, SPACE, name_of, status


class Watch:
    """Records when each state of one release's pods was first seen, by this machine's clock; Kubernetes' own has whole
    seconds."""
    def __init__(self, scene, release):
        self.seen = {}
        self.process = scene.cluster.start("kubectl", "get", "pods", "-n", SPACE, "-l", "app.kubernetes.io/instance=" + release, "--watch", "-o",
                                           "json", stdout=-1)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        decoder, text = json.JSONDecoder(), ""
        for line in self.process.stdout:
            text += line
            if line == "}\n":
                pod, _ = decoder.raw_decode(text)
                text = ""
                self.note(pod)

    def note(self, pod):
        sidecar, app = status(pod, "carpool"), status(pod, "app")
        conditions = {c["type"]: c["status"] for c in pod["status"].get("conditions", [])}
        for word, holds in (("scheduled", conditions.get("PodScheduled") == "True"), ("running", "running" in sidecar["state"]),
                            ("started", sidecar.get("started")), ("application", "running" in app["state"]),
                            ("ready", conditions.get("Ready") == "True")):
            if holds:
                self.seen.setdefault(word, time.monotonic())

    def close(self):
        end(self.process)


def said_at(line):
    """Returns the time of one line of `kubectl logs --timestamps`, in seconds."""
    whole, fraction = re.match(r"(\S+)\.(\d+)Z ", line).groups()
    moment = datetime.datetime.fromisoformat(whole).replace(tzinfo=datetime.timezone.utc).timestamp()
    return moment + float("0." + fraction)


def began_at(process):
    """Returns when a process started, in seconds since 1970."""
    ticks = int(pathlib.Path("/proc/%d/stat" % process).read_text().rsplit(")", 1)[1].split()[19])
    up = float(pathlib.Path("/proc/uptime").read_text().split()[0])
    return time.time() - up + ticks / os.sysconf("SC_CLK_TCK")


def waited_for_processor(process):
    """The time in which the process's first thread was ready and others had the processors."""
    return int(pathlib.Path("/proc/%d/schedstat" % process).read_text().split()[1]) / 1e9


def starts_first(scene):
    """Installs the example `one`, which the other parts use."""
    watch = Watch(scene, "one")
    try:
        scene.install("one", "sidecar", scene.values(carpool=KEEP))
        scene.judge.take(True, "installs where `restricted` is enforced")
        seen = scene.cluster.until("every state", lambda: watch.seen if "ready" in watch.seen else None)
    finally:
        watch.close()
    pod = scene.pod("one")
    lines = {name: scene.log(pod, name, "--timestamps").splitlines() for name in ("carpool", "app")}
    ready = next(said_at(line) for line in lines["carpool"] if "carpool ready" in line)
    first = scene.cluster.until("the application's first line", lambda: scene.log(pod, "app", "--timestamps"))
    scene.judge.take(ready < said_at(first) and seen["started"] <= seen["application"], "the sidecar is first")
    scene.judge.take("so far: 1 answered, 0 failed" in first, "its very first request is answered", first)
    own, waited = ready - began_at(scene.process(pod)), waited_for_processor(scene.process(pod))
    scene.judge.take(own - waited <= 1, "ready within a second of its start", "%.3f s, of which other programs had the processors for at most %.3f s" % (own, waited))
    scene.figure("program's start to `carpool ready` %.0f ms; pod scheduled to sidecar started %.1f s, to application running %.1f s" % (
        1000 * own, seen["started"] - seen["scheduled"], seen["application"] - seen["scheduled"]))


def killed(scene):
    """SIGKILL: only the sidecar restarts, and the application's next requests are answered."""
    cluster, judge, pod = scene.cluster, scene.judge, scene.pod("one")
    before = status(pod, "carpool")["restartCount"]
    began = time.monotonic()
    scene.kill(pod)
    again = cluster.until("the restart", lambda: (lambda p: p if status(p, "carpool")["restartCount"] == before + 1
                                                  and status(p, "carpool")["ready"] else None)(scene.pod("one")))
    scene.figure("ready again %.1f s after SIGKILL" % (time.monotonic() - began))
    judge.take(name_of(again) == name_of(pod) and status(again, "app")["restartCount"] == 0, "the application lives on")
    judge.take(status(again, "carpool")["lastState"]["terminated"]["exitCode"] == 137, "it was killed")
    answers = scene.ask(again, "http://shop/", 20)
    judge.take(len(answers) == 20 and all(a.startswith("200") for a in answers), "the next requests are answered", str(answers))


def last_seen(processes):
    """Returns when each of them was last seen; ends when none is left."""
    seen = {}
    while len(seen) < len(processes) or time.monotonic() < max(seen.values()) + 0.2:
        seen |= {name: time.monotonic() for name, number in processes.items() if pathlib.Path("/proc/%d" % number).exists()}
        time.sleep(0.005)
    return seen


def ends_last(scene):
    """The pod is deleted: the application sends requests for two more seconds and loses none, and only then carpool ends."""
    cluster, judge, pod = scene.cluster, scene.judge, scene.pod("one")
    follower = cluster.start("kubectl", "logs", "-f", "-n", SPACE, name_of(pod), "-c", "app", stdout=-1)
    processes = {name: scene.process(pod, name) for name in ("app", "carpool")}
    # A finalizer keeps the pod's last state readable.
    cluster.kubectl("patch", "pod", "-n", SPACE, name_of(pod), "--type=merge", "-p", '{"metadata": {"finalizers": ["example.com/look"]}}')
    try:
        cluster.kubectl("delete", "pod", "-n", SPACE, name_of(pod), "--wait=false")
        seen = last_seen(processes)
        last = cluster.until("both exit statuses", lambda: (lambda p: p if all("terminated" in status(p, n)["state"] for n in seen) else None)(
            cluster.get("pod", name_of(pod), "-n", SPACE)))
    finally:
        cluster.kubectl("patch", "pod", "-n", SPACE, name_of(pod), "--type=merge", "-p", '{"metadata": {"finalizers": null}}')
    codes = {name: status(last, name)["state"]["terminated"]["exitCode"] for name in seen}
    judge.take(codes == {"app": 0, "carpool": 0}, "both exit with 0", str(codes))
    judge.take(seen["carpool"] > seen["app"], "carpool ends after the application", str(seen))
    scene.figure("carpool ended %.1f s after its application" % (seen["carpool"] - seen["app"]))
    said = follower.communicate(timeout=30)[0]
    judge.take("in all:" in said, "the application sums up", said[-300:])


def job_completes(scene):
    """Without waiting for carpool or signalling it."""
    scene.install("job", "sidecar", scene.values(jobRequests=20, rate=50), "--timeout", "60s")
    scene.cluster.kubectl("wait", "-n", SPACE, "--for=condition=Complete", "job/job", "--timeout=60s", limit=90)
    said = scene.cluster.kubectl("logs", "-n", SPACE, "job/job", "-c", "app")
    scene.judge.take("in all: 20 answered, 0 failed" in said, "a Job completes", said)
    scene.remove("job")
