"""The unit tests for arm64: cross-compiled in a Debian root that has the packages of both architectures, and run there by
qemu-user, which needs no arm64 processor."""
import concurrent.futures
import os
import shutil

import tools
import units
from outcome import Outcome
from shell import CORES, ROOT

ARCHITECTURE, PRESET = "arm64", "arm64-tests"
ROOT_OF_DEBIAN = ROOT / "build" / "arm64-root"
# Tests that qemu-user cannot run: pattern -> reason.
UNABLE = {"*DeathTest.*": "a death test executes its own program again, and the kernel knows no program of arm64",
          "Exposition.HasTheFamiliesOfTheProcess": "qemu-user shows a process no memory of its own in /proc/self/stat",
          **dict.fromkeys(("LoopbackOwnerTest.Is*At*", "LoopbackOwnerTest.IsFound*", "LoopbackOwnerTest.IsAsked*", "LoopbackOwnerTest.GivesNoRights*"),
                          "qemu-user passes no message of the kernel's socket diagnosis")}


def within(*argv):
    return ["unshare", "--mount", "--net", "deploy/image/within", ROOT_OF_DEBIAN, *argv]


def packages():
    names = tools.output("deploy/setup", "--list-image", ARCHITECTURE).split()
    return [*names, "libgtest-dev:" + ARCHITECTURE, "libgmock-dev:" + ARCHITECTURE, "qemu-user-static"]


def made(log):
    """Creates the root unless it exists with these packages. Returns False if that failed."""
    stamp, wanted = ROOT_OF_DEBIAN / "carpool-packages", "\n".join(packages())
    if stamp.exists() and stamp.read_text() == wanted:
        return True
    shutil.rmtree(ROOT_OF_DEBIAN, ignore_errors=True)
    own = tools.output("dpkg", "--print-architecture").strip()
    if log.run("nice", "mmdebstrap", "--quiet", "--variant=essential", "--architectures=%s,%s" % (own, ARCHITECTURE),
               "--include=ca-certificates," + wanted.replace("\n", ","), "--dpkgopt=path-exclude=/usr/share/man/*",
               "--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/locale/*", "bookworm", ROOT_OF_DEBIAN,
               "/etc/apt/sources.list.d/debian.sources", limit=None):
        return False
    stamp.write_text(wanted)
    return True


def run(log, full):
    missing = [name for name in ("mmdebstrap", "unshare") if not shutil.which(name)]
    if os.geteuid() != 0 or missing:
        return Outcome(skipped=1, note="a Debian for %s needs root and mmdebstrap" % ARCHITECTURE)
    if not made(log):
        return Outcome(failed=1, note="the Debian for %s cannot be made" % ARCHITECTURE)
    names = units.targets()
    if log.run(*within("cmake", "--preset", PRESET)) or \
            log.run(*within("nice", "cmake", "--build", "build/" + PRESET, "-j", CORES, "--target", *names), limit=None):
        return Outcome(failed=1, note="the build failed")
    programs = [ROOT / "build" / PRESET / "tests" / name for name in names]
    without = ["--gtest_filter=-" + ":".join(UNABLE)] if UNABLE else []
    with concurrent.futures.ThreadPoolExecutor(CORES) as pool:
        return sum(pool.map(lambda p: units.one(log, p, PRESET, within("qemu-aarch64-static"), *without), programs), Outcome())
