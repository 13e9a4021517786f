"""Faults while the program starts: it becomes ready and serves, or it ends with its code and a line that gives the reason."""
import errno as e
import re

import oracles
from cases import ERRORS, Case
from control import ALWAYS

MORE = {"epoll_create": (e.EMFILE, e.ENOMEM), "eventfd": (e.EMFILE, e.ENOMEM), "inotify": (e.EMFILE, e.ENOSPC), "random": (e.ENOSYS,),
        "bind": (e.EADDRINUSE, e.EACCES), "listen": (e.EADDRINUSE,)}
CODES = (1, 2, 3)  # configuration, cannot listen, internal
FIRST = 8  # allocations, of which some may come before main(): played in each run


class StartUp:
    def __init__(self, scene):
        self.scene = scene
        self.ready = self.refused = 0

    def calls(self):
        """Returns how often a start calls each function."""
        before = self.scene.control.calls()
        self.scene.start()
        now = self.scene.control.calls()
        self.scene.program.stop()
        return {name: now[name] - before[name] for name in now}

    def every(self):
        calls, found = self.calls(), []
        for function, errors in {**ERRORS, **MORE}.items():
            for error in errors:
                found += [Case(function, error, n, 1) for n in range(1, calls[function] + 1)]
                if calls[function] and error != e.EINTR and function != "memory":
                    found.append(Case(function, error, 1, ALWAYS))
        return found

    @staticmethod
    def first():
        return [Case("memory", e.ENOMEM, n, 1) for n in range(1, FIRST + 1)]

    def play(self, case):
        """Returns what is wrong, or None."""
        control = self.scene.control
        program = self.scene.prepare()
        control.arm(case.function, case.error, case.nth, case.times)
        try:
            program.start()
            started = True
        except AssertionError:  # it ended, or is not ready in time
            started = False
        finally:
            control.disarm()
        try:
            self.judge(program, started)
        except (oracles.Broken, OSError, AssertionError) as broken:
            return "start-up, %s: %s\n%s" % (case, broken, program.tail(4))
        finally:
            if program.alive():
                program.process.kill()
                program.process.wait()
        return None

    def judge(self, program, started):
        if started:
            self.ready += 1
            oracles.serves(self.scene)
            oracles.balances(self.scene)
            program.stop()
            return
        self.refused += 1
        if program.alive():
            raise oracles.Broken("neither ready nor at its end")
        told = [line for line in program.output if re.match(r"carpool: |.*\.toml", line)]
        if program.process.returncode not in CODES or not told or any("impossible" in line or "terminate" in line for line in told):
            raise oracles.Broken("exit status %d" % program.process.returncode)
