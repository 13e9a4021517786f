"""The chart: strict lint, rendered files against those in tests/helm, Kubernetes' own schemas, Prometheus' rules,
and every rendered config.toml through `carpool --check`. CARPOOL_UPDATE_GOLDEN=1 renews those files."""
import dataclasses
import difflib
import importlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap

import dashboard
import tools
from judge import Judge
from shell import PROGRAM, ROOT

CHART, EXAMPLES, KEPT = ROOT / "helm" / "carpool", ROOT / "helm" / "examples", ROOT / "tests" / "helm"
KUBERNETES = "1.34.4"
VERSION = ("--kube-version", "1.34.0")


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    chart: str  # below helm/
    values: tuple = ()
    version: str = "1.34.0"
    files: tuple = ()  # of values, below helm/


INTERCEPT = ("carpool.config.origin[0].uri=https://example.com", "carpool.config.origin[0].intercept=true")
CASES = (
    Case("sidecar", "examples/sidecar"),
    Case("sidecar-job", "examples/sidecar", ("jobRequests=5",)),
    Case("sidecar-classic", "examples/sidecar", ("carpool.sidecar.native=false",), "1.27.0"),
    Case("sidecar-intercept", "examples/sidecar", INTERCEPT),
    Case("sidecar-intercept-classic", "examples/sidecar", (
        *INTERCEPT, "carpool.sidecar.native=false", "carpool.config.intercept.ca_dir=/etc/authority",
        "carpool.secrets[0].name=authority", "carpool.secrets[0].secret=authority", "carpool.secrets[0].mountPath=/etc/authority", "carpool.secrets[0].mode=288"), "1.27.0"),
    Case("daemonset", "examples/daemonset"),
    Case("daemonset-socket", "examples/daemonset", ("carpool.daemonset.socket.enabled=true", "carpool.daemonset.service.enabled=true",
                                                    "carpool.daemonset.hostPort=0")),
    Case("daemonset-grace", "examples/daemonset", ("carpool.config.shutdown_grace=2m", "carpool.config.drain_delay=1500ms")),
    Case("daemonset-corners", "examples/daemonset", files=("../tests/helm/corners.yaml",)),
    Case("daemonset-credentials", "examples/daemonset", files=("examples/daemonset/credentials.yaml",)),
    Case("inject", "carpool", ("webhook.certificate.secret=made-elsewhere", "webhook.certificate.caBundle=Q0E="),
         files=("examples/inject/injector.yaml",)),
    Case("inject-cert-manager", "carpool", ("webhook.certificate.certManager.enabled=true", "webhook.address=[::]", "podMonitor.enabled=true", "sidecar.socket.enabled=true",
                                            "sidecar.native=false"), files=("examples/inject/injector.yaml",)),
    Case("inject-intercept", "carpool", ("webhook.certificate.secret=made-elsewhere", "webhook.certificate.caBundle=Q0E=",
                                         "config.origin[0].uri=https://example.com", "config.origin[0].intercept=true"), files=("examples/inject/injector.yaml",)),
    Case("inject-application", "examples/inject"),
    Case("inject-application-intercept", "examples/inject", ("intercept=example.com", "url=https://example.com/")),
    Case("everything", "examples/sidecar", tuple("carpool.%s.enabled=true" % n for n in (
        "podMonitor", "serviceMonitor", "prometheusRule", "dashboard", "networkPolicy", "podDisruptionBudget", "sidecar.socket")) + ("carpool.sidecar.runAsUser=10001",)),
)
# Files of the chart that are copied from these folders, so that there is one source.
COPIES = {"recording.yml": "deploy/prometheus", "alerts.yml": "deploy/prometheus", "carpool.json": "deploy/grafana"}
# Values that helm must reject, and a word of the error.
REFUSED = (
    ("carpool.config.pool.sise=3", "1.34.0", "sise"),
    ("carpool.config.pool.size=three", "1.34.0", "size"),
    ("carpool.config.pool.wait_timeout=soon", "1.34.0", "wait_timeout"),
    ("carpool.imgae.tag=1", "1.34.0", "imgae"),
    ("carpool.sidecar.runAsUser=0", "1.34.0", "runAsUser"),
    ("carpool.sidecar.intercept.days=0", "1.34.0", "days"),
    ("carpool.mode=pod", "1.34.0", "mode"),
    ("carpool.podMonitor.enabled=true,carpool.sidecar.selectorLabels=null", "1.34.0", "selectorLabels"),
    ("replicas=1", "1.28.0", "native"),
    ("carpool.mode=inject,carpool.webhook.certificate.secret=mine", "1.34.0", "caBundle"),
    ("carpool.mode=inject,carpool.webhook.failurePolicy=Maybe", "1.34.0", "failurePolicy"),
    # A value of null, as of a key without a value, removes a default that the templates use.
    ("carpool.podMonitor=null", "1.34.0", "podMonitor"),
    ("carpool.probes.liveness=null", "1.34.0", "liveness"),
    ("carpool.config=null", "1.34.0", "config"),
    ("carpool.config.listen=null", "1.34.0", "listen"),
    # A webhook would add these to every pod, which the API server then refuses.
    ("carpool.resources.limits.memory=lots", "1.34.0", "memory"),
    ("carpool.extraEnv[0].name=A,carpool.extraEnv[0].value=1", "1.34.0", "extraEnv"),
    ("carpool.fullnameOverride=Shop_1", "1.34.0", "fullnameOverride"),
    ("carpool.podDisruptionBudget.maxUnavailable=some", "1.34.0", "maxUnavailable"),
    # The port is a part of the pod, so it has to be a number.
    ("carpool.config.metrics.address=0.0.0.0:${PORT:-9902}", "1.34.0", "config.metrics.address"),
    ("carpool.config.metrics.address=127.0.0.1:9902", "1.34.0", "config.metrics.address"),
    ("carpool.config.listen[0].address=127.0.0.1:${PORT:-3128}", "1.34.0", "config.listen"),
    ("carpool.config.origin[0].uri=https://${HOST:-a.test},carpool.config.origin[0].intercept=true", "1.34.0", "has to know its host"),
)


