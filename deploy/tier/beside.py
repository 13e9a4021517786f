"""Tests the image beside an application, as in a pod: one network, and the application's container ends before
carpool's. Without a cluster: no request is lost when both are replaced, and a killed sidecar restarts."""
import json
import re
import subprocess
import time

from shell import ROOT

APPLICATION = "localhost/app:1"
PREFIX = "carpool-beside-"
EXCHANGES, RATE = 10, 50
HOLD = "import signal; signal.signal(signal.SIGTERM, lambda *_: exit(0)); signal.pause()"
ENVIRONMENT = {"URL": "http://shop/", "RATE": str(RATE), "LINGER": "1", "http_proxy": "http://127.0.0.1:3128"}


class Pod:
    """Containers that share one network: the one that holds it, the origin, carpool, the application."""
    def __init__(self, log, podman, environment, image):
        self.log, self.podman, self.environment, self.image = log, podman, environment, image

    def __enter__(self):
        self.remove()
        self.start("network", APPLICATION, ["python3", "-c", HOLD], network="bridge")
        self.start("origin", APPLICATION, ["python3", "/test/origin.py"])
        return self

    def __exit__(self, *_):
        self.remove()

    def remove(self):
        for name in ("app", "carpool", "origin", "network"):
            self.do("rm", "-f", "-t", "1", PREFIX + name)

    def do(self, *words):
        return self.log.run(*self.podman, *words, env=self.environment, limit=90)

    def start(self, name, image, command, network=None, variables=None):
        extra = [word for key, value in (variables or {}).items() for word in ("-e", key + "=" + value)]
        folders = ["-v", "%s:/test:ro" % (ROOT / "tests/image"), "-v", "%s:/app:ro" % (ROOT / "helm/examples/sidecar/files")]
        if self.do("run", "-d", "--pull=never", "--name", PREFIX + name, "--read-only", "--cap-drop", "ALL", "--security-opt",
                   "no-new-privileges", "--memory", "64m", "--network", network or "container:%snetwork" % PREFIX, *folders, *extra,
                   image, *command):
            raise RuntimeError("%s does not start" % name)

    def carpool(self):
        self.start("carpool", self.image, ["--config", "/test/carpool.toml"])
        self.until("carpool", lambda: "carpool ready" in self.logs("carpool"))

    def application(self):
        self.start("app", APPLICATION, ["python3", "/app/app.py"], variables=ENVIRONMENT)
        self.until("an answer", lambda: self.counts()[0])

    def logs(self, name):
        done = subprocess.run([*self.podman, "logs", PREFIX + name], env=self.environment, capture_output=True, text=True)
        return done.stdout + done.stderr

    def counts(self):
        """Returns (answered, failed) as the application reported last."""
        found = re.findall(r"(\d+) answered, (\d+) failed", self.logs("app"))
        return tuple(map(int, found[-1])) if found else (0, 0)

    def end(self, name):
        """Sends TERM; returns the exit status."""
        self.do("stop", "-t", "40", PREFIX + name)
        done = subprocess.run([*self.podman, "container", "inspect", PREFIX + name], env=self.environment, capture_output=True, text=True)
        status = json.loads(done.stdout)[0]["State"]["ExitCode"]
        self.log.say(self.logs(name)[-1000:])
        return status

    @staticmethod
    def until(what, look, seconds=30):
        end = time.monotonic() + seconds
        while not look():
            if time.monotonic() > end:
                raise RuntimeError("waited %d s for %s" % (seconds, what))
            time.sleep(0.05)


def exchanged(judge, pod):
    """Replaces both under load, as a roll-out does: the application ends first, then carpool."""
    answered = failed = 0
    clean = True
    for _ in range(EXCHANGES):
        pod.carpool()
        pod.application()
        clean &= pod.end("app") == 0
        good, bad = pod.counts()
        answered, failed = answered + good, failed + bad
        clean &= pod.end("carpool") == 0
        pod.do("rm", PREFIX + "app", PREFIX + "carpool")
    judge.log.say("%d exchanges, %d requests answered, %d failed" % (EXCHANGES, answered, failed))
    judge.take(clean, "both exit with 0")
    judge.take(failed == 0 and answered > EXCHANGES, "no request is lost", "%d of %d" % (failed, answered + failed))


def killed(judge, pod):
    """SIGKILL and a restart, which is the kubelet's task in a pod: the application continues by itself."""
    pod.carpool()
    pod.application()
    pod.do("kill", "-s", "KILL", PREFIX + "carpool")
    pod.until("a failure", lambda: pod.counts()[1])
    pod.do("start", PREFIX + "carpool")
    pod.until("readiness", lambda: pod.logs("carpool").count("carpool ready") == 2)
    answered, failed = pod.counts()
    status = pod.end("app")
    good, bad = pod.counts()
    judge.take(status == 0 and good > answered and failed > 0, "answers after a kill", "%d, %d; %d, %d" % (answered, failed, good, bad))


def beside(judge, podman, environment, image):
    for part in (exchanged, killed):
        with Pod(judge.log, podman, environment, image) as pod:
            try:
                part(judge, pod)
            except RuntimeError as error:
                judge.log.say(pod.logs("app") + pod.logs("carpool"))
                judge.take(False, part.__name__, str(error))
