"""Tables and numbers of the documents in Markdown."""

ABSENT = "–"


def table(head, rows, left=1):
    """The first columns and those without a name are of text, the others of numbers, aligned to the right."""
    lines = ["| " + " | ".join(head) + " |", "|" + "|".join("---" if i < left or not name else "--:" for i, name in enumerate(head)) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def number(value, digits=None):
    """Two or three significant digits, unless told."""
    if value is None:
        return ABSENT
    if digits is None:
        digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 1 else 2
    return format(value, ",.%df" % digits)


def pair(values, digits=None):
    """One figure for each count of workers or threads."""
    values = list(values)
    if all(value is None for value in values):
        return ABSENT
    return " / ".join(number(value, digits) for value in values)


def factor(value):
    """A ratio; one far below 1 as a fraction."""
    return ABSENT if value is None else "1/%d" % round(1 / value) if 0 < value < 0.05 else "%.2f" % value


def conditions(name, about):
    """A row of the table of conditions."""
    load = " to ".join(number(value, 1) for value in about["load"])
    versions = ", ".join("%s %s" % item for item in about["versions"].items())
    seconds = ", %s s a phase" % number(about["seconds"], 1).removesuffix(".0") if "seconds" in about else ""
    machine = "%d × %s" % (about["cores"], about["processor"] or "processor not recorded")
    return [name, about["date"], machine, about["kernel"] or ABSENT, load if about["load"] != [None, None] else ABSENT,
            "%d%s" % (about.get("rounds", 1), seconds), versions]


CONDITIONS = ["figures", "date (UTC)", "processors", "kernel", "load", "rounds", "versions"]
