"""The graph of includes: what a file reaches, and the cycles among units (x.h and x.cc are one unit)."""
import re

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)


def includes(tree):
    """path -> the files of the product that it includes."""
    known = set(tree.product())
    return {path: [h for h in INCLUDE.findall("\n".join(tree.lines(path))) if h in known] for path in sorted(known)}


def reached(graph, path):
    seen, todo = set(), [path]
    while todo:
        for header in graph.get(todo.pop(), ()):
            if header not in seen:
                seen.add(header)
                todo.append(header)
    return seen


def unit(path):
    return path.rsplit(".", 1)[0]


def cycles(graph, node=unit):
    """Sets of units that include each other, each set once (Tarjan's components of more than one unit); node=str: of files."""
    edges = {}
    for path, headers in graph.items():
        edges.setdefault(node(path), set()).update(node(h) for h in headers if node(h) != node(path))
    index, low, stack, found = {}, {}, [], []

    def visit(one):
        index[one] = low[one] = len(index)
        stack.append(one)
        for other in sorted(edges.get(one, ())):
            if other not in index:
                visit(other)
                low[one] = min(low[one], low[other])
            elif other in stack:
                low[one] = min(low[one], index[other])
        if low[one] == index[one]:
            component = set(stack[stack.index(one):])
            del stack[stack.index(one):]
            if len(component) > 1:
                found.append(component)
    for one in sorted(edges):
        if one not in index:
            visit(one)
    return found
