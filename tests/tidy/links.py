"""Every relative link in the documentation leads to a file, and to a heading of it where it names one. A text that is a file's name is the
name of that file."""
import os
import re

from tree import Offence

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
NAMED_LINK = re.compile(r"\[`?((?:[\w.-]+/)*[\w-]+\.\w+)`?\]\(([^)\s#]+)")
HEADING = re.compile(r"^#+\s+(.*)")


def anchor(heading):
    return re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", heading.strip().lower()))


def anchors(tree, path):
    return {anchor(match.group(1)) for match in map(HEADING.match, tree.lines(path)) if match}


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
            for text, target in NAMED_LINK.findall(line):
                if not ("/" + target).endswith("/" + text):
                    yield Offence(path, number, "a link named %s leads to %s" % (text, target))


RUNBOOK = re.compile(r"""runbook: ["']([^:"']+): ([^"']+)["']""")
ALERT = re.compile(r"^\s*- alert: ")


def runbooks(tree):
    """Each alert has a runbook, which is a heading: "docs/operations.md: Is it leaking"."""
    for path in tree.with_suffix(".yml"):
        lines = list(enumerate(tree.lines(path), 1))
        alerts = [number for number, line in lines if ALERT.match(line)]
        for begin, end in zip(alerts, alerts[1:] + [len(lines) + 1]):
            if not any(RUNBOOK.search(line) for _, line in lines[begin:end - 1]):
                yield Offence(path, begin, "an alert without a runbook")
        for number, line in lines:
            for page, heading in RUNBOOK.findall(line):
                if page not in tree.files or anchor(heading) not in anchors(tree, page):
                    yield Offence(path, number, "%s has no heading %s" % (page, heading))


PAGE_LINES = 205


def contents_of(lines):
    """The headings that the lines before the first section link to."""
    first = next((n for n, line in enumerate(lines) if line.startswith("## ")), len(lines))
    return {match.group(1)[1:] for line in lines[:first] for match in LINK.finditer(line) if (match.group(1) or "").startswith("#")}


def pages(tree):
    """The table of contents names each page of docs/. A page ends within about four screens, or its head links to its sections."""
    contents = "docs/README.md"
    named = {match.group(1).partition("#")[0] for line in (tree.lines(contents) if contents in tree.files else []) for match in LINK.finditer(line)
             if match.group(1)}
    for path in tree.with_suffix(".md"):
        folder, name = os.path.split(path)
        if folder != "docs" or path == contents:
            continue
        if name not in named:
            yield Offence(path, 1, "%s does not name it" % contents)
        lines = tree.lines(path)
        if len(lines) <= PAGE_LINES:
            continue
        missing = {anchor(line[3:]) for line in lines if line.startswith("## ")} - contents_of(lines)
        if missing or not contents_of(lines):
            yield Offence(path, PAGE_LINES + 1, "a page of more than %d lines is divided, or its head links to each section: %s"
                          % (PAGE_LINES, ", ".join(sorted(missing))))
