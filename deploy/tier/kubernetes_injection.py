"""Tests the webhook in a cluster: a label injects the sidecar, an annotation changes its configuration, a wrong one is
rejected at apply, a renewed certificate is served without a restart, and a replaced webhook refuses no pod."""
import json
import time

from kubernetes_scene import ADMIN, SPACE, name_of, status
from shell import ROOT

HOME = "carpool-system"
OVERLAY = '[[origin]]\nuri = "http://shop.test:8080"\npool = {size = 7}\n'
LABEL = {"carpool.io/inject": "true"}


def service_leads_to(scene, pod):
    """Does kube-proxy's work for this one Service; the cluster has no kube-proxy. The last call counts."""
    address = scene.cluster.get("service", "carpool-webhook", "-n", HOME)["spec"]["clusterIP"]
    scene.cluster.say("run", "iptables", "-t", "nat", "-I", "OUTPUT", "-d", address, "-p", "tcp", "--dport", "443", "-j", "DNAT",
                      "--to-destination", pod["status"]["podIP"] + ":8443")


def webhook_pod(scene):
    return scene.pods("carpool", HOME)[0]


def install_webhook(scene):
    scene.space(HOME, "restricted")
    shop, secure = scene.origins()[:2]
    scene.cluster.kubectl("create", "secret", "generic", "origin-trust", "-n", SPACE, "--from-file=ca.crt=%s" % (scene.files / "old.crt"))
    values = {"webhook": {"replicas": 1}, "config": {"log": {"access": False}, "origin": [{**shop, "pool": {"size": 16}}, secure]},
              "secrets": [{"name": "trust", "secret": "origin-trust", "mountPath": "/etc/trust"}]}
    scene.helm_do("install", "carpool", "carpool", values, "-f", ROOT / "helm/examples/inject/injector.yaml", "-f", scene.files / "carpool.json",
                  "--wait", "--timeout", "90s", namespace=HOME)
    service_leads_to(scene, webhook_pod(scene))


def label_brings_the_sidecar(scene):
    install_webhook(scene)
    judge = scene.judge
    scene.install("injected", "inject", {"image": "localhost/app:1", "rate": 20, "overlay": OVERLAY})
    pod = scene.pod("injected")
    judge.take(status(pod, "carpool").get("started") is True and "running" in status(pod, "app")["state"],
               "a label brings the sidecar, where `restricted` is enforced", str(pod["status"])[:300])
    answers = scene.ask(pod, "http://shop/", 20)
    judge.take(len(answers) == 20 and all(a.startswith("200") for a in answers), "requests go through it", str(answers[:3]))
    judge.take(size_of_pool(scene, pod) == 7, "the annotation changed its pool")
    pools = scene.cluster.kubectl("exec", "-n", SPACE, "deploy/injected", "-c", "carpool", "--", "carpool", "pools")
    judge.take("shop.test:8080" in pools, "carpool pools shows it", pools)
    good, bad = scene.cluster.until("an answer", lambda: (lambda c: c if c[0] else None)(scene.counts(pod)))
    judge.take(bad == 0, "its very first request is answered", "%d, %d" % (good, bad))


def size_of_pool(scene, pod):
    return json.loads(scene.past(pod, ADMIN + "/pools/http%3A%2F%2Fshop.test%3A8080"))["size"]


def annotation_is_live(scene):
    """The effective configuration is an annotation: a change of the running pod's takes effect in the same process."""
    pod = scene.pod("injected")
    process, key = scene.process(pod), "carpool.io/effective-config"
    text = pod["metadata"]["annotations"][key]
    began = time.monotonic()
    scene.cluster.kubectl("annotate", "pod", "-n", SPACE, name_of(pod), "--overwrite", key + "=" + text.replace("size = 7", "size = 5"))
    scene.cluster.until("the new size", lambda: size_of_pool(scene, pod) == 5, 90)
    scene.figure("an edited annotation in force after %.1f s" % (time.monotonic() - began))
    scene.judge.take(scene.process(scene.pod("injected")) == process, "an edited annotation in place")


def pod_of(name, annotations):
    restricted = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "runAsNonRoot": True, "runAsUser": 10001,
                  "seccompProfile": {"type": "RuntimeDefault"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": LABEL, "annotations": annotations},
            "spec": {"containers": [{"name": "app", "image": "localhost/app:1", "command": ["true"], "securityContext": restricted}]}}


def tried(scene, pod):
    return scene.cluster.try_out("kubectl", "create", "-n", SPACE, "--dry-run=server", "-o", "json", "-f", "-", stdin=json.dumps(pod))


