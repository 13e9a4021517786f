"""Tests the views of a sidecar: carpool's own commands by `kubectl exec`, its page by port-forward; and the Unix socket."""
import json
import re

from cluster import end
from kubernetes_scene import SPACE, name_of


def commands_answer(scene):
    """The image has neither a shell nor curl; the program queries itself."""
    pod = scene.pod("one")
    top = scene.carpool(pod, "top", "--once")
    scene.judge.take("shop.test:8080" in top, "kubectl exec … carpool top", top)
    pools = json.loads(scene.carpool(pod, "pools", "--json"))
    scene.judge.take("shop.test" in json.dumps(pools), "kubectl exec … carpool pools", str(pools)[:200])


def page_is_forwarded(scene):
    forward = scene.cluster.start("kubectl", "port-forward", "-n", SPACE, name_of(scene.pod("one")), ":9901", stdout=-1)
    try:
        port = re.search(r"127\.0\.0\.1:(\d+) ->", forward.stdout.readline()).group(1)
        page = scene.cluster.say("run", "curl", "-sf", "http://127.0.0.1:%s/" % port)
        pools = scene.cluster.say("run", "curl", "-sf", "http://127.0.0.1:%s/pools" % port)
    finally:
        end(forward)
    scene.judge.take("<html" in page and "shop.test" in pools, "port-forward to the page", page[:200])


def by_unix_socket(scene):
    """A socket in a folder that both containers mount; only its owner may connect."""
    scene.install("socket", "sidecar", scene.values(carpool={"sidecar": {"runAsUser": 10001, "socket": {"enabled": True}}}))
    said = scene.python(scene.pod("socket"), "ask_socket.py")
    scene.judge.take("200" in said, "a request over the Unix socket", said)
    scene.remove("socket")
