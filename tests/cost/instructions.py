"""Counts what carpool executes for a request, by callgrind: instructions by function, and allocations."""
import collections
import itertools
import os
import pathlib
import re
import subprocess

from scene import SCENARIOS, Scene  # finds the harness

import harness.carpool

PARTS, REQUESTS = 3, 100
BY_THE_CLOCK = "carpool::exec::TimerHeap::run_due*"
ALLOCATES = {"malloc", "calloc", "realloc", "memalign", "aligned_alloc", "posix_memalign"}
OF_PROGRAM = "carpool"  # whatever the file's name is
NAMED = re.compile(r"\((\d+)\)(?: (.*))?")


class Profile:
    """One part of callgrind's output: the cost of each function itself, and its calls."""

    def __init__(self, path):
        self.own, self.entries = collections.Counter(), collections.defaultdict(collections.Counter)
        self.names, self.function, self.object = collections.defaultdict(dict), "", ""
        with open(path) as lines:
            for line in lines:
                self._take(line.rstrip("\n"), lines)

    def _take(self, line, lines):
        key, _, rest = line.partition("=")
        if key in ("fn", "cfn", "ob", "cob", "fl", "fi", "fe", "cfi", "cfl"):
            name = self._named("ob" if key.endswith("ob") else "fn" if key.endswith("fn") else "fl", rest)
            if key == "fn":
                self.function = short(name)
            elif key == "ob":
                self.object = OF_PROGRAM if name == str(harness.carpool.PROGRAM) else pathlib.Path(name).name
        elif key == "calls":
            next(lines)  # what was called counts for itself
        elif line.startswith("0x"):
            address, _, *cost = line.split()  # none: zero
            cost = int(cost[0]) if cost else 0
            self.own[self.object, self.function] += cost
            if self.function in ALLOCATES:
                self.entries[self.object, self.function][int(address, 16)] += cost

    def _named(self, kind, text):
        number, name = NAMED.fullmatch(text).groups()
        if name is not None:
            self.names[kind][number] = name
        return self.names[kind][number]

    def total(self):
        return sum(self.own.values())

    def of_program(self):
        return sum(cost for (of, _), cost in self.own.items() if of == OF_PROGRAM)

    def allocations(self):
        """Returns how often the first instruction of each was executed: callgrind's calls include periodic work."""
        return sum(counts[min(counts)] for counts in self.entries.values())


def short(name):
    """Returns a function's name without its parameters and their types."""
    name = name.replace("(anonymous namespace)::", "").split("(")[0]
    while name != (name := re.sub(r"<[^<>]*>", "", name)):
        pass
    return name.replace("carpool::", "")


def command(folder, *options):
    return ["valgrind", "--tool=callgrind", "-q", "--vgdb=yes", "--vgdb-prefix=%s/vgdb" % folder, "--callgrind-out-file=%s/calls" % folder,
            "--toggle-collect=" + BY_THE_CLOCK, "--collect-atstart=yes", "--dump-instr=yes", "--compress-pos=no", *options]


def tell(folder, program, *words):
    done = subprocess.run(["vgdb", "--vgdb-prefix=%s/vgdb" % folder, "--pid=%d" % program.process.pid, *words], capture_output=True, text=True)
    assert done.returncode == 0, "vgdb: " + done.stderr


class Counter:
    """callgrind around a program. Periodic work only adds, so the least of several parts is the one without any."""

    def __init__(self, folder, program):
        self.folder, self.program, self.dumps = folder, program, itertools.count(1)

    def count(self, name, play, requests):
        """Returns the Profile of play(requests)."""
        parts = []
        for _ in range(PARTS):
            tell(self.folder, self.program, "zero")
            play(requests)
            tell(self.folder, self.program, "dump", name)
            path = self.folder / ("calls.%d" % next(self.dumps))
            parts.append(Profile(path))
            os.unlink(path)
        return min(parts, key=Profile.total)


def measure(folder, names=tuple(SCENARIOS)):
    """Returns {scenario: (Profile, requests)}."""
    folder, found = pathlib.Path(folder), {}
    with Scene(folder, command(folder)) as scene:
        counter = Counter(folder, scene.program)
        for name in names:
            found[name] = counter.count(name, scene.warmed(name), REQUESTS), REQUESTS
    return found
