"""Six lines of code stand in one place only."""
import collections
import re

from tree import Offence

LENGTH = 6
# Lines that say nothing alone: includes, braces, labels of switches, names of namespaces.
EMPTY = re.compile(r"^(#.*|[{}();]*|namespace .*|} *// namespace.*|public:|private:|protected:|default:|break;|\[\[fallthrough\]\];|//.*)$")


def significant(tree, path):
    """Yields (line number, text) of the lines that hold code."""
    for number, line in enumerate(tree.lines(path), 1):
        text = re.sub(r"\s+//.*$", "", line).strip()
        if not EMPTY.match(text):
            yield number, text


def repeated_lines(tree):
    """The second place of six equal lines; a longer repetition is named once."""
    first, last = {}, collections.defaultdict(int)
    for path in sorted(tree.product()):
        if not path.endswith(".cc"):
            continue  # declarations of overrides and of deleted copies are equal in every header
        lines = list(significant(tree, path))
        for at in range(len(lines) - LENGTH + 1):
            window = tuple(text for _, text in lines[at:at + LENGTH])
            number = lines[at][0]
            before = first.setdefault(window, (path, number))
            if before == (path, number) or last[path] > at:
                continue
            last[path] = at + LENGTH
            yield Offence(path, number, "repeats six lines of %s:%d" % before)
