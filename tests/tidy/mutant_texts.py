"""The text that a mutant replaces occurs exactly once in its file, and is an expression or whole statements: a change of the code changes
the table too."""
import re
import sys

from tree import ROOT, Offence

sys.path.insert(0, str(ROOT / "tests/mutants"))
import run  # noqa: E402
sys.path.insert(0, str(ROOT / "tests/sim/data_plane"))
import controls  # noqa: E402


def occur_once(tree, mutants=None):
    for mutant in mutants or [*run.MUTANTS, *controls.mutants()]:
        path = tree.root / mutant.path
        times = path.read_text().count(mutant.old) if path.is_file() else 0
        if times != 1:
            yield Offence(mutant.path, 1, "has %d times the text of the mutant \"%s\"" % (times, mutant.name))
        if mutant.killer == controls.PROGRAM and not mutant.path.endswith(".cc"):
            yield Offence(mutant.path, 1, "has a control, \"%s\", and is no .cc file" % mutant.name)
        code = re.sub(r"""\"(\\.|[^\"\\])*\"|'(\\.|[^'\\])'""", "", mutant.old)
        if any(code.count(a) != code.count(b) for a, b in ("()", "{}", "[]")) or mutant.old.lstrip()[0] in ":?,)":
            yield Offence(mutant.path, 1, "the text of the mutant \"%s\" is neither an expression nor whole statements" % mutant.name)