def lay_out(folder):
    """Copies the charts with the dependency in place, as `helm dependency build` would leave them."""
    shutil.copytree(CHART, folder / "carpool")
    for example in sorted(EXAMPLES.iterdir()):
        target = folder / "examples" / example.name
        shutil.copytree(example, target, ignore=shutil.ignore_patterns("charts", "Chart.lock"))  # of `helm dependency build` in this tree
        if "dependencies:" in (example / "Chart.yaml").read_text():
            shutil.copytree(CHART, target / "charts" / "carpool")
    return folder


def depends(judge, helm, folder):
    """Builds the dependency with Helm, as docs/kubernetes.md describes."""
    example = folder / "helm" / "examples" / "sidecar"
    shutil.copytree(CHART, folder / "helm" / "carpool")
    shutil.copytree(EXAMPLES / "sidecar", example, ignore=shutil.ignore_patterns("charts", "Chart.lock"))
    built = judge.log.run(helm, "dependency", "build", example) == 0
    done = subprocess.run([helm, "template", "demo", example, "--kube-version", "1.34.0"], capture_output=True, text=True)
    judge.take(built and done.returncode == 0 and "name: carpool" in done.stdout, "helm dependency build", done.stderr)


def template(helm, charts, chart, values, version, files=()):
    sets = [word for value in values for word in ("--set", value)] + [word for name in files for word in ("-f", ROOT / "helm" / name)]
    return subprocess.run([helm, "template", "demo", charts / chart, "--namespace", "shop", "--kube-version", version, *sets],
                          capture_output=True, text=True)


