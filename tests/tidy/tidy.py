#!/usr/bin/env python3
"""The rules of the tree that no compiler checks: tidy.py [RULE...] prints each offender as FILE:LINE: RULE: what is wrong.

A rule is a function that takes the Tree and yields Offence; it joins by being listed in RULES.
"""
import sys

import figures
import layering
import links
import measured
import mutant_texts
import repetition
import size
import style
from tree import Tree

RULES = {
    "include-direction": layering.include_direction,
    "include-cycle": layering.include_cycle,
    "root-files": layering.root_files,
    "headers-reached": layering.headers_reached,
    "one-wrapper": layering.one_wrapper,
    "named-atomics": layering.named_atomics,
    "ordered-atomics": layering.ordered_atomics,
    "opening-comment": style.opening_comment,
    "comment-opening": style.comment_opening,
    "field-words": style.field_words,
    "unfinished": style.unfinished,
    "ownership": style.ownership,
    "bounded-json": style.bounded_json,
    "interrupted-calls": style.interrupted_calls,
    "no-sleep": style.no_sleep,
    "log-modules": style.log_modules,
    "machine-paths": style.machine_paths,
    "repeated-lines": repetition.repeated_lines,
    "file-length": size.file_length,
    "function-length": size.function_length,
    "links": links.resolve,
    "runbooks": links.runbooks,
    "pages": links.pages,
    "measured-figures": measured.figures,
    "mutant-texts": mutant_texts.occur_once,
    "mutant-wholeness": mutant_texts.are_whole,
    "mutant-counts": mutant_texts.are_counted,
}


def main(names):
    unknown = set(names) - set(RULES)
    if unknown:
        sys.exit("no such rule: %s (there are %s)" % (", ".join(sorted(unknown)), ", ".join(RULES)))
    tree, failed = Tree(), 0
    for name in names or RULES:
        offences = list(RULES[name](tree))
        failed += bool(offences)
        for o in offences:
            print("%s:%d: %s: %s" % (o.path, o.line, name, o.what))
    ran = len(names or RULES)
    if not names:
        print(figures.line(tree))
    print("tidy: %d rules passed, %d failed" % (ran - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
