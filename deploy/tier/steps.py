"""The steps of deploy/test, cheap ones first."""
import json

import arm64_units
import attacks
import chart
import cost
import cross
import editors
import foreign
import fuzzing
import h2spec
import images
import kubernetes
import lint
import packages
import proof
import suites
import units
from outcome import Outcome, Step, verdict
from shell import CORES, PROGRAM, ROOT

PROGRAM_PATH = "build/release/carpool"
ASAN_BUILD, TSAN_BUILD = "build/asan/build.ninja", "build/tsan/build.ninja"
ASAN = ROOT / "build/asan/carpool"
PYTHON = ROOT / "build" / "venv" / "bin" / "python"
FEW = 8
SIMULATED = 1200  # seconds that the histories of the short form may take
# xdist alone: plugins that other packages bring take a third of the time in which a process of pytest starts.
PYTEST = ["-m", "pytest", "-q", "--disable-plugin-autoload", "-p", "xdist", "-p", "no:cacheprovider"]
COMPILED = {"PYTHONPYCACHEPREFIX": str(ROOT / "build/pycache"), "PYTHONDONTWRITEBYTECODE": ""}
# Each step is a session of its own. Where the kernel schedules sessions as groups, nice counts only within one.
YIELDS = ["sh", "-c", 'echo 19 > /proc/self/autogroup; exec nice -n 19 "$0" "$@"']


def tidy(log, full):
    status = log.run(PYTHON, "-B", "tests/tidy/tidy.py") | log.run(PYTHON, "-B", *PYTEST, "tests/tidy")
    return verdict(status, (log.tail("tidy:") or [""])[0])


def build(preset, targets=lambda full: [], beside=False, options=lambda full: []):
    """Configures with these options and builds these targets, else all; -k 0 shows every error at once. `beside`: yields the
    processors to the steps of its group."""
    def run(log, full):
        yields = YIELDS if beside else []
        status = log.run("cmake", "--preset", preset, *options(full))
        status = status or log.run(*yields, "cmake", "--build", "build/" + preset, "-j", CORES, "--", "-k", "0", *targets(full), limit=None)
        errors = log.tail(" error: ", 1)
        return verdict(status, errors[0] if status and errors else "")
    return run


def sanitized(full):
    return [*units.asan_targets(full), *fuzzing.PROGRAMS]


def checks(full):
    """Returns what UBSan leaves out in the first tier: checks of each access through a pointer, a third of that build's time. The
    processor finds a null pointer itself, and AddressSanitizer an access outside of an object."""
    return ["-DCARPOOL_SANITIZE_NOT=" + ("" if full else "alignment,null,object-size,vptr")]


def simulation(name, histories, long):
    """Runs so many histories, the same ones each time; with --full for `long` seconds."""
    def run(log, full):
        seconds = long if full else SIMULATED
        bound = [] if full else ["--histories", histories]
        program = ROOT / "build/release/tests" / name
        if not program.exists():
            return Outcome(skipped=1, note="there is no " + name)
        status = log.run(program, "--seconds", seconds, *bound, limit=seconds + 60)
        return verdict(status, (log.tail("replay:") or [""])[0])
    return run


def e2e(program, long_form=True, late=False):
    """Runs the end-to-end tests against one build of the program, files concurrently: most of them wait most of the time."""
    def play(log, full, tests, *how):
        report = log.path.with_suffix(".json")
        report.unlink(missing_ok=True)
        prefix = units.without_aslr() if program.parent.name == "tsan" else []
        forms = [*(["--full"] if full and long_form else []), *(["--late"] if late else [])]
        status = log.run(*prefix, PYTHON, *PYTEST, "-rfEs", *how, *tests, "--report", report, *forms, limit=7200 if full else 3600,
                         env={"CARPOOL": str(program), **COMPILED, **units.ENVIRONMENT.get(program.parent.name, {})})
        counts = json.loads(report.read_text()) if report.exists() else {"passed": 0, "failed": 0, "skipped": 0, "names": []}
        if (status or not report.exists()) and not counts["failed"]:
            counts.update(failed=1, names=["pytest: exit status %d" % status])
        return counts

    def run(log, full):
        # One process compiles the tests, with the values that a failed assert shows; otherwise each of those below would.
        log.run(PYTHON, *PYTEST, "--collect-only", "tests/e2e", env={"CARPOOL": str(program), **COMPILED})
        counts = play(log, full, ["tests/e2e"], "-n", 2 * CORES, "--dist", "loadfile", "--no-loadscope-reorder")
        names, unsteady = counts["names"], ""
        # Tests that failed beside others run once more, alone; more than a few have one cause.
        if 0 < counts["failed"] == len(names) <= FEW and all("::" in name for name in names):
            alone = play(log, full, ["tests/e2e/" + name for name in names])
            if alone["passed"] + alone["failed"] == len(names):
                unsteady = ", ".join(name for name in names if name not in alone["names"])
                counts = {**counts, "passed": counts["passed"] + alone["passed"], "failed": alone["failed"], "names": alone["names"]}
        return Outcome(counts["passed"], counts["failed"], counts["skipped"], ", ".join(counts["names"][:5]), unsteady)
    return run


