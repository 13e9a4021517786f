"""Mutant: a defect by name: the file, the correct text, the wrong one, and the program that detects it first. A text is an
expression or whole statements (wholeness.py), and occurs exactly once in its file."""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Mutant:
    name: str
    path: str
    old: str
    new: str
    killer: str  # of the pool: explorer, unit or sim, and the others run after it; of another component: a test program
    equivalent: str = ""  # why no test can detect it: it is listed and not run


def m(name, path, old, new, killer, equivalent=""):
    return Mutant(name, path, old, new, killer, equivalent)
