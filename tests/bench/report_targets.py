"""The targets of the scenarios: bound, figure with one and two workers, and whether it is reached."""
from report_peers import FLOOR, PEERS, WORKERS
from tables import ABSENT, number, table

OPENED = "opened_100k"


def to_best(scenario, key="cpu"):
    return lambda peers, w: dict(peers.to_best(scenario, key)).get(w)


def to_peer(scenario, peer):
    return lambda peers, w: peers.ratio(scenario, "carpool", peer, w)


def figure(scenario, key):
    return lambda peers, w: peers.figure(scenario, "carpool", w, key)


def more_opened(scenario):
    """Connections that carpool opens per 100,000 requests beyond those of the peer that opens fewest."""
    def value(peers, w):
        ours, known = peers.figure(scenario, "carpool", w, OPENED), [peers.figure(scenario, p, w, OPENED) for p in PEERS]
        known = [k for k in known if k is not None]
        return None if ours is None or not known else max(0, ours - min(known))
    return value


def throughput_lost(peers, w):
    """The best peer's requests per second to ours."""
    ours, known = peers.figure("S7", "carpool", w, "rps"), [peers.figure("S7", p, w, "rps") for p in PEERS]
    known = [k for k in known if k]
    return max(known) / ours if ours and known else None


def most(key, scale=1):
    """The greatest median of any scenario."""
    def value(peers, w):
        known = [v for s in {s for s, _, _ in peers.cells} if (v := peers.figure(s, "carpool", w, key)) is not None]
        return max(known) / scale if known else None
    return value


# scenario, bound of the CPU time against the best peer (a number, or a function of the workers)
RATIOS = [("S1", lambda w: 0.85 if w == 1 else 0.90), *[(s, 0.90) for s in ("S2", "S3", "S4")], ("S5", 0.75), *[(s, 0.90) for s in ("S6", "S7", "S8", "S10")],
          ("S11", 0.75)]
AT_THE_RATE = [row for row in RATIOS if row[0] != "S10"]
TAILS = ("S1", "S3", "S4", "S7", "S8")
# what, bound, figure, digits
TARGETS = [*[("%s: CPU time against the best peer, saturation" % s, bound, to_best(s), 2) for s, bound in RATIOS],
           *[("%s: CPU time against the best peer, fixed rate" % s, bound, to_best(s, "cpu_rate"), 2) for s, bound in AT_THE_RATE],
           ("S1: CPU time against the byte relay, saturation", 1.05, to_peer("S1", FLOOR), 2),
           *[("%s: %s against the best peer's, fixed rate" % (s, name), 1.0, to_best(s, key), 2) for s in TAILS for name, key in (("p99", "p99"), ("p99.9", "p999"))],
           ("S3: connections opened, one per worker", lambda w: w, figure("S3", "opened"), 0),
           *[("%s: connections opened per 100,000 requests above the best peer's" % s, 0, more_opened(s), 0) for s in ("S1", "S2", "S4", "S6", "S8")],
           ("S7: most connections open", 32, figure("S7", "peak"), 0), ("S7: p99/p50 at saturation", 1.05, figure("S7", "tail"), 2),
           ("S7: throughput of the best peer against carpool's", 1.0, throughput_lost, 2),
           ("resident before clients connect, greatest of all scenarios, MiB", 10, most("rss_idle", 1024), 1),
           ("start to the first response, slowest of all scenarios, ms", 30, most("start_ms"), 0)]


def verdict(known, bound):
    if not known:
        return "not measured"
    missed = [w for w, value in known if round(value, 3) > bound(w)]
    if not missed:
        return "reached"
    return "**not reached**" if len(missed) == len(known) else "**not reached with %d worker%s**" % (missed[0], "s" * (missed[0] > 1))


def targets(peers):
    rows, missed, unknown = [], 0, 0
    for what, bound, value, digits in TARGETS:
        of = bound if callable(bound) else lambda w, bound=bound: bound
        values = [(w, value(peers, w)) for w in WORKERS]
        result = verdict([(w, v) for w, v in values if v is not None], of)
        missed += "not reached" in result
        unknown += result == "not measured"
        text = " / ".join(dict.fromkeys(number(of(w), digits) for w in WORKERS))
        rows.append([what, text, *[ABSENT if v is None else number(v, digits) for _, v in values], result])
    head = table(["target, at most", "bound", "1 worker", "2 workers", ""], rows)
    more = "; %d are not measured" % unknown if unknown else ""
    return "%d of %d targets are not reached%s.\n\n%s" % (missed, len(rows), more, head)
