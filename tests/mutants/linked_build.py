"""The test programs of the release build, linked anew with objects that hold the mutants of their files: only these are
compiled, so the mutants are in .cc files."""
import concurrent.futures
import hashlib
import os
import re
import shlex
import subprocess
import sys

import choice


class LinkedBuild:
    def __init__(self, root, folder, mutants):
        self.root, self.folder, self.mutants = root, folder, mutants
        self.release = root / "build/release"

    def programs_of(self, mutant):
        return [mutant.killer]

    def commands(self, program):
        done = subprocess.run(["ninja", "-C", str(self.release), program], text=True, capture_output=True)
        if done.returncode:
            sys.exit("%s does not build:\n%s" % (program, done.stdout[-3000:]))
        return subprocess.run(["ninja", "-C", str(self.release), "-t", "commands", program], text=True, capture_output=True,
                              check=True).stdout.splitlines()

    def compile(self, folder, path, mutants, command):
        """Returns the object of a mutated file."""
        text = choice.mutated(path, (self.root / path).read_text(), mutants)
        source = folder / path
        choice.write(source, text)
        made, mark = source.with_suffix(".o"), source.with_suffix(".sum")
        argv = [word for word in shlex.split(command) if "ccache" not in word and word != "-Werror"]
        for option in ("-MT", "-MF", "-o", "-c"):
            at = argv.index(option)
            del argv[at:at + 2]
        argv.remove("-MD")
        argv += ["-w", "-O1", "-g0", "-include", folder / "choice.h", "-I", (self.root / path).parent, "-c", source]
        pre = subprocess.run(["nice", "-n", "5", *map(str, argv), "-E", "-P"], cwd=self.release, capture_output=True, text=True)
        told = hashlib.sha256(pre.stdout.encode()).hexdigest()
        if made.exists() and mark.exists() and mark.read_text() == told:
            return made
        done = subprocess.run(["nice", "-n", "5", *map(str, argv), "-o", str(made)], cwd=self.release, text=True, capture_output=True)
        if done.returncode:
            sys.exit("%s does not compile:\n%s" % (path, done.stderr[:3000]))
        mark.write_text(told)
        return made

    def build(self, program):
        """Returns the command that runs the program."""
        folder = self.folder / program
        choice.write(folder / "choice.h", choice.HEADER)
        commands, by_path = self.commands(program), {}
        for number, mutant in self.mutants:
            if mutant.killer == program:
                by_path.setdefault(mutant.path, []).append((number, mutant))
        command_of = {path: next((c for c in commands if c.endswith(" -c %s" % (self.root / path))), None) for path in by_path}
        if missing := [path for path, command in command_of.items() if command is None]:
            sys.exit("%s is not made of: %s" % (program, ", ".join(missing)))
        with concurrent.futures.ThreadPoolExecutor(2) as executor:
            made = list(executor.map(lambda path: self.compile(folder, path, by_path[path], command_of[path]), by_path))
        link = commands[-1]
        target = folder / program
        objects = " ".join(shlex.quote(str(o)) for o in made)
        link = re.sub(r" -o \S+", lambda _: " %s -o %s" % (objects, shlex.quote(str(target))), link, count=1)
        done = subprocess.run(["sh", "-c", link], cwd=self.release, text=True, capture_output=True, env={**os.environ})
        if done.returncode:
            sys.exit("%s does not link:\n%s" % (program, done.stderr[:3000]))
        return [str(target), *ARGUMENTS.get(program, [])]


ARGUMENTS = {"downstream_tests": ["--gtest_filter=-ALocalSession.*"],  # no mutant's, and it depends on real time
             "session_sim": ["--seconds", "60", "--histories", "300"]}
