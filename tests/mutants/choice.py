"""Puts mutants into texts: each correct text becomes a choice between right and wrong."""
import sys

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
    if old.split("//")[0].rstrip().endswith((";", "}")):
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


def write(path, text):
    """Writes a file if its text is another one, so that its time tells whether it changed."""
    if path.exists() and path.read_text() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
