"""Tests carpool in real pods: installs the example charts into a fresh cluster and checks every promise of docs/kubernetes.md."""
import pathlib
import shutil
import time

import images
import kubernetes_change
import kubernetes_clients
import kubernetes_injection
import kubernetes_intercept
import kubernetes_life
import kubernetes_limits
import kubernetes_nodes
import kubernetes_view
import tools
from cluster import Cluster, absent, kubeone
from judge import Judge
from kubernetes_scene import Scene
from outcome import Outcome

APPLICATION, SANDBOX = "localhost/app:1", "localhost/pause:1"
PAUSE = "FROM scratch\nCOPY catatonit /pause\nUSER 65535:65535\nENTRYPOINT [\"/pause\", \"-P\"]\n"
PARTS = (
    kubernetes_life.starts_first,  # the pod `one`, which the next parts use
    kubernetes_limits.is_refused_elsewhere,
    kubernetes_limits.has_a_metric,
    kubernetes_view.commands_answer,
    kubernetes_view.page_is_forwarded,
    kubernetes_view.by_unix_socket,
    kubernetes_limits.memory_at_work,
    kubernetes_limits.clients_fit,
    kubernetes_limits.workers_follow_the_quota,
    kubernetes_change.configuration_arrives,
    kubernetes_change.secrets_rotate,
    kubernetes_life.killed,
    kubernetes_life.ends_last,
    kubernetes_life.job_completes,
    kubernetes_nodes.on_every_node,
    kubernetes_injection.label_brings_the_sidecar,  # and the webhook, for the next ones
    kubernetes_injection.annotation_is_live,
    kubernetes_injection.wrong_overlay_is_refused,
    kubernetes_injection.injected_once,
    kubernetes_intercept.one_annotation_is_enough,
    kubernetes_intercept.one_key_is_enough,
    kubernetes_intercept.wrong_annotation_is_refused,
    kubernetes_injection.ending_webhook_still_answers,
    kubernetes_injection.certificate_renews_in_place,
    kubernetes_injection.gone_webhook_stops_only_who_asks,
    kubernetes_change.rolled_out,
)


def sandbox(log, environment, buildah, folder):
    """Returns the container that holds a pod's network."""
    folder.mkdir(exist_ok=True)
    shutil.copy(tools.have("catatonit"), folder / "catatonit")
    (folder / "Dockerfile").write_text(PAUSE)
    return log.run(*buildah, "bud", "--pull-never", "--runtime", "runc", "--isolation", "oci", "--network", "none", "-f",
                   folder / "Dockerfile", "-t", SANDBOX, folder, env=environment)


def make_images(log, folder):
    """Builds carpool's image of this tree; the application's and the sandbox's once, and the unchanged applications'.
    Returns (podman, its environment, the names of those applications)."""
    environment, buildah, podman = images.engines()

    def there(name):
        return log.run(*buildah, "inspect", "--type", "image", name, env=environment) == 0
    made = images.make(log, environment, buildah)
    made &= there(APPLICATION) or log.run("nice", "deploy/image/base", APPLICATION, "python3", limit=1200) == 0
    made &= there(SANDBOX) or sandbox(log, environment, buildah, folder) == 0
    if not made:
        raise RuntimeError("the images cannot be built")
    return podman, environment, kubernetes_clients.make(log, environment, buildah, folder.with_name("clients"))


def play(judge, cluster, helm, clients):
    scene = Scene(cluster, judge, helm)
    scene.clients = clients
    for part in PARTS:
        began = time.monotonic()
        judge.log.say("== " + part.__name__)
        try:
            part(scene)
        except Exception as error:  # the remaining parts still run
            judge.take(False, part.__name__, "%s: %s" % (type(error).__name__, error))
        judge.log.say("took %.0f s" % (time.monotonic() - began))
    judge.log.say("\n".join(scene.figures))
    return scene.figures


def kubernetes(log, full):
    why = absent()
    helm, no_helm = tools.get(log, "helm") if not why else (None, "")
    program = kubeone(log) if not why and helm else None
    why = why or no_helm or ("" if program else "Kubernetes is not there and cannot be built: there is no Go")
    if why:
        return Outcome(skipped=1, note=why)
    judge = Judge(log)
    cluster = Cluster(log, program)
    cluster.folder.mkdir(exist_ok=True)
    podman, environment, clients = make_images(log, pathlib.Path(cluster.folder) / "pause")
    try:
        with cluster:
            cluster.load(podman, environment, (images.NAME, APPLICATION, SANDBOX, *((kubernetes_clients.IMAGE,) if clients else ())))
            figures = play(judge, cluster, helm, clients)
    except BlockingIOError:
        return Outcome(skipped=1, note="another run on this machine has the cluster")
    judge.take(not cluster.processes() and not cluster.state.exists(), "nothing is left")
    outcome = judge.outcome()
    outcome.note = "; ".join([outcome.note, *figures] if outcome.note else figures)
    return outcome
