"""Counts the checks of a step and reports the failed ones."""
import dataclasses

from outcome import Outcome


class Judge:
    def __init__(self, log):
        self.log, self.total, self.bad = log, Outcome(), []

    def take(self, good, name, why=""):
        self.total += Outcome(passed=1) if good else Outcome(failed=1)
        if not good:
            self.bad.append(name)
            self.log.say("FAILED: %s %s" % (name, why))

    def skip(self, why):
        self.total += Outcome(skipped=1, note=why)

    def outcome(self):
        notes = [n for n in (", ".join(self.bad[:5]), self.total.note) if n]
        return dataclasses.replace(self.total, note="; ".join(notes))
