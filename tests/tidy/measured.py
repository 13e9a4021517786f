"""The documents' tables of figures are those that tests/bench/report.py makes from the stored results."""
import sys

from tree import ROOT, Offence

sys.path.insert(0, str(ROOT / "tests/bench"))
import report  # noqa: E402


def figures(tree):
    for path, line in report.differing(tree.root):
        yield Offence(path, line, "not as tests/bench/report.py makes it from tests/bench/results")
