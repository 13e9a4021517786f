"""Tests the installation: by cmake, with a project that builds on it; by a Debian package, in a fresh Debian."""
import os
import pathlib
import shutil
import subprocess
import tempfile

import tools
from judge import Judge
from outcome import Outcome
from shell import CORES, ROOT

BUILD, PACKAGE = ROOT / "build" / "release", ROOT / "build" / "package"
CONSUMER = ROOT / "tests" / "package" / "consumer"


def consumer(judge, folder, prefix):
    """find_package finds the installed files, and nothing of this tree."""
    log, build = judge.log, folder / "consumer"
    judge.take(log.run("cmake", "-S", CONSUMER, "-B", build, "-G", "Ninja", "-DCMAKE_PREFIX_PATH=%s" % prefix) == 0, "find_package")
    judge.take(log.run("cmake", "--build", build, "-j", CORES) == 0, "consumer builds")
    done = subprocess.run([build / "consumer"], capture_output=True, text=True)
    judge.take(done.returncode == 0 and done.stdout == "https://xn--bcher-kva.example\n", "consumer runs", done.stdout + done.stderr)


def install(log, full):
    judge = Judge(log)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        tree = folder / "tree"
        for component in ("program", "development"):
            judge.take(log.run("cmake", "--install", BUILD, "--component", component, env={"DESTDIR": str(tree)}) == 0, component)
        program = next(tree.rglob("bin/carpool"), None)
        config = next(tree.rglob("carpool/config.toml"), None)
        judge.take(program and config and log.run(program, "--check", "--config", config) == 0, "installed --check")
        for file in ("man1/carpool.1.gz", "man5/carpool.toml.5.gz", "completions/carpool", "vendor-completions/_carpool", "carpool.fish"):
            judge.take(next(tree.rglob(file), None) is not None, file)
        archives = next(tree.rglob("libcarpool_pool.a"), None)
        judge.take(archives is not None, "archives")
        if archives:
            consumer(judge, folder, prefix_of(tree))
    return judge.outcome()


def prefix_of(tree):
    """Returns the folder of the tree that is the prefix: it has an include folder."""
    return next(tree.rglob("include/carpool")).parents[1]


def unit(judge):
    """Checks systemd's rating of the sandbox."""
    analyze = shutil.which("systemd-analyze")
    if not analyze:
        return judge.skip("systemd-analyze is not installed")
    done = subprocess.run([analyze, "security", "--offline=true", "--threshold=20", PACKAGE / "carpool.service"],
                          capture_output=True, text=True)
    judge.log.say(done.stdout + done.stderr)
    return judge.take(done.returncode == 0, "sandbox of the unit")


def fresh_root(judge, folder, package):
    """Installs by apt into a minimal Debian, starts as its user, queries and ends it."""
    if os.geteuid() != 0 or not shutil.which("mmdebstrap"):
        return judge.skip("a fresh Debian needs root and mmdebstrap")
    root = folder / "root"
    made = judge.log.run("mmdebstrap", "--quiet", "--variant=essential", "--include=%s" % package,
                         "--hook-dir=/usr/share/mmdebstrap/hooks/file-mirror-automount", "bookworm", root,
                         "/etc/apt/sources.list.d/debian.sources", limit=900)
    judge.take(made == 0, "installs into a fresh Debian")
    if made == 0:
        judge.take(judge.log.run("unshare", "--net", "deploy/package/start", root, limit=120) == 0, "starts in a fresh Debian")
        purge = judge.log.run("chroot", root, "dpkg", "--purge", "carpool", limit=120)
        left = [p for p in ("usr/bin/carpool", "etc/carpool", "var/log/carpool", "var/lib/carpool") if (root / p).exists()]
        judge.take(purge == 0 and not left, "is purged", " ".join(left))


def booted(judge, folder, package):
    """Boots a minimal Debian with the package: systemd itself starts, reloads, replaces and ends the unit."""
    if os.geteuid() != 0 or not shutil.which("mmdebstrap"):
        return judge.skip("a booted Debian needs root and mmdebstrap")
    root = folder / "booted"
    made = judge.log.run("mmdebstrap", "--quiet", "--variant=essential", "--include=systemd-sysv,dbus,%s" % package,
                         "--hook-dir=/usr/share/mmdebstrap/hooks/file-mirror-automount", "bookworm", root,
                         "/etc/apt/sources.list.d/debian.sources", limit=900)
    judge.take(made == 0, "a root with systemd")
    if made:
        return
    examples = root / "usr/share/doc/carpool/examples"
    drop_ins = ["carpool.service.d/%s.conf" % name for name in ("descriptors", "handover", "reload-by-signal")]
    wanted = ("grafana/carpool.json", "prometheus/alerts.yml", *drop_ins, "../README.md", "../docs/README.md")
    judge.take(all((examples / name).exists() for name in wanted), "examples and documentation")
    for name in ("probe", "traffic"):
        shutil.copy(ROOT / "deploy/package" / name, root / name)
    judge.log.run("unshare", "--mount", "--pid", "--fork", "--net", "--uts", "--ipc", "--cgroup", "deploy/package/boot", root, limit=120)
    said = (root / "probe.out").read_text() if (root / "probe.out").exists() else "it did not boot"
    judge.log.say(said)
    failed = [line for line in said.splitlines() if line.startswith("failed: ")]
    judge.take(said.endswith("passed\n"), "the unit under systemd", (failed or said.splitlines() or [""])[0])


def packages(log, full):
    judge = Judge(log)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        os.chmod(folder, 0o755)
        if log.run("cmake", "--preset", "package") or log.run("nice", "cmake", "--build", PACKAGE, "-j", CORES, limit=1800):
            return Outcome(failed=1, note="the build failed")
        made = log.run("cpack", "-G", "DEB", "-B", folder / "debs", cwd=PACKAGE)
        debs = sorted((folder / "debs").glob("*.deb"))
        judge.take(made == 0 and len(debs) == 2, "cpack", " ".join(d.name for d in debs))
        if tools.have("lintian"):
            judge.take(log.run("lintian", "--allow-root", "--fail-on", "error,warning", "--suppress-tags-from-file",
                               "deploy/package/lintian.ignore", *debs) == 0, "lintian", "; ".join(log.tail("W: ") + log.tail("E: ")))
        else:
            judge.skip("lintian is not installed")
        unit(judge)
        mine = [d for d in debs if d.name.startswith("carpool_")]
        if mine:
            fresh_root(judge, folder, mine[0])
            booted(judge, folder, mine[0])
    return judge.outcome()
