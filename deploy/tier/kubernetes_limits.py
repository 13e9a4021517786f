"""Tests control-group limits and carpool's reaction: workers by the CPU quota, memory within its limit."""
import json

from kubernetes_scene import ADMIN, METRICS, SPACE, group_file, metric, name_of, resident, status

CLIENTS, POOLED, LIMIT = 1000, 200, 64 * 2**20
RATE, SECONDS = 1000, 15


def loops(scene, pod):
    """Returns the number of event loops, without the admin loop."""
    return sum(t["doing"].startswith("loop ") for t in json.loads(scene.past(pod, ADMIN + "/threads"))["threads"])


def workers_follow_the_quota(scene):
    """`workers = "auto"`: all cores without a quota, as many as the quota grants with one."""
    judge, cores = scene.judge, int(scene.cluster.say("run", "nproc"))
    judge.take(loops(scene, scene.pod("one")) == cores, "a loop for each core")
    limits = {"limits": {"cpu": "1", "memory": "64Mi"}}
    scene.install("quota", "sidecar", scene.values(carpool={"resources": limits}))
    judge.take(loops(scene, scene.pod("quota")) == 1, "one loop for a quota of one core")
    judge.skip("one core: the quota cannot be told from it") if cores == 1 else None
    scene.remove("quota")


def memory_at_work(scene):
    """Measures when idle, and at a thousand requests a second."""
    judge, pod = scene.judge, scene.pod("one")
    process = scene.process(pod)
    rest = resident(process)
    good, bad, seconds = scene.python(pod, "load.py", RATE, SECONDS, "http://shop/").split()
    rate = int(good) / float(seconds)
    judge.take(int(bad) == 0 and rate > 0.9 * RATE, "a thousand requests a second", "%s failed, %.0f a second" % (bad, rate))
    scene.figure("resident %.1f MiB at rest, %.1f MiB after %d s of %.0f requests a second" % (rest, resident(process), SECONDS, rate))


def clients_fit(scene):
    """A thousand idle clients and two hundred pooled TLS connections fit into the 64 MiB that the chart requests."""
    judge, pod = scene.judge, scene.pod("one")
    process = scene.process(pod)
    judge.take(int(group_file(process, "limit").read_text()) == LIMIT, "the limit is the control group's")
    said = scene.python(pod, "crowd.py", CLIENTS, POOLED, "http://old/hold/%d" % POOLED)
    judge.take("answered %d" % POOLED in said, "all at once", said[:200])
    clients = metric(said, "carpool_downstream_connections")
    pooled = metric(said, 'carpool_pool_connections{origin="https://shop.test:8443",state="idle"}')
    judge.take(clients >= CLIENTS + POOLED and pooled >= POOLED, "clients and pooled connections", "%d, %d" % (clients, pooled))
    peak = int(group_file(process, "peak").read_text())
    judge.take(peak < LIMIT, "below the limit", str(peak))
    now = scene.pod("one")
    judge.take(status(now, "carpool")["restartCount"] == status(pod, "carpool")["restartCount"], "nothing was killed")
    scene.figure("%d clients and %d pooled TLS connections: resident %.1f MiB, the control group's peak %.1f MiB of 64" % (
        clients, pooled, metric(said, "process_resident_memory_bytes") / 2**20, peak / 2**20))


def is_refused_elsewhere(scene):
    """The namespace enforces `restricted`: a pod that violates it cannot be created."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "lax"},
           "spec": {"containers": [{"name": "lax", "image": "localhost/app:1", "securityContext": {"privileged": True}}]}}
    code, _, complaint = scene.cluster.try_out("kubectl", "create", "-n", SPACE, "-f", "-", stdin=json.dumps(pod))
    scene.judge.take(code != 0 and "restricted" in complaint, "`restricted` is enforced", complaint)


def has_a_metric(scene):
    """From outside the pod, as Prometheus scrapes."""
    pod = scene.pod("one")
    text = scene.cluster.say("run", "curl", "-sf", METRICS.replace("127.0.0.1", pod["status"]["podIP"]))
    scene.judge.take('carpool_requests_total{origin="http://shop.test:8080",method="GET",code="200"}' in text, "metrics", name_of(pod))
