"""The text that a mutant replaces occurs exactly once in its file, and is an expression or whole statements: a change of the code changes
the table too."""
import collections
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


def part_of(path):
    """Returns the directory that the documents count a mutant under."""
    return "/".join(path.split("/")[:2 if path.startswith("proxy/") else 1]) + "/"


def are_counted(tree, mutants=None, document="docs/testing-methods.md"):
    """The table of the documents has the numbers of mutants, and of those that are equivalent."""
    listed, equivalent = collections.Counter(), collections.Counter()
    for mutant in mutants or run.MUTANTS:
        listed[part_of(mutant.path)] += 1
        equivalent[part_of(mutant.path)] += bool(mutant.equivalent)
    text = (tree.root / document).read_text()
    table = {row[1]: (int(row[2]), int(row[3])) for row in re.finditer(r"^\| `([a-z/]+/)` \| (\d+) \| (\d+) \|$", text, re.M)}
    for part in sorted({*listed, *table}):
        counted = listed[part], equivalent[part]
        if table.get(part, (0, 0)) != counted:
            yield Offence(document, 1, "%s has %d mutants, %d of them equivalent" % (part, *counted))
