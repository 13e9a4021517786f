"""The text that a mutant replaces occurs exactly once in its file, and it and the wrong text are whole expressions or whole statements:
a change of the code changes the table too."""
import collections
import re
import sys

from tree import ROOT, Offence

sys.path.insert(0, str(ROOT / "tests/mutants"))
import run  # noqa: E402
sys.path.insert(0, str(ROOT / "tests/sim/data_plane"))
import controls  # noqa: E402
import choice  # noqa: E402
import wholeness  # noqa: E402


def occur_once(tree, mutants=None):
    for mutant in mutants or [*run.MUTANTS, *controls.mutants()]:
        path = tree.root / mutant.path
        times = path.read_text().count(mutant.old) if path.is_file() else 0
        if times != 1:
            yield Offence(mutant.path, 1, "has %d times the text of the mutant \"%s\"" % (times, mutant.name))
        of_pool = mutant.path.startswith("pool/") and mutant.killer != controls.PROGRAM  # compiled with its headers; other mutants are linked
        if not of_pool and not mutant.path.endswith(".cc"):
            yield Offence(mutant.path, 1, "has the mutant \"%s\" and is no .cc file" % mutant.name)


def are_whole(tree, *tables):
    """The choice between right and wrong compiles; texts that overlap are judged together, as they are compiled."""
    for table in tables or (run.MUTANTS, controls.mutants()):
        by_path = {}
        for number, mutant in enumerate(table):
            by_path.setdefault(mutant.path, []).append((number, mutant))
        for path, mutants in by_path.items():
            text = (tree.root / path).read_text() if (tree.root / path).is_file() else ""
            mutants = [(number, mutant) for number, mutant in mutants if text.count(mutant.old) == 1]  # occur_once() names the others
            for place in choice.places(path, text, mutants):
                for number, why in wholeness.flaw_of_place(text, *place).items():
                    yield Offence(path, text.count("\n", 0, place[0]) + 1, "the mutant \"%s\": %s" % (table[number].name, why))


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
