"""The pool and the execution strategies beside the Java originals, and the cost of the pool's operations by size."""
from tables import ABSENT, factor, number, pair, table

THREADS = (1, 2, 4, 12)
STRATEGIES = ("FIRST", "THREAD_ID", "RANDOM", "ROUND_ROBIN")
TITLES = {"DEQUE": "mutex + deque", "StateMachine": "state machine", "LENDER": "lender"}


class Pool:
    """The medians of pool.json by row, size, multiplex and threads."""

    def __init__(self, stored):
        self.about = stored["conditions"]
        self.rows = {(r["row"], r["size"], r["multiplex"], r["threads"]): r for r in stored["rows"]}

    def get(self, key, row, size=12, multiplex=1, threads=1):
        return self.rows.get((row, size, multiplex, threads), {}).get(key)

    def ratio(self, *which):
        ours, theirs = self.get("cpu_ns", *which), self.get("java_cpu_ns", *which)
        return ours / theirs if ours is not None and theirs else None


def title(row):
    base = row.removesuffix("_TIGHT")
    return TITLES.get(base, base) + (", no work" if base != row else "")


def beside_java(pool):
    order = [s + tail for s in (*STRATEGIES, "DEQUE") for tail in ("", "_TIGHT")] + ["StateMachine"]
    rows = []
    for name, size, multiplex in sorted({k[:3] for k in pool.rows if k[0] in order}, key=lambda k: (order.index(k[0]), k)):
        which = [(name, size, multiplex, t) for t in THREADS]
        columns = [pair((pool.get(key, *w) for w in which), 0) for key in ("cpu_ns", "java_cpu_ns")]
        ratios = " / ".join(factor(pool.ratio(*w)) for w in which)
        rows.append([title(name), "%d, %d" % (size, multiplex), *columns, ratios, pair(pool.get("mops_ratio", *w) for w in which)])
    return table(["row", "size, multiplex", "ours CPU-ns", "theirs", "ratio of CPU", "ratio of operations a second"], rows)


def jetty_rows(pool):
    """Rows that Jetty's pool has: (ratio of CPU, ratio of operations, key)."""
    return [(pool.ratio(*k), r["mops_ratio"], k) for k, r in pool.rows.items() if k[0].removesuffix("_TIGHT") in STRATEGIES and "mops_ratio" in r]


def against(pool, row, other, threads):
    ours, theirs = pool.get("cpu_ns", row, threads=threads), pool.get("cpu_ns", other, threads=threads)
    return ours / theirs if ours is not None and theirs else None


def growth(pool, row, threads):
    small, large = pool.get("cpu_ns", row, 12, 1, threads), pool.get("cpu_ns", row, 1000, 1, threads)
    return large / small if small and large else None


def verdict(missed, values):
    return "reached" if not missed else "**not reached**" if missed == len(values) else "**not reached** in %d of %d rows" % (missed, len(values))


def at_most(what, bound, values):
    """A row of the targets: every value is to be at most the bound."""
    values = [v for v in values if v is not None]
    if not values:
        return [what, bound, ABSENT, ABSENT, "not measured"]
    limit = float(bound.split()[-1])
    return [what, bound, *[number(v, 2 if "." in bound else 1) for v in (max(values), min(values))], verdict(sum(v > limit for v in values), values)]


def at_least(what, bound, values):
    values = [v for v in values if v is not None]
    if not values:
        return [what, bound, ABSENT, ABSENT, "not measured"]
    limit = float(bound.split()[-1])
    return [what, bound, number(min(values), 1), number(max(values), 1), verdict(sum(v < limit for v in values), values)]