def same_as_kept(name, text, log):
    path = KEPT / "golden" / (name + ".yaml")
    if os.environ.get("CARPOOL_UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    before = path.read_text() if path.exists() else ""
    if before == text:
        return True
    log.say("\n".join(difflib.unified_diff(before.splitlines(), text.splitlines(), str(path), "rendered", lineterm="")))
    return False


def generator(name):
    """Imports helm/NAME.py as a module."""
    if str(CHART.parent) not in sys.path:
        sys.path.append(str(CHART.parent))
    return importlib.import_module(name)


def are_fresh(judge):
    """Generated files are up to date."""
    made = {CHART / "values.schema.json": generator("schema").schema(str(PROGRAM)), CHART / "README.md": generator("readme").readme()}
    made |= {CHART / "files" / name: (ROOT / source / name).read_text() for name, source in COPIES.items()}
    # Each chart needs the application's program in its own folder.
    made |= {EXAMPLES / name / "files/app.py": (EXAMPLES / "sidecar/files/app.py").read_text() for name in ("inject", "daemonset")}
    for path, text in made.items():
        if os.environ.get("CARPOOL_UPDATE_GOLDEN"):
            path.write_text(text)
        judge.take(path.exists() and path.read_text() == text, str(path.relative_to(ROOT)), "CARPOOL_UPDATE_GOLDEN=1 deploy/test --only chart renews it")


def documents(text):
    """Returns the documents of a YAML stream, as text."""
    return [d for d in re.split(r"^---$", text, flags=re.M) if d.strip()]


def block(document, key):
    """Returns the lines below a key that are indented more, without that indentation."""
    found = re.search(r"^( *)%s:(?: \|)?\n((?:\1 +.*\n|\n)*)" % re.escape(key), document, re.M)
    return textwrap.dedent(found.group(2)) if found else ""


def authority(folder):
    """Returns an authority for the examples' origin, where none is mounted."""
    made = folder / "authority"
    subprocess.run([PROGRAM, "ca", "init", made, "--host", "example.com"], check=True, capture_output=True)
    return str(made)


def same_environment(judge, rendered, folder):
    """The chart sets what `carpool ca env` prints in a pod, where the folder is mounted; JAVA_TOOL_OPTIONS has more, because Java reads no HTTPS_PROXY."""
    injection = next(json.loads(block(d, "injection.json")) for d in documents(rendered) if block(d, "injection.json"))
    made = {one["name"]: one["value"] for one in injection["intercept"]["env"]}
    trust = str(folder / "trust")
    subprocess.run([PROGRAM, "ca", "bundle", authority(folder), "--trust", trust], check=True, capture_output=True)
    printed = subprocess.run([PROGRAM, "ca", "env", trust, "--format", "plain"], capture_output=True, text=True, check=True).stdout
    printed = printed.replace(trust, "/run/carpool-trust")
    for name, value in (line.split("=", 1) for line in printed.splitlines()):
        same = made.get(name) == value or (name == "JAVA_TOOL_OPTIONS" and made.get(name, "").startswith(value + " "))
        judge.take(same, "the chart's " + name, "%s, and carpool ca env prints %s" % (made.get(name), value))


def credentials(folder):
    """Returns a file with one user, as `carpool credential` writes it."""
    path = folder / "credentials"
    line = subprocess.run([PROGRAM, "credential", "basic", "shop"], input="x" * 32, capture_output=True, text=True, check=True).stdout
    path.write_text(line)
    return str(path)


def check_configurations(judge, name, rendered, folder):
    """carpool accepts each carpool.toml that the chart renders."""
    for document in documents(rendered):
        injected = block(document, "injection.json")
        text = json.loads(injected)["config"] if injected else block(document, "config.toml")
        if text:
            path = folder / (name + ".toml")
            text = re.sub(r'(?<=ca_dir = )".*"', lambda _: json.dumps(authority(folder)), text)
            path.write_text(re.sub(r'(?<=credentials_file = )".*"', lambda _: json.dumps(credentials(folder)), text))
            done = subprocess.run([PROGRAM, "--check", "--config", path], capture_output=True, text=True)
            judge.take(done.returncode == 0, name + " --check", done.stdout + done.stderr)


def check_rules(judge, rendered, folder):
    promtool = tools.have("promtool")
    if not promtool:
        return judge.skip("promtool is not installed")
    rules = [block(d, "spec") for d in documents(rendered) if "kind: PrometheusRule" in d]
    # Uses the names of the rules' own tests.
    (folder / "recording.yml").write_text("".join(rules))
    (folder / "alerts.yml").write_text("groups: []\n")
    shutil.copy(ROOT / "deploy/prometheus/rules_test.yml", folder / "rules_test.yml")
    judge.take(judge.log.run(promtool, "check", "rules", folder / "recording.yml") == 0, "promtool check rules")
    return judge.take(judge.log.run(promtool, "test", "rules", folder / "rules_test.yml", cwd=folder) == 0, "promtool test rules")


def schemas(log, folder):
    """Returns Kubernetes' schemas, offline, from its own module; None if they are not available."""
    target, module = tools.FOLDER / "schemas", "k8s.io/kubernetes@v" + KUBERNETES
    if (target / "_definitions.json").exists():
        return target
    if not shutil.which("go") or log.run("go", "mod", "download", module, limit=300, cwd=folder, env={"GOFLAGS": "-mod=mod"}):
        return None
    cache = tools.output("go", "env", "GOMODCACHE").strip()
    source = pathlib.Path(cache) / module / "api" / "openapi-spec" / "swagger.json"
    return target if log.run("python3", "-B", "deploy/tier/kubernetes_schemas.py", source, target) == 0 else None


def check_kinds(judge, rendered, folder):
    kubeconform, why = tools.get(judge.log, "kubeconform")
    offline = schemas(judge.log, folder) if kubeconform else None
    if not offline:
        return judge.skip(why or "Kubernetes' schemas cannot be had")
    for name, text in rendered.items():
        path = folder / (name + ".yaml")
        path.write_text(text)
        judge.take(judge.log.run(kubeconform, "-strict", "-summary", "-schema-location",
                                 "%s/{{.ResourceKind}}{{.KindSuffix}}.json" % offline,
                                 "-skip", "PodMonitor,ServiceMonitor,PrometheusRule,Certificate,Issuer", path) == 0, name + " kubeconform")


def render(judge, helm, charts):
    rendered = {}
    for case in CASES:
        done = template(helm, charts, case.chart, case.values, case.version, case.files)
        judge.take(done.returncode == 0, case.name + " template", done.stderr)
        if done.returncode == 0:
            rendered[case.name] = done.stdout
            judge.take(same_as_kept(case.name, done.stdout, judge.log), case.name + " golden")
    return rendered


def chart(log, full):
    judge = Judge(log)
    are_fresh(judge)
    helm, why = tools.get(log, "helm")
    if not helm:
        judge.skip(why)
        return judge.outcome()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        charts = lay_out(folder / "charts")
        for path in ("carpool", "examples/sidecar", "examples/inject", "examples/daemonset"):
            judge.take(log.run(helm, "lint", "--strict", *VERSION, charts / path) == 0, path + " lint")
        depends(judge, helm, folder / "documented")
        rendered = render(judge, helm, charts)
        for value, version, word in REFUSED:
            done = template(helm, charts, "examples/sidecar", (value,), version)
            judge.take(done.returncode != 0 and word in done.stderr, "refuse " + value, done.stderr)
        done = template(helm, charts, "examples/daemonset", ("carpool.config.listen[0].address=127.0.0.1:3128",), "1.34.0")
        judge.take(done.returncode != 0 and "is on loopback" in done.stderr, "refuse a port of the node that leads to loopback", done.stderr)
        done = template(helm, charts, "examples/daemonset", INTERCEPT, "1.34.0")
        judge.take(done.returncode != 0 and "config.intercept.ca_dir" in done.stderr, "refuse to intercept on a node without an authority", done.stderr)
        for case, text in rendered.items():
            check_configurations(judge, case, text, folder)
        if "inject" in rendered:
            same_environment(judge, rendered["inject"], folder)
        check_rules(judge, rendered.get("everything", ""), folder)
        dashboard.check(judge, folder)
        check_kinds(judge, rendered, folder)
    return judge.outcome()
