"""Gets what the foreign suites are made of into build/foreign: Debian's packages and sources, by apt with a state of its own and
without root, and programs by Go's client. A suite that cannot be had is Absent, with the reason."""
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "foreign"
MIRROR = "http://deb.debian.org/debian"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
RELEASE = "bookworm"


class Absent(Exception):
    """The suite cannot be had here; the text is the reason."""


def command(*argv, cwd=FOLDER, limit=900, **more):
    FOLDER.mkdir(parents=True, exist_ok=True)
    try:
        done = subprocess.run(["nice", *map(str, argv)], cwd=cwd, timeout=limit, capture_output=True, text=True, errors="replace", **more)
    except FileNotFoundError:
        raise Absent("there is no %s" % argv[0]) from None
    except subprocess.TimeoutExpired:
        raise Absent("%s took longer than %d s" % (argv[0], limit)) from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise Absent("%s: %s" % (" ".join(map(str, argv[:3])), said[-1] if said else "exit status %d" % done.returncode))


def apt(*argv, cwd=FOLDER, release=RELEASE):
    """Runs apt-get with lists and a cache of its own: the machine's stay as they are."""
    if not shutil.which("apt-get"):
        raise Absent("there is no apt-get")
    state = FOLDER / ("apt" if release == RELEASE else "apt-" + release)
    for folder in ("lists/partial", "cache/archives/partial"):
        (state / folder).mkdir(parents=True, exist_ok=True)
    fresh = not (state / "apt.conf").exists()
    # apt prefers the version that the machine has, and that one may come from the security updates.
    archives = ((MIRROR, release), (MIRROR + "-security", release + "-security"))
    (state / "sources.list").write_text("".join("%s [signed-by=%s] %s %s main\n" % (kind, KEYRING, *archive)
                                                for kind in ("deb", "deb-src") for archive in archives))
    (state / "apt.conf").write_text("""Dir::State::Lists "%s/lists";\nDir::Cache "%s/cache";
Dir::Etc::SourceList "%s/sources.list";\nDir::Etc::SourceParts "-";\n""" % (state, state, state)
                                    + ('APT::Sandbox::User "root";\n' if os.geteuid() == 0 else ""))
    environment = {**os.environ, "APT_CONFIG": str(state / "apt.conf")}
    if fresh:
        try:
            command("apt-get", "-qq", "update", env=environment)
        except Absent:
            (state / "apt.conf").unlink()
            raise
    command("apt-get", "-qq", *argv, cwd=cwd, env=environment)


def debian(program, *packages, release=RELEASE):
    """Unpacks packages into a folder without installing them. Returns the program's path and the environment that it needs."""
    root = FOLDER / program
    if not (root / "unpacked").exists():
        root.mkdir(parents=True, exist_ok=True)
        apt("download", *packages, cwd=root, release=release)
        for package in root.glob("*.deb"):
            command("dpkg", "-x", package, root)
        (root / "unpacked").touch()
    for folder in ("usr/bin", "usr/sbin"):
        if (root / folder / program).exists():
            return root / folder / program, {"LD_LIBRARY_PATH": ":".join(map(str, sorted((root / "usr/lib").glob("*-linux-gnu*"))))}
    raise Absent("the package has no " + program)


def source(package):
    """Returns the folder of a package's upstream source, without Debian's patches."""
    folder = FOLDER / (package + "-source")
    if not (folder / "unpacked").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        apt("source", "--download-only", package, cwd=folder)
        tars = [tar for tar in folder.glob("*.orig.tar.*") if tar.suffix != ".asc"]
        command("tar", "xf", tars[0], "--strip-components=1", cwd=folder)
        (folder / "unpacked").touch()
    return folder


def python(package, version):
    """Installs a Python package into an environment of its own. Returns the environment's folder of programs."""
    home = FOLDER / ("python-" + package)
    if not (home / "installed").exists():
        shutil.rmtree(home, ignore_errors=True)
        command(sys.executable, "-m", "venv", home)
        command(home / "bin/pip", "-q", "install", "%s==%s" % (package, version))
        (home / "installed").touch()
    return home / "bin"


def go(module, version, *programs):
    """Installs programs of a module. Returns the folder that they are in."""
    into = FOLDER / ("go-" + module.rsplit("/", 1)[1])
    missing = [p for p in programs if not (into / p.rsplit("/", 1)[1]).exists()]
    if missing:
        command("go", "install", *("%s/%s@%s" % (module, p, version) for p in missing), env={**os.environ, "GOBIN": str(into)})
    return into


def packages_of_python2(into, wheels, sources):
    """Unpacks packages for Python 2.7 on this kind of machine: wheels, and sources whose package folder bears their name."""
    if (into / "unpacked").exists():
        return
    shutil.rmtree(into, ignore_errors=True)
    files = into / "files"
    files.mkdir(parents=True)
    pip = (sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", "download", "--no-deps", "-d", files)
    platforms = [word for kind in ("manylinux1", "manylinux2010") for word in ("--platform", "%s_%s" % (kind, os.uname().machine))]
    command(*pip, "--only-binary=:all:", "--python-version", "27", "--implementation", "cp", "--abi", "cp27mu", "--abi", "none",
            *platforms, "--platform", "any", *wheels)
    command(*pip, "--no-binary=:all:", *sources)
    for wheel in files.glob("*.whl"):
        command("unzip", "-qo", wheel, "-d", into)
    for package in sources:
        name, version = package.split("==")
        command("tar", "xf", files / ("%s-%s.tar.gz" % (name, version)), "--strip-components=1", "-C", into, "%s-%s/%s" % (name, version, name))
    (into / "zope" / "__init__.py").touch()
    (into / "unpacked").touch()
