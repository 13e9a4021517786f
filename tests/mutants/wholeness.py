"""Whether a text is a whole expression or whole statements, by its characters alone: only then a choice between it and another compiles."""
import re

WORDS = re.compile(r'''R"\((?:.|\n)*?\)"|"(?:\\.|[^"\\\n])*"|'(?:\\[^\n']+|[^'\\\n])'|//[^\n]*''')
PAIRS = {")": "(", "]": "[", "}": "{"}
LEADING = re.compile(r"\|\||&&|:(?!:)|\.(?!\d)|[/%|^=<>?,]")  # a unary operator, :: and a number may begin a text
TRAILING = re.compile(r"(?:[-*/%&|^=<>!~?:,.]|(?<!\+)\+)$")
KEYWORDS = re.compile(r"(?:return|if|for|while|do|switch|case|default|throw|break|continue|goto|else|using)\b")
VALUE = re.compile(r"\b(?:return|case|throw|else|do)$")


def code_of(text):
    """Returns the text without comments, with strings and characters as one word each."""
    return WORDS.sub(lambda found: "" if found[0].startswith("//") else "'c'" if found[0].startswith("'") else '""', text).strip()


def is_statements(text):
    return code_of(text).endswith((";", "}"))


def unpaired(code):
    """Returns true if a bracket lacks its partner."""
    opened = []
    for c in code:
        if c in PAIRS.values():
            opened.append(c)
        elif c in PAIRS and (not opened or opened.pop() != PAIRS[c]):
            return True
    return bool(opened)


def outside_braces(code):
    while (less := re.sub(r"\{[^{}]*\}", "", code)) != code:
        code = less
    return code


def flaw(text, statements):
    """Returns why a text is not what it stands for, whole statements or one expression; empty: it is."""
    code = code_of(text)
    if unpaired(code):
        return "has a bracket without its partner"
    if LEADING.match(code):
        return "begins with an operator"
    if statements:
        if code.startswith("else"):
            return "begins with else"
        return "does not end its last statement" if code and not code.endswith((";", "}")) else ""
    if not code or code.startswith("{"):
        return "is no expression"
    if KEYWORDS.match(code):
        return "begins a statement and does not end it"
    if ";" in outside_braces(code):
        return "is part of a statement"
    return "ends with an operator" if TRAILING.search(code) and not code.endswith("--") else ""


def misplaced(before, after, statements):
    """Returns why whole statements, or an expression, cannot stand between these texts; empty: they can."""
    before, after = code_of(before), code_of(after)
    if statements:
        if not re.search(r"(?:^|[;{}:)]|\b(?:else|do))$", before):
            return "begins in the middle of a statement"
        return "ends in the middle of a statement" if re.match(r"else\b|:(?!:)|[;,)\]?.=<>|/%]", after) else ""
    if re.search(r"(?:\w|\.|->|::)$", before) and not VALUE.search(before):
        return "begins in the middle of an expression"
    return "ends in the middle of an expression" if re.match(r"\w|\(|\{|::", after) else ""


def flaw_of_place(text, begin, end, variants):
    """Returns why a choice between text[begin:end] and the variants (number, text) does not compile, by the number of the culprit."""
    statements = is_statements(text[begin:end])
    why = flaw(text[begin:end], statements) or misplaced(text[:begin], text[end:], statements)
    if why:
        return {number: "the correct text " + why for number, _ in variants}
    return {number: "the wrong text " + why for number, variant in variants if (why := flaw(variant, statements))}
