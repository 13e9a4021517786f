"""The shape of the tree in one line: what the rules bound, as figures."""
import lizard

import graph
import layering


def percentile(values, hundredths):
    values = sorted(values)
    return values[min(len(values) - 1, len(values) * hundredths // 100)]


def line(tree):
    product = tree.product()
    includes = graph.includes(tree)
    reached = [len(graph.reached(includes, p)) for p in product if p.startswith("proxy/") and p.endswith(".cc")]
    functions = [f.length for p in product for f in lizard.analyze_file(str(tree.root / p)).function_list]
    lengths = [len(tree.lines(p)) for p in product]
    return ("figures: %d files, %d lines, median %d; functions p90 %d, longest %d; arrows up %d, cycles %d (%d of headers, %d listed groups of units); files in proxy/ %d; "
            "headers reached in proxy/ p90 %d" % (
                len(product), sum(lengths), percentile(lengths, 50), percentile(functions, 90), max(functions),
                len(list(layering.include_direction(tree))), len(list(layering.include_cycle(tree))), len(graph.cycles(includes, str)), len(graph.cycles(includes)),
                sum(p.startswith("proxy/") and p.count("/") == 1 for p in product), percentile(reached, 90)))
