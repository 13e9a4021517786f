"""Tests intercepted origins in a cluster: with one annotation the https requests of unchanged applications come out of
the pool, where the level `restricted` is enforced, and no application can read the authority's key."""
import json

import kubernetes_clients
from kubernetes_injection import HOME
from kubernetes_scene import ADMIN, METRICS, SPACE, status

NAME, HOST, TIMES = "unchanged", "shop.test:8443", 5
KEYLESS = {"ca.pem", "bundle.pem", "bundle.p12"}
RESTRICTED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True}
LOOK = "import os; print(*os.listdir('/run/carpool-trust')); print(os.path.exists('/run/carpool-ca')); print(os.access('/run/carpool-trust', os.W_OK))"


def container(name, command, image=kubernetes_clients.IMAGE):
    return {"name": name, "image": image, "command": command, "securityContext": RESTRICTED}


def pod(names):
    """One annotation, no label, and containers without any setting for carpool; `app` stays, so that the pod can be asked."""
    asking = [container(name, [*kubernetes_clients.COMMANDS[name], "https://%s/" % HOST, str(TIMES)]) for name in names]
    app = container("app", ["python3", "-c", "import signal; signal.sigwait({signal.SIGTERM})"], "localhost/app:1")
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": NAME, "labels": {"app.kubernetes.io/instance": NAME}, "annotations": {"carpool.io/intercept": HOST}},
            "spec": {"automountServiceAccountToken": False, "restartPolicy": "Never", "terminationGracePeriodSeconds": 5,
                     "securityContext": {"runAsNonRoot": True, "runAsUser": 10001, "seccompProfile": {"type": "RuntimeDefault"}},
                     "initContainers": [container("first", ["python3", "-c", LOOK], "localhost/app:1")], "containers": [app, *asking]}}


def ended(scene, names):
    """Returns the pod when its applications have ended."""
    def look():
        now = scene.pod(NAME)
        return now if all("terminated" in status(now, name)["state"] for name in names) else None
    return scene.cluster.until("the applications' end", look, 120)


def has_no_key(scene, now):
    own = {mount["name"] for kind in ("containers", "initContainers") for one in now["spec"][kind] if not one["name"].startswith("carpool")
           for mount in one.get("volumeMounts", [])}
    scene.judge.take("carpool-trust" in own and "carpool-ca" not in own, "the key's volume is mounted into no application", str(own))
    files, authority, writable = scene.log(now, "first").splitlines()
    scene.judge.take(set(files.split()) == KEYLESS and (authority, writable) == ("False", "False"),
                     "an init container sees certificates alone", "%s, %s, %s" % (files, authority, writable))


def one_annotation_is_enough(scene):
    judge = scene.judge
    names = scene.clients
    if not names:
        return judge.skip("the image of the applications cannot be built")
    scene.cluster.kubectl("create", "-n", SPACE, "-f", "-", stdin=json.dumps(pod(names)))
    now = ended(scene, names)
    judge.take([one["name"] for one in now["spec"]["initContainers"]] == ["carpool-ca", "carpool", "first"], "the authority is made first")
    for name in names:
        said = scene.log(now, name)
        answers = [line for line in said.splitlines() if line.startswith("200 ") and "carpool" in line]
        code = status(now, name)["state"]["terminated"]["exitCode"]
        judge.take(code == 0 and len(answers) == TIMES, name + ": its https requests are answered through the pool", said[-500:])
    has_no_key(scene, now)
    explained = json.loads(scene.past(now, ADMIN + "/pools/https%3A%2F%2Fshop.test%3A8443/explain"))["explanation"]
    judge.take(any("ended here, and the requests inside used this pool" in line for line in explained), "explain says so", str(explained))
    pool = json.loads(scene.past(now, ADMIN + "/pools/https%3A%2F%2Fshop.test%3A8443"))
    opened, borrows = sum(pool["opened"].values()), pool["borrows"]
    judge.take(borrows == TIMES * len(names) and opened <= len(names), "few connections for many requests", "%d, %d" % (opened, borrows))
    metrics = scene.cluster.say("run", "curl", "-sf", METRICS.replace("127.0.0.1", now["status"]["podIP"]))
    judge.take("carpool_intercept_leaves 1" in metrics, "one certificate")
    scene.figure("%s, unchanged, with one annotation: %d https requests on %d connections" % (", ".join(names), borrows, opened))
    scene.cluster.kubectl("delete", "pod", "-n", SPACE, NAME, "--wait=true", limit=60)


def one_key_is_enough(scene):
    """`intercept: true` in the values of a chart that includes the templates; the application's URL is https."""
    origin = {**scene.origins()[1], "intercept": True}
    secret = {"name": "trust", "secret": "origin-trust", "mountPath": "/etc/trust"}
    scene.install("kept", "sidecar", scene.values(url="https://%s/" % HOST, rate=20, carpool={"config": {"origin": [origin]}, "secrets": [secret]}))
    now = scene.pod("kept")
    good, bad = scene.cluster.until("twenty answers", lambda: (lambda c: c if c[0] >= 20 else None)(scene.counts(now)))
    scene.judge.take(bad == 0, "the chart: its very first https request is answered", "%d, %d" % (good, bad))
    explained = scene.carpool(now, "explain", "https://" + HOST)
    scene.judge.take("ended here, and the requests inside used this pool" in explained, "the chart: explain says so", explained)
    scene.remove("kept")


def wrong_annotation_is_refused(scene):
    wrong = pod(["python"])
    wrong["metadata"]["annotations"]["carpool.io/intercept"] = "*.example.com"
    code, _, complaint = scene.cluster.try_out("kubectl", "create", "-n", SPACE, "--dry-run=server", "-f", "-", stdin=json.dumps(wrong))
    scene.judge.take(code != 0 and "carpool.io/intercept: `*.example.com` is a pattern" in complaint, "a pattern is refused, in words", complaint)
    code, out, complaint = scene.cluster.try_out("kubectl", "create", "-n", HOME, "--dry-run=server", "-o", "json", "-f", "-", stdin=json.dumps(pod([])))
    before = [one["name"] for one in json.loads(out)["spec"]["initContainers"]] if code == 0 else []
    scene.judge.take(before == ["first"], "the webhook's own namespace is left alone", complaint)
