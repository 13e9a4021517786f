"""The result of a step: how many tests passed, failed and were skipped, and a note."""
import dataclasses
from collections.abc import Callable


@dataclasses.dataclass
class Outcome:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    note: str = ""
    unsteady: str = ""  # tests that failed beside others and passed alone

    def __add__(self, other):
        return Outcome(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped,
                       "; ".join(n for n in (self.note, other.note) if n), ", ".join(n for n in (self.unsteady, other.unsteady) if n))


@dataclasses.dataclass(frozen=True)
class Step:
    name: str
    what: str
    run: Callable  # (log, full) -> Outcome
    needs: str = ""    # the file that this step needs, of a build that has not failed in this run
    full_only: bool = False
    flag: str = ""     # only with this option, or by name: minutes of work that few changes affect
    group: str = ""    # neighbours of one group run concurrently
    again: bool = False  # real processes and real time: after a failure it runs once more, alone, and the summary names it

    def makes(self):
        """Returns the folder that this step builds, or an empty text."""
        return "build/" + (self.name.removeprefix("build").removeprefix("-") or "release") if self.name.split("-")[0] == "build" else ""


def verdict(status, note=""):
    """Returns the outcome of a command that is one test: passed if it exits with 0."""
    return Outcome(passed=1, note=note) if status == 0 else Outcome(failed=1, note=note or "exit status %d" % status)