def wrong_overlay_is_refused(scene):
    code, _, complaint = tried(scene, pod_of("wrong", {"carpool.io/config-overlay": "[pool]\nsise = 3\n"}))
    scene.judge.take(code != 0 and "pool.sise" in complaint, "a wrong annotation is refused, in words", complaint)


def injected_once(scene):
    """A mutated pod that is applied again is unchanged."""
    code, out, complaint = tried(scene, pod_of("twice", {}))
    if code:
        return scene.judge.take(False, "a plain pod is admitted", complaint)
    made = json.loads(out)
    again = {key: made[key] for key in ("apiVersion", "kind")}
    again |= {"metadata": {key: made["metadata"][key] for key in ("labels", "annotations", "name")}, "spec": made["spec"]}
    code, out, complaint = tried(scene, again)
    spec = json.loads(out)["spec"] if code == 0 else {}
    scene.judge.take(code == 0 and [c["name"] for c in spec["initContainers"]] == ["carpool"], "a second time changes nothing", complaint)
    return scene.judge.take(json.dumps(spec["containers"]) == json.dumps(made["spec"]["containers"]), "nor the application's container")


def served(scene, pod):
    """Returns the certificate that the webhook serves, seen from the cluster's network."""
    program = ("import ssl, sys; sys.stdout.write(ssl.get_server_certificate(('%s', 8443)))" % pod["status"]["podIP"])
    return scene.cluster.say("run", "python3", "-c", program)


def certificate_renews_in_place(scene):
    pod = webhook_pod(scene)
    before = served(scene, pod)
    crt, key = scene.certificate("webhook", "carpool-webhook.%s.svc" % HOME)
    text = scene.cluster.kubectl("create", "secret", "tls", "carpool-webhook", "-n", HOME, "--cert", crt, "--key", key, "--dry-run=client",
                                 "-o", "json")
    scene.cluster.kubectl("patch", "secret", "carpool-webhook", "-n", HOME, "--type=merge", "-p", json.dumps({"data": json.loads(text)["data"]}))
    scene.cluster.kubectl("annotate", "pod", "-n", HOME, name_of(pod), "--overwrite", "example/nudge=1")
    scene.cluster.until("the new certificate", lambda: served(scene, pod) != before, 90)
    now = webhook_pod(scene)
    scene.judge.take(status(now, "webhook")["restartCount"] == 0, "the certificate is renewed in place")


def ending_webhook_still_answers(scene):
    """The Service leads to a webhook that is ending until the API server learns of the next one: no pod is refused meanwhile."""
    old = webhook_pod(scene)
    ready = "https://%s:8443/readyz" % old["status"]["podIP"]
    scene.cluster.kubectl("delete", "pod", "-n", HOME, name_of(old), "--wait=false")
    scene.cluster.until("the beginning of its end", lambda: "draining" in scene.cluster.try_out("run", "curl", "-skm", "2", ready)[1])
    codes = []  # of the pods that were created before its end: on a busy machine fewer fit into webhook.drainDelay
    while len(codes) < 5:
        code = tried(scene, pod_of("late", {}))[0]
        if "draining" not in scene.cluster.try_out("run", "curl", "-skm", "2", ready)[1]:
            break
        codes.append(code)
    scene.judge.take(codes and not any(codes), "a webhook that ends answers while the Service leads to it", str(codes))
    scene.cluster.until("the next webhook", lambda: any(status(pod, "webhook")["ready"] for pod in scene.pods("carpool", HOME)))
    service_leads_to(scene, webhook_pod(scene))
    code, _, complaint = tried(scene, pod_of("later", {}))
    scene.judge.take(code == 0, "the next webhook answers", complaint)


def gone_webhook_stops_only_who_asks(scene):
    """failurePolicy Fail: without a webhook a labelled pod is rejected, any other is created."""
    scene.cluster.kubectl("scale", "-n", HOME, "deployment/carpool-webhook", "--replicas=0")
    # Until its pod is gone: it answers for the chart's webhook.drainDelay.
    scene.cluster.until("its end", lambda: not scene.cluster.get("pods", "-n", HOME)["items"])
    asks = pod_of("asks", {})
    code, _, complaint = tried(scene, asks)
    scene.judge.take(code != 0 and "inject.carpool.io" in complaint, "a pod that requests a sidecar does not start without it", complaint)
    asks["metadata"]["labels"] = {}
    code, _, complaint = tried(scene, asks)
    scene.judge.take(code == 0, "any other pod does not wait for it", complaint)
    scene.remove("injected")
    scene.remove("carpool", HOME)
