"""Puts mutants into texts: each correct text becomes a choice between right and wrong."""
import re
import sys

from wholeness import is_statements

HEADER = """#pragma once
#include <cstdlib>
#include <type_traits>
namespace carpool {
inline const int chosen_mutant = std::getenv("CARPOOL_MUTANT") == nullptr ? 0 : std::atoi(std::getenv("CARPOOL_MUTANT"));
constexpr bool mutant(int number) { return std::is_constant_evaluated() ? false : number == chosen_mutant; }
}
"""


def chosen_between(old, variants):
    """Returns the text of a place: the correct one, unless one of the variants (number, text) is selected."""
    if is_statements(old):
        return "".join("if (::carpool::mutant(%d)) {\n%s\n} else " % v for v in variants) + "{\n%s\n}" % old
    return "(" + "".join("::carpool::mutant(%d) ? (%s) : " % v for v in variants) + "(%s))" % old


def places(path, text, mutants):
    """Yields (begin, end, variants), in order; texts that overlap are one place."""
    found = []
    for number, mutant in mutants:
        if text.count(mutant.old) != 1:
            sys.exit("%s has %d times: %s\nits mutant: %s" % (path, text.count(mutant.old), mutant.old, mutant.name))
        begin = text.index(mutant.old)
        found.append((begin, begin + len(mutant.old), number, mutant.new))
    found.sort()
    while found:
        begin, end = found[0][:2]
        inside = [one for one in found if one[0] < end]
        while (longest := max(one[1] for one in inside)) > end:
            end = longest
            inside = [one for one in found if one[0] < end]
        found = [one for one in found if one[0] >= end]
        yield begin, end, [(number, text[begin:b] + new + text[e:end]) for b, e, number, new in inside]


def mutated(path, text, mutants):
    result, at = "", 0
    for begin, end, variants in places(path, text, mutants):
        result += text[at:begin] + chosen_between(text[begin:end], variants)
        at = end
    return result + text[at:]


def culprit(text, line, column):
    """Returns the number of the mutant that is at this place of a mutated text, or before it; 0: none."""
    lines = text.splitlines(keepends=True)
    at = sum(map(len, lines[:line - 1])) + column
    calls = [(call.start(), int(call[1])) for call in re.finditer(r"::carpool::mutant\((\d+)\)", text)]
    on_line = [number for begin, number in calls if at <= begin < at - column + len(lines[line - 1])]
    before = [number for begin, number in calls if begin < at]
    if on_line and (not before or not any(at - column <= begin < at for begin, _ in calls)):
        return on_line[0]
    return before[-1] if before else 0


def explained(folder, said, mutants):
    """Returns a sentence for each mutant (number, mutant) that a compiler's errors in these copies are about, then the errors."""
    named, why = dict(mutants), {}
    for path, line, column, error in re.findall(r"^(.+?):(\d+):(\d+): (?:fatal )?error: (.*)$", said, re.M):
        if (folder / path).is_file() and (number := culprit((folder / path).read_text(), int(line), int(column))) in named:
            why.setdefault(number, error)
    return "".join("the mutant \"%s\" of %s: %s\n" % (named[n].name, named[n].path, error) for n, error in why.items()) + said[:3000]


def write(path, text):
    """Writes a file if its text is another one, so that its time tells whether it changed."""
    if path.exists() and path.read_text() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
