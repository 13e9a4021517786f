"""Runs clang-format, clang's own analysis and clang-tidy. The last two are slow, so a clean result is cached by the
hash of its inputs and the file is checked again only when one of them changes."""
import concurrent.futures
import hashlib
import json
import pathlib
import re
import shlex
import subprocess
import time

from outcome import Outcome, verdict
from shell import CORES, ROOT

CACHE = ROOT / "build" / "lint"
# Seconds of clang-tidy in the first tier, fewer if the run is late; the next run or --full does the rest.
BUDGET, LEAST, ALL_STEPS = 180, 30, 1140
STARTED = time.monotonic()
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)


def listed(*suffixes):
    names = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, text=True,
                           capture_output=True, check=True).stdout.split("\n")
    return [n for n in names if n.endswith(suffixes) and (ROOT / n).is_file()]


def formatted(log, full):
    files = listed(".cc", ".h")
    status = log.run("clang-format-14", "--dry-run", "-Werror", *files)
    bad = sorted({line.split(":")[0] for line in log.tail("-Wclang-format-violations", 100000)})
    return verdict(status, ", ".join(bad[:5]) + (" and %d more" % (len(bad) - 5) if len(bad) > 5 else ""))


class Files:
    """The files of this tree, each read once: a header belongs to hundreds of closures."""

    def __init__(self):
        self._read = {}  # path -> (content, the paths that it includes); () without such a file

    def _look(self, path):
        if path not in self._read:
            whole = (ROOT / path).read_bytes() if (ROOT / path).is_file() else None
            self._read[path] = () if whole is None else (whole, INCLUDE.findall(whole.decode(errors="replace")))
        return self._read[path]

    def closure(self, path):
        """Returns the file and every file of this tree that it includes."""
        seen, todo = set(), [path]
        while todo:
            one = todo.pop()
            if one not in seen and self._look(one):
                seen.add(one)
                todo.extend(self._look(one)[1])
        return seen

    def key(self, path, command):
        digest = hashlib.sha256((ROOT / ".clang-tidy").read_bytes() + command.encode())
        for name in sorted(self.closure(path)):
            digest.update(name.encode() + b"\0" + self._look(name)[0])
        return digest.hexdigest()


def recent():
    """Returns the files of the last commits and of the working tree: they come first."""
    log = subprocess.run(["git", "log", "-5", "--name-only", "--format="], cwd=ROOT, text=True, capture_output=True).stdout
    return set(log.split()) | set(subprocess.run(["git", "diff", "--name-only", "HEAD"], cwd=ROOT, text=True,
                                                 capture_output=True).stdout.split())


def calls_of(folder):
    """Returns how a build compiles each file, by path."""
    return {c["file"].removeprefix("%s/" % ROOT): shlex.split(c["command"])
            for c in json.loads((folder / "compile_commands.json").read_text())}


def commands(log):
    """Returns how clang compiles each file of the tree, not those that a build writes; the first use configures."""
    if log.run("cmake", "--preset", "clang"):
        raise RuntimeError("configuring failed")
    return {path: argv for path, argv in calls_of(ROOT / "build/clang").items() if not path.startswith("build/")}


def standard_headers(log, argv):
    """Precompiles the standard headers once, with the flags of some file, because parsing them is most of the cost of a small
    file. No option of a single file affects them."""
    folder = ROOT / "build/clang"
    header, compiled = ROOT / "cmake/standard.h", folder / "standard.pch"
    plain = argv[argv.index(next(a for a in argv if "clang++" in a)):argv.index("-o")]
    if log.run(*plain, "-x", "c++-header", header, "-o", compiled, cwd=folder):
        raise RuntimeError("the standard headers do not compile")
    return ["-include-pch", str(compiled)]


def compiled_apart(argv):
    """Returns True if the file has options that the precompiled headers lack: optimisation, instrumentation, or a shared library's code."""
    return "-fPIC" in argv or any(a.startswith("-fsanitize") or a.startswith("-O") and a != "-O0" for a in argv)


def check(argv, deadline):
    """Returns the warnings, or None if no time was left."""
    if time.monotonic() > deadline:
        return None
    done = subprocess.run(argv, cwd=ROOT / "build/clang", text=True, capture_output=True)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def look(log, name, calls, seconds, clean=()):
    """Runs calls (path -> argv), one test per file; those known to be clean are skipped."""
    files = Files()
    keys = {path: CACHE / name / files.key(path, " ".join(argv)) for path, argv in calls.items() if path not in clean}
    (CACHE / name).mkdir(parents=True, exist_ok=True)
    first = recent()
    todo = sorted((p for p in keys if not keys[p].exists()), key=lambda p: (p not in first, p))
    deadline, failed, late = time.monotonic() + seconds, [], 0
    with concurrent.futures.ThreadPoolExecutor(CORES) as pool:
        for path, said in zip(todo, pool.map(lambda p: check(calls[p], deadline), todo)):
            if said is None:
                late += 1
            elif said:
                failed.append(path)
                log.say(said)
            else:
                keys[path].touch()
    note = "%d files, %d of them known clean" % (len(calls), len(calls) - len(todo))
    if late:
        note += ", %d left for the next run" % late
    if failed:
        note += "; " + ", ".join(failed[:5])
    return Outcome(len(calls) - late - len(failed), len(failed), late, note)


def parts(source):
    """Returns the files of the tree that are compiled as `source`: itself, or those that a unit of several includes."""
    if not source.endswith(".cxx"):
        return [source]
    included = re.findall(r'^#include "(.+)"', (ROOT / source).read_text(), re.M)
    return [path.removeprefix("%s/" % ROOT) for path in included]


def current(made, paths, tree):
    """Returns True if an object is newer than the files that it is compiled from."""
    return made.exists() and made.stat().st_mtime >= max((ROOT / name).stat().st_mtime for path in paths for name in tree.closure(path))


def asan_units():
    """Returns (files with current objects in the ASan build, the units of several files without): that build is clang's, too,
    and treats the same warnings as errors."""
    folder, compiled, units, tree = ROOT / "build/asan", set(), {}, Files()
    calls = calls_of(folder) if (folder / "compile_commands.json").exists() else {}
    for source, argv in calls.items():
        files = parts(source)
        if not files:  # a build's own file for precompiled headers
            continue
        if current(folder / argv[argv.index("-o") + 1], files, tree):
            compiled.update(files)
        elif source.endswith(".cxx") and all(pathlib.Path(a).exists() for a in argv if a.endswith(".pch")):
            units[source] = argv
    return compiled, units


def thread_safety(log, full):
    """Runs every file through clang's front end, all warnings and the thread-safety analysis as errors."""
    known = {path: argv for path, argv in commands(log).items() if path.endswith(".cc")}
    compiled, units = asan_units()
    headers = standard_headers(log, known["proxy/main.cc"])
    calls = {path: argv + [*([] if compiled_apart(argv) else headers), "-fsyntax-only"] for path, argv in known.items()}
    if not full:  # a unit is parsed in a third of the time of its files
        compiled.update(path for unit in units for path in parts(unit))
        calls.update((unit, argv + ["-fsyntax-only"]) for unit, argv in units.items())
    return look(log, "clang", calls, 3600, compiled)


def clang_tidy(log, full):
    argv = ["clang-tidy-14", "-p", str(ROOT / "build/clang"), "--quiet"]
    calls = {p: argv + [str(ROOT / p)] for p in commands(log) if p.endswith(".cc") and not p.startswith("tests/")}
    left = ALL_STEPS - (time.monotonic() - STARTED)
    return look(log, "clang-tidy", calls, 3600 if full else max(LEAST, min(BUDGET, left)))
