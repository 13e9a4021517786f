"""The test programs of the release build, linked anew with objects that hold the mutants of their files: only the units that
have a chosen mutant are compiled, with all their mutants, so the mutants are in .cc files."""
import concurrent.futures
import hashlib
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import choice


class LinkedBuild:
    def __init__(self, root, folder, mutants, chosen=None):
        """chosen: the numbers of the mutants that will run; None: all."""
        self.root, self.folder, self.mutants = root, folder, mutants
        self.chosen = {number for number, _ in mutants} if chosen is None else set(chosen)
        self.release = root / "build/release"

    def programs_of(self, mutant):
        return [mutant.killer, *([mutant.killer + LONG] if mutant.killer in LONG_TESTS else [])]

    def commands(self, program):
        done = subprocess.run(["ninja", "-C", str(self.release), program], text=True, capture_output=True)
        if done.returncode:
            sys.exit("%s does not build:\n%s" % (program, done.stdout[-3000:]))
        return subprocess.run(["ninja", "-C", str(self.release), "-t", "commands", program], text=True, capture_output=True,
                              check=True).stdout.splitlines()

    def mutate(self, folder, unit, mutants, command):
        """Writes a unit of the release build with its mutated files (path -> mutants); returns its compiler's words."""
        for path, of_path in mutants.items():
            choice.write(folder / path, choice.mutated(path, (self.root / path).read_text(), of_path))
        source = folder / self.path_of(unit)
        if unit.suffix == ".cxx":
            source = (folder / unit.relative_to("/")).with_suffix(".cxx")
            choice.write(source, "".join('#include "%s"\n' % (folder / path if path in mutants else self.root / path)
                                         for path in self.files(unit)))
        argv = [word for word in shlex.split(command) if "ccache" not in word and word != "-Werror"]
        for option in ("-MT", "-MF", "-o", "-c"):
            at = argv.index(option)
            del argv[at:at + 2]
        argv.remove("-MD")
        return [*argv, "-w", "-g0", "-include", folder / "choice.h", "-c", source]

    def compile(self, folder, unit, mutants, command):
        """Returns the object of a unit of the release build, with its mutated files (path -> mutants)."""
        made = folder / unit.relative_to("/")
        made, mark = made.with_suffix(".o"), made.with_suffix(".sum")
        argv = [*self.mutate(folder, unit, mutants, command), "-O1"]
        pre = subprocess.run(["nice", "-n", "5", *map(str, argv), "-E", "-P"], cwd=self.release, capture_output=True, text=True)
        told = hashlib.sha256(pre.stdout.encode()).hexdigest()
        if made.exists() and mark.exists() and mark.read_text() == told:
            return made
        made.parent.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(["nice", "-n", "5", *map(str, argv), "-o", str(made)], cwd=self.release, text=True, capture_output=True)
        if done.returncode:
            sys.exit("%s does not compile:\n%s" % (", ".join(mutants), choice.explained(self.release, done.stderr, self.mutants)))
        mark.write_text(told)
        return made

    def check(self):
        """Returns what the compiler says about all mutants, a text for each unit of the release build that has one that does not compile."""
        wanted, commands, folder = {}, {}, self.folder / "check"
        for number, mutant in self.mutants:
            wanted.setdefault(mutant.path, []).append((number, mutant))
        for program in {mutant.killer for _, mutant in self.mutants}:
            for command in self.commands(program):
                if (at := re.search(r" -c (\S+)$", command)) and (unit := Path(at[1])).is_relative_to(self.root):
                    commands[unit] = command
        choice.write(folder / "choice.h", choice.HEADER)

        def said(unit):
            mutated = {path: wanted[path] for path in self.files(unit) if path in wanted}
            if not mutated:
                return ""
            argv = [*self.mutate(folder, unit, mutated, commands[unit]), "-fsyntax-only"]
            done = subprocess.run(["nice", "-n", "5", *map(str, argv)], cwd=self.release, text=True, capture_output=True)
            return choice.explained(self.release, done.stderr, self.mutants) if done.returncode else ""
        with concurrent.futures.ThreadPoolExecutor(2) as executor:
            return [text for text in executor.map(said, commands) if text]

    def path_of(self, source):
        return str(source.relative_to(self.root))

    def files(self, unit):
        """Returns the files of the tree that are compiled as this unit."""
        if unit.suffix != ".cxx":
            return [self.path_of(unit)]
        return [self.path_of(Path(path)) for path in re.findall(r'^#include "(.+)"', unit.read_text(), re.M)]

    def build(self, program):
        """Returns the command that runs the program, or its long tests."""
        if program.endswith(LONG):
            program = program.removesuffix(LONG)
            return [str(self.folder / program / program), "--gtest_filter=" + LONG_TESTS[program]]
        folder = self.folder / program
        choice.write(folder / "choice.h", choice.HEADER)
        commands, wanted = self.commands(program), {}
        for number, mutant in self.mutants:
            if mutant.killer == program:
                wanted.setdefault(mutant.path, []).append((number, mutant))
        needed = {mutant.path for number, mutant in self.mutants if number in self.chosen}
        units = []  # (unit, its command, its mutated files)
        for command in commands:
            if (at := re.search(r" -c (\S+)$", command)) and (unit := Path(at[1])).is_relative_to(self.root):
                mutated = {path: wanted.pop(path) for path in self.files(unit) if path in wanted}
                if needed.intersection(mutated):
                    units.append((unit, command, mutated))
        if wanted:
            sys.exit("%s is not made of: %s" % (program, ", ".join(wanted)))
        with concurrent.futures.ThreadPoolExecutor(2) as executor:
            made = list(executor.map(lambda u: self.compile(folder, u[0], u[2], u[1]), units))
        link = commands[-1]
        target = folder / program
        objects = " ".join(shlex.quote(str(o)) for o in made)
        # A member of a library may be needed for one inline function; the mutated objects come first, and the first definition counts.
        link = re.sub(r" -o \S+", lambda _: " -Wl,-z,muldefs %s -o %s" % (objects, shlex.quote(str(target))), link, count=1)
        done = subprocess.run(["sh", "-c", link], cwd=self.release, text=True, capture_output=True, env={**os.environ})
        if done.returncode:
            sys.exit("%s does not link:\n%s" % (program, done.stderr[:3000]))
        return [str(target), *ARGUMENTS.get(program, []), *(["--gtest_filter=-" + LONG_TESTS[program]] if program in LONG_TESTS else [])]


ARGUMENTS = {"data_plane_sim": ["--seconds", "60", "--histories", "3000", "--shrink", "no"],
             "downstream_tests": ["--gtest_filter=-ALocalSession.*"],  # no mutant's, and it depends on real time
             "session_sim": ["--seconds", "60", "--histories", "300"]}
LONG = ", long"
# Take most of their program's time, and run after the others detected nothing.
LONG_TESTS = {"net_tests": "AClientContext.WithoutMemory*:SocketProcessesTest.FindAllSockets*:Dns.*:DialTest.*"}
