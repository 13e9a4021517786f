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


# Pages in which one looks something up; each other page ends within about four screens.
REFERENCE = {"architecture", "benchmarks", "configuration", "execution", "log", "metrics", "pool", "testing"}
PAGE_LINES = 205


def pages(tree):
    """A page of docs/ is short, and the table of contents names it."""
    contents = "docs/README.md"
    named = {match.group(1).partition("#")[0] for line in (tree.lines(contents) if contents in tree.files else []) for match in LINK.finditer(line)
             if match.group(1)}
    for path in tree.with_suffix(".md"):
        folder, name = os.path.split(path)
        if folder != "docs" or path == contents:
            continue
        if name not in named:
            yield Offence(path, 1, "%s does not name it" % contents)
        if name[:-3] not in REFERENCE and len(tree.lines(path)) > PAGE_LINES:
            yield Offence(path, PAGE_LINES + 1, "a page ends within %d lines; split it" % PAGE_LINES)
