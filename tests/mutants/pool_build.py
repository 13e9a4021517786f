"""The programs that test the pool, each compiled once with all mutants of pool/: headers have mutants too."""
import concurrent.futures
import hashlib
import os
import shutil
import subprocess
import sys

import choice

UNITS = ("entry_state", "core", "supply", "pending_places", "connection_budget", "event", "wait_queue", "dial", "destination", "directory",
         "regression", "shared", "class_quota", "warm_up", "cancel_dials", "cool_down", "user_regression", "allocation", "no_memory",
         "idle_limit_learner", "operator_commands", "health_lease", "ledger", "slices", "states", "audit", "boundary", "causes", "random", "spread",
         "sizing", "replay_plan", "size_controller", "auto_size", "wanted_lease", "object_pool", "eviction", "stream_limit_learner", "tunnel_places",
         "refused_stream", "blocks", "origin", "sessions_only")
COMPILER = ([shutil.which("ccache")] if shutil.which("ccache") else []) + [os.environ.get("CXX", "c++")]
TOGETHER = 12
FOLDERS = ("base", "exec", "pool", "tests/explorer", "tests/sim", "tests/unit")


class PoolBuild:
    PROGRAMS = {"unit": ["--gtest_filter=-Pool.*Threads*:Pool.AnswersEvery*"], "explorer": ["--random", "10000"],
                "sim": ["--seconds", "300", "--histories", "3000"], "every order": []}
    BUILT = {"every order": "explorer"}  # the same program with all its schedules: if no other program detected anything

    def __init__(self, root, folder, mutants):
        self.root, self.folder, self.mutants, self.sum = root, folder, mutants, ""

    def copy(self):
        by_path, told = {}, hashlib.sha256(" ".join(UNITS).encode())
        for number, mutant in self.mutants:
            by_path.setdefault(mutant.path, []).append((number, mutant))
        present = set()
        for part in FOLDERS:
            for source in sorted((self.root / part).rglob("*")):
                path = str(source.relative_to(self.root))
                if source.suffix not in (".h", ".cc", ".inc"):
                    continue
                text = choice.mutated(path, source.read_text(), by_path.pop(path, []))
                choice.write(self.folder / path, text)
                present.add(path)
                told.update(path.encode() + text.encode())
        if by_path:
            sys.exit("no such files: " + ", ".join(by_path))
        for old in self.folder.rglob("*.cc"):
            if old.parent != self.folder and str(old.relative_to(self.folder)) not in present:
                old.unlink()
        choice.write(self.folder / "choice.h", choice.HEADER)
        self.sum = told.hexdigest()

    def sources(self, program):
        everything = self.folder / "all.cc"
        parts = sorted(p for part in ("pool", "base") for p in (self.folder / part).rglob("*.cc"))
        choice.write(everything, "".join('#include "%s"\n' % p.relative_to(self.folder) for p in parts))
        if program == "unit":
            return [everything, *self.together(program, [self.folder / ("tests/unit/pool_%s_test.cc" % unit) for unit in UNITS])]
        if program == "sim":
            return [everything, self.folder / "tests/sim/destination_sim.cc"]
        explorer = [*sorted((self.folder / "tests/explorer").glob("*.cc")), self.folder / "exec/mailbox.cc", self.folder / "exec/parker.cc"]
        return [everything, *self.together(program, explorer)]

    def together(self, program, sources):
        """Returns few files that include these, as CARPOOL_UNITY does: most of a file's time are the headers."""
        files = []
        for at in range(0, len(sources), TOGETHER):
            files.append(self.folder / ("%s_%d.cc" % (program, at // TOGETHER)))
            choice.write(files[-1], "".join('#include "%s"\n' % p.relative_to(self.folder) for p in sources[at:at + TOGETHER]))
        return files

    def build(self, name):
        """Returns the command that runs the program."""
        program = self.BUILT.get(name, name)
        if not self.sum:
            self.copy()
        made, mark = self.folder / program, self.folder / (program + ".sum")
        argv = [str(made), *self.PROGRAMS[name]]
        if made.exists() and mark.exists() and mark.read_text() == self.sum:
            return argv
        with concurrent.futures.ThreadPoolExecutor(2) as executor:
            objects = list(executor.map(lambda source: self.compile(source, program), self.sources(program)))
        self.call([*COMPILER[-1:], *objects, "-o", made, *(["-lgtest", "-lgtest_main"] if program == "unit" else []), "-lidn2", "-lpthread"])
        mark.write_text(self.sum)
        return argv

    def compile(self, source, program):
        seam = ['-DCARPOOL_POOL_ATOMIC="tests/explorer/atomic.h"', '-DCARPOOL_EXEC_ATOMIC="tests/explorer/exec_atomic.h"']
        made = self.folder / "objects" / ("explorer" if program == "explorer" else "plain") / source.relative_to(self.folder).with_suffix(".o")
        made.parent.mkdir(parents=True, exist_ok=True)
        self.call(["nice", "-n", "5", *COMPILER, "-std=c++20", "-O1", "-w", '-DCARPOOL_SOURCE_DIR="%s"' % self.root,
                   *(seam if program == "explorer" else []), "-I", self.folder, "-include", self.folder / "choice.h", "-c", source, "-o", made])
        return made

    def call(self, command):
        done = subprocess.run([str(a) for a in command], cwd=self.folder, text=True, capture_output=True)
        if done.returncode:
            sys.exit("the mutants do not compile:\n%s" % choice.explained(self.folder, done.stderr, self.mutants))