ALL = [
    Step("tidy", "rules of the tree", tidy, group="build"),
    Step("format", "clang-format", lint.formatted, group="build"),
    Step("build", "release build, warnings are errors", build("release"), group="build"),
    Step("unit", "unit tests, release", units.run("release"), PROGRAM_PATH, group="proof"),
    Step("unit-arm64", "unit tests for arm64, cross-compiled and run by qemu", arm64_units.run, full_only=True),
    Step("explorer", "every order of a few threads in pool and execution, within bounds", proof.explorer, PROGRAM_PATH, group="proof"),
    Step("mutants", "defects of the pool and of execution that the tests must notice", proof.mutants, PROGRAM_PATH, group="proof"),
    Step("example", "the pool used alone", proof.example, PROGRAM_PATH, group="proof"),
    Step("litmus", "the lost wake-up on this processor, ten million rounds", proof.litmus, PROGRAM_PATH, full_only=True),
    Step("chart", "helm chart: lint, golden files, schemas, rules, --check", chart.chart, PROGRAM_PATH, group="proof"),
    Step("editors", "configurations by taplo with the program's schema", editors.editors, PROGRAM_PATH, group="proof"),
    Step("install", "cmake --install, and a project that builds on it", packages.install, PROGRAM_PATH, group="proof"),
    Step("packages", "Debian packages: lintian, installed and started in a fresh Debian", packages.packages, PROGRAM_PATH, full_only=True),
    Step("sim", "simulation of the pool", simulation("pool_sim", 12000, 600), PROGRAM_PATH, group="proof"),
    Step("sim-sessions", "simulation of HTTP/2 sessions", simulation("session_sim", 2500, 300), PROGRAM_PATH, group="proof"),
    Step("sim-data-plane", "simulation of clients, exchanges, pool and streams", simulation("data_plane_sim", 100000, 600), PROGRAM_PATH, group="proof"),
    Step("sim-controls", "defects that the simulated data plane must find", proof.simulated, PROGRAM_PATH, full_only=True),
    Step("wire-origin", "wire suite, origin-form", suites.wire("origin", 15200), PROGRAM_PATH, group="waiting", again=True),
    Step("wire-absolute", "wire suite, absolute-form", suites.wire("absolute", 15300), PROGRAM_PATH, group="waiting", again=True),
    Step("wire-intercepted", "wire suite inside an intercepted CONNECT, origin-form",
         suites.wire("origin", 15400, suites.INTERCEPTED, "wire-intercepted"), PROGRAM_PATH, group="waiting", again=True),
    Step("wire-intercepted-absolute", "wire suite inside an intercepted CONNECT, absolute-form",
         suites.wire("absolute", 15450, suites.INTERCEPTED, "wire-intercepted"), PROGRAM_PATH, group="waiting", again=True),
    Step("soak", "a thousand origins come and go, nothing grows", proof.soak, PROGRAM_PATH, group="waiting", again=True),
    Step("h2spec", "h2spec's cases of HTTP/2", h2spec.run, PROGRAM_PATH, group="waiting", again=True),
    Step("faults", "fault suite", suites.faults(), PROGRAM_PATH, group="waiting", again=True),
    Step("faults-intercepted", "fault suite inside an intercepted CONNECT", suites.faults(suites.INTERCEPTED, "faults-intercepted"), PROGRAM_PATH,
         group="waiting", again=True),
    Step("attacks", "attack scripts: hostile clients, origins and files", attacks.scripts(PROGRAM), PROGRAM_PATH, group="waiting", again=True),
    Step("attacks-fuzz", "mutated HTTP on both sides, twenty seconds of two seeds", attacks.fuzz(PROGRAM, attacks.SHORT_FUZZ), PROGRAM_PATH,
         group="waiting", again=True),
    Step("build-tsan", "build with TSan", build("tsan", units.tsan_targets, beside=True), group="waiting"),
    Step("cost", "instructions, allocations and system calls of a request", cost.cost, PROGRAM_PATH, group="faults", again=True),
    Step("system-faults", "calls of the system fail at the n-th time, clocks jump, the disk is full, a name server sends wrong answers",
         suites.system_faults, PROGRAM_PATH, group="faults", again=True),
    Step("e2e", "end to end: real clients, real nginx", e2e(PROGRAM), PROGRAM_PATH, group="e2e"),
    Step("build-asan", "clang's build with ASan and UBSan, warnings and thread-safety analysis are errors", build("asan", sanitized, beside=True, options=checks),
         group="e2e"),
    Step("foreign-grpc", "gRPC's interoperability cases, Go's client and server", foreign.suite("grpc", "grpc_interop.py"), PROGRAM_PATH, full_only=True),
    Step("foreign-slow", "slowhttptest: slow heads, slow bodies, slow reads, ranges", foreign.suite("slow", "slowhttp.py"), PROGRAM_PATH, full_only=True),
    Step("foreign-curl", "curl's own test suite, carpool as its proxy", foreign.suite("curl", "curl_cases.py", 3600), PROGRAM_PATH, full_only=True),
    Step("foreign-websocket", "Autobahn's testsuite for WebSocket, in four ways through carpool", foreign.suite("websocket", "websocket_cases.py"), PROGRAM_PATH,
         full_only=True),
    Step("foreign-varnish", "cases for varnishtest, a client and an origin of their own", foreign.suite("varnish", "varnish_cases.py"), PROGRAM_PATH, full_only=True),
    Step("foreign-tls", "sslyze at a TLS listener: versions, suites, groups, known weaknesses", foreign.suite("tls", "tls_scan.py"), PROGRAM_PATH, full_only=True),
    Step("unit-asan", "unit tests under ASan and UBSan", units.run("asan"), ASAN_BUILD, group="sanitized"),
    Step("unit-tsan", "threads under TSan", units.run("tsan"), TSAN_BUILD, group="sanitized"),
    Step("fuzz", "libFuzzer, ten seconds a target, a minute with --full", fuzzing.run, ASAN_BUILD),
    Step("e2e-late", "end to end, where the log and the origins tell a test what happened late", e2e(PROGRAM, long_form=False, late=True), PROGRAM_PATH,
         full_only=True),
    Step("e2e-asan", "end to end under ASan and UBSan", e2e(ASAN, False), "build/asan/carpool", full_only=True),
    Step("attacks-asan", "attack scripts under ASan and UBSan", attacks.scripts(ASAN), "build/asan/carpool", full_only=True),
    Step("attacks-fuzz-asan", "mutated HTTP on both sides under ASan and UBSan, ten minutes of ten seeds", attacks.fuzz(ASAN, attacks.LONG_FUZZ),
         "build/asan/carpool", full_only=True),
    Step("e2e-tsan", "end to end under TSan", e2e(ROOT / "build/tsan/carpool", False), "build/tsan/carpool", full_only=True),
    Step("clang", "clang, thread-safety analysis of what that build leaves out", lint.thread_safety),
    Step("clang-tidy", "clang-tidy", lint.clang_tidy),
    Step("images", "the image, built without a registry and run read-only", images.images, flag="--images"),
    Step("arm64", "the image for arm64, cross-compiled and run by qemu", cross.cross, flag="--arm64"),
    Step("kubernetes", "pods of a real cluster: sidecar, injection, every node", kubernetes.kubernetes, PROGRAM_PATH, flag="--kubernetes"),
    Step("build-clang", "the whole build with clang", build("clang"), full_only=True),
]
