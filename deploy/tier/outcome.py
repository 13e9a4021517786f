"""What a step leaves behind: how many things passed, failed, were skipped, and a word about it."""
import dataclasses
from collections.abc import Callable


@dataclasses.dataclass
class Outcome:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    note: str = ""

    def __add__(self, other):
        return Outcome(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped,
                       "; ".join(n for n in (self.note, other.note) if n))


@dataclasses.dataclass(frozen=True)
class Step:
    name: str
    what: str
    run: Callable  # (log, full) -> Outcome
    needs: str = ""    # the file without which this one says nothing
    full_only: bool = False
    flag: str = ""     # only when this option, or its name, asks for it: minutes of work that few changes touch
    group: str = ""    # neighbours of one group run side by side


def verdict(status, note=""):
    """A command that is one test: passed when it exits with 0."""
    return Outcome(passed=1, note=note) if status == 0 else Outcome(failed=1, note=note or "exit status %d" % status)
