"""Faults while requests run: one after the other against one program, which must survive all of them."""
import collections
import threading
import time

import mix
import oracles

SPELL = 0.3  # seconds that a fault of every call lasts, as far as the mix does
# Seconds that a mix may take: less than the time of one request, so that none waits for its end.
MOST = 3


class Sweep:
    def __init__(self, scene):
        self.scene = scene
        self.ends = collections.Counter()  # (function, end of a request)
        self.failed_calls = 0
        self.rest = None

    def begin(self):
        self.scene.start()
        self.rest = oracles.resting_descriptors(self.scene)

    def calls(self, rounds=3):
        """Returns the most calls of each function that a mix makes, once one-time initialization is complete."""
        oracles.serves(self.scene)
        oracles.balances(self.scene, self.rest)
        most = collections.Counter()
        for _ in range(rounds):
            before = self.scene.control.calls()
            mix.run(self.scene)
            now = self.scene.control.calls()
            oracles.balances(self.scene, self.rest)
            most |= collections.Counter({name: now[name] - before[name] for name in now})
        return most

    def play(self, case):
        """Returns what is wrong, or None."""
        self.scene.forget()
        if self.scene.program is None or not self.scene.program.alive():
            self.begin()
        began = time.monotonic()
        results = self.under_fault(case)
        took = time.monotonic() - began
        for result in results:
            self.ends[case.function, result.end] += 1
        try:
            self.judge(case, results, took)
        except (oracles.Broken, OSError, AssertionError) as broken:
            tail = self.scene.program.tail(6)
            self.end_program()
            return "%s: %s\n%s" % (case, broken, tail)
        return None

    def under_fault(self, case):
        control = self.scene.control
        control.arm(case.function, case.error, case.nth, case.times)
        spell = threading.Timer(SPELL, control.disarm)
        if case.times > 1:
            spell.start()
        try:
            return mix.run(self.scene)
        finally:
            spell.cancel()
            control.disarm()
            self.failed_calls += control["failed"]

    def judge(self, case, results, took):
        oracles.lives(self.scene)
        if took > MOST:
            raise oracles.Broken("the requests took %.1f s" % took)
        allowed = (mix.OK,) if case.is_harmless() else (mix.OK, mix.VISIBLE, mix.CUT)
        bad = ["%s %s %s" % (r.kind, r.end, r.detail) for r in results if r.end not in allowed]
        if bad:
            raise oracles.Broken("; ".join(bad))
        oracles.serves(self.scene)
        oracles.balances(self.scene, self.rest)
        oracles.lives(self.scene)

    def end_program(self):
        program, self.scene.program = self.scene.program, None
        if program is not None and program.alive():
            program.process.kill()
            program.process.wait()

    def end(self):
        """TERM ends it within the grace."""
        if self.scene.program is not None and self.scene.program.alive():
            oracles.serves(self.scene, rounds=20)
            oracles.balances(self.scene, self.rest)
            self.scene.program.stop()
