"""Every relative link in the documentation leads to a file, and to a heading of it where it names one."""
import os
import re

from tree import Offence

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+\s+(.*)")


def anchors(tree, path):
    found = set()
    for line in tree.lines(path):
        match = HEADING.match(line)
        if match:
            words = re.sub(r"[^\w\s-]", "", match.group(1).strip().lower())
            found.add(re.sub(r"\s", "-", words))
    return found


def resolve(tree):
    for path in tree.with_suffix(".md"):
        for number, line in enumerate(tree.lines(path), 1):
            for match in LINK.finditer(line):
                target = match.group(1) or match.group(2)
                if re.match(r"[a-z]+:", target):
                    continue
                name, _, anchor = target.partition("#")
                file = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
                if not (tree.root / file).exists():
                    yield Offence(path, number, "%s does not exist" % target)
                elif anchor and file.endswith(".md") and anchor not in anchors(tree, file):
                    yield Offence(path, number, "%s has no heading #%s" % (file, anchor))