def targets(pool):
    jetty = jetty_rows(pool)
    contended = [ops for _, ops, k in jetty if k[3] > 1 and k[0].removesuffix("_TIGHT") in ("FIRST", "ROUND_ROBIN")]
    light = {size: [pool.get("mops_ratio", "StateMachine", size, 1, t) for t in THREADS] for size in (12, 100)}
    rows = [at_most("CPU time against Jetty, every row", "at most 1.00", [cpu for cpu, _, _ in jetty]),
            at_least("operations against Jetty, FIRST and ROUND_ROBIN with more than one thread", "at least 1.5", contended),
            at_most("CPU-ns of the default, THREAD_ID, 12 entries, 2 threads", "at most 34", [pool.get("cpu_ns", "THREAD_ID", threads=2)]),
            at_most("the same of the other strategies", "at most 34", [pool.get("cpu_ns", s, threads=2) for s in STRATEGIES if s != "THREAD_ID"]),
            at_least("operations against light-4j, 12 entries", "at least 20", light[12]),
            at_least("operations against light-4j, 100 entries", "at least 100", light[100]),
            at_most("1,000 entries against 12, one and two threads", "at most 1.20", [growth(pool, s, t) for s in STRATEGIES for t in (1, 2)]),
            at_most("CPU time of the default against mutex + deque", "at most 1.00", [against(pool, "THREAD_ID", "DEQUE", t) for t in THREADS])]
    return table(["target", "bound", "worst", "best", ""], rows, 2)


def position(pool):
    """One entry of 1,000 is idle: the cost by its place."""
    rows = []
    for entry, place in (("ENTRY_0", "the first"), ("ENTRY_999", "the last")):
        for tail, how in (("", "defaults"), ("_SEARCHED", "without the hint")):
            rows.append(["%s, %s" % (place, how), *[number(pool.get("cpu_ns", entry + tail + tight, 1000), 1) for tight in ("", "_TIGHT")]])
    return table(["idle entry", "with the work", "nothing between"], rows)


# the claim, the factor, (row, multiplex), (than row, multiplex); twelve threads, twelve entries
CLAIMS = [("locked stack replaced", 5, ("FIRST", 1), ("DEQUE", 1)), ("counted stack replaced", 3, ("FIRST", 8), ("COUNTED_STACK", 8)),
          ("locked queue replaced", 10, ("ROUND_ROBIN", 1), ("QUEUE", 1)), ("hint, duplex", 4, ("THREAD_ID", 1), ("FIRST", 1)),
          ("hint, multiplexed", 10, ("THREAD_ID", 8), ("FIRST", 8))]


def experiment(pool):
    """The five factors of the original experiment, by throughput; a tenth less still counts."""
    rows = []
    for claim, wanted, one, other in CLAIMS:
        ours, theirs = (pool.get("mops", name, 12, multiplex, 12) for name, multiplex in (one, other))
        got = ours / theirs if ours and theirs else None
        verdict = "not measured" if got is None else "reproduced" if got >= 0.9 * wanted else "not reproduced"
        rows.append([claim, "×%d" % wanted, number(ours, 1), number(theirs, 1), number(got, 2), verdict])
    return table(["claim", "factor", "ours M/s", "against M/s", "factor here", ""], rows)


CURVES = {"places": ["places", "borrow and release, µs", "join the line and give up, µs", "hand on, µs", "evict, µs", "snapshot, ms", "sweep, ms",
                     "reconnect, ms", "shrink to 1, ms"],
          "origins": ["origins", "hand on, µs", "the same while another one lacks a slot, µs", "borrow where it takes another's slot, with its dial, µs"]}


def curves(stored):
    return "\n\n".join(table(head, [[number(r[kind], 0), *[number(v, 2) for v in r["least"]]] for r in stored["rows"] if kind in r])
                       for kind, head in CURVES.items())


def execution(stored):
    """The table of docs/execution.md: CPU time per task, ours and Jetty's."""
    works = {"20_tokens": "20 tokens: carpool / Jetty", "1000_tokens": "1000 tokens (1.1 µs)", "sleep_50us": "sleep 50 µs"}
    cells = {(r["mode"], r["says"], r["work"]): pair((r["cpu_ns"], r.get("java_cpu_ns")), 0) for r in stored["rows"]}
    order = {"PC": 0, "EPC": 1, "PEC": 2, "ADAPTIVE": 3}, {"blocking": 0, "either": 1, "non_blocking": 2}
    kinds = sorted({k[:2] for k in cells}, key=lambda k: (order[0][k[0]], order[1][k[1]]))
    rows = [["%s, %s" % (mode, says.replace("_", "-")), *[cells.get((mode, says, w), ABSENT) for w in works]] for mode, says in kinds]
    return table(["mode, task says", *works.values()], rows)
