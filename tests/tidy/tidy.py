#!/usr/bin/env python3
"""The house rules that no compiler checks: tidy.py [RULE...] prints each offender as FILE:LINE: RULE: what is wrong.

A rule is a function that takes the Tree and yields Offence; it joins by being listed in RULES.
"""
import sys

import layering
import links
import size
import text
from tree import Tree

RULES = {
    "include-direction": layering.include_direction,
    "one-door": layering.one_door,
    "named-atomics": layering.named_atomics,
    "opening-comment": text.opening_comment,
    "unfinished": text.unfinished,
    "ownership": text.ownership,
    "bounded-json": text.bounded_json,
    "no-sleep": text.no_sleep,
    "machine-paths": text.machine_paths,
    "file-length": size.file_length,
    "function-length": size.function_length,
    "links": links.resolve,
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
    print("tidy: %d rules passed, %d failed" % (ran - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
