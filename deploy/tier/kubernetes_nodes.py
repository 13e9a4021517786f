"""Tests one carpool per node, and an application that finds the carpool of its own node."""

SPACE = "nodes"


def on_every_node(scene):
    cluster, judge = scene.cluster, scene.judge
    # `restricted` and `baseline` forbid host ports.
    scene.space(SPACE, "privileged")
    egress = {"default": "deny", "allow": ["shop.test:8080", scene.origin + ":8080"]}
    scene.install("node", "daemonset", {"image": "localhost/app:1", "rate": 20, "carpool": {
        "config": {"origin": scene.origins()[:1], "egress": egress, "log": {"access": False}}}}, namespace=SPACE)
    cluster.kubectl("rollout", "status", "daemonset/node-carpool", "-n", SPACE, "--timeout=60s", limit=90)
    daemons = cluster.get("daemonset", "node-carpool", "-n", SPACE)["status"]
    judge.take(daemons["numberReady"] == daemons["desiredNumberScheduled"] == 1, "one a node", str(daemons))
    pod = next(p for p in scene.pods("node", SPACE) if p["metadata"]["labels"]["app.kubernetes.io/name"] == "daemonset")
    answers = scene.ask(pod, "http://shop/", 20, namespace=SPACE)
    judge.take(all(a.startswith("200") for a in answers) and len(answers) == 20, "through the node's port", str(answers[:3]))
    refused = scene.ask(pod, "http://elsewhere.test/", namespace=SPACE)
    judge.take(refused[0].startswith("403"), "only what egress allows", str(refused))
    scene.remove("node", SPACE)
