"""The scenarios beside the peers: one table each, and the ratios of all."""
import statistics

from tables import ABSENT, factor, number, pair, table

WORKERS = (1, 2)
PEERS = {"haproxy": "HAProxy", "nginx": "nginx", "nghttpx": "nghttpx", "envoy": "Envoy", "squid": "Squid"}
FORWARD = "squid"  # the only peer that makes tunnels; measured in S11 alone
FLOOR = "relay"    # no peer: it reads and writes bytes, and nothing else
NAMES = {"carpool": "carpool", **PEERS, FLOOR: "byte relay"}
SCENARIOS = {"S1": "plain HTTP/1.1, 64 clients, 1 KiB", "S2": "HTTP/1.1 over TLS to the origin, 64 clients, 1 KiB",
             "S3": "HTTP/2 over TLS to the origin, 64 clients, 1 KiB", "S4": "HTTP/2 from 8 clients with 8 streams each, 1 KiB",
             "S5": "bodies of 1 MiB, 16 clients", "S6": "a new client connection per request, 64 at once, 1 KiB",
             "S7": "1,000 clients, at most 32 upstream connections, origin 5 ms", "S8": "50 origins at random, 64 clients, 1 KiB",
             "S9": "memory of idle client connections", "S10": "bursts of 200 requests every 100 ms",
             "S11": "tunnels by CONNECT, 16 clients, bodies of 1 MiB"}
SHORT = {"S1": "plain HTTP, kept alive", "S2": "TLS to the origin", "S3": "HTTP/2 to the origin", "S4": "HTTP/2 from the application",
         "S5": "bodies of 1 MiB", "S6": "a client connection per request", "S7": "a thousand clients at the cap", "S8": "fifty origins",
         "S10": "bursts"}


class Peers:
    """The stored results, and those of scenarios with a run of their own, which replace the others'; a figure is the median over the
    rounds, None where there is none."""

    def __init__(self, stored, *own):
        self.about, self.rates, self.cells = stored["conditions"], {}, {}
        for results in (stored, *own):
            again = {r["scenario"] for r in results["rows"]}
            self.cells = {key: rounds for key, rounds in self.cells.items() if key[0] not in again}
            self.rates.update(results["rates"])
            self.cells.update({(r["scenario"], r["proxy"], r["workers"]): r["rounds"] for r in results["rows"]})

    def values(self, scenario, proxy, workers, key):
        return [r.get(key) for r in self.cells.get((scenario, proxy, workers), ())]

    def figure(self, scenario, proxy, workers, key):
        known = [v for v in self.values(scenario, proxy, workers, key) if v is not None]
        return statistics.median(known) if known else None

    def proxies(self, scenario):
        return [p for p in NAMES if any((scenario, p, w) in self.cells for w in WORKERS)]

    def unable(self, scenario, proxy):
        return not any(self.cells.get((scenario, proxy, w)) for w in WORKERS)

    def best(self, scenario, workers, key="cpu"):
        """Returns the peer with the lowest figure; None if none was measured."""
        of = {p: self.figure(scenario, p, workers, key) for p in PEERS}
        return min((p for p in of if of[p]), key=of.get, default=None)

    def ratio(self, scenario, proxy, other, workers, key="cpu"):
        one, two = self.figure(scenario, proxy, workers, key), self.figure(scenario, other, workers, key) if other else None
        return one / two if one is not None and two else None

    def spread(self, scenario, proxy, other, workers, key="cpu"):
        """The least and the greatest ratio of a round; None with fewer than two rounds."""
        rounds = zip(self.values(scenario, proxy, workers, key), self.values(scenario, other, workers, key)) if other else ()
        ratios = [one / two for one, two in rounds if one is not None and two]
        return (min(ratios), max(ratios)) if len(ratios) > 1 else None

    def to_best(self, scenario, key="cpu"):
        """((workers, carpool's ratio to the best peer), ...) as far as known."""
        ratios = [(w, self.ratio(scenario, "carpool", self.best(scenario, w, key), w, key)) for w in WORKERS]
        return [(w, ratio) for w, ratio in ratios if ratio is not None]

    def failed(self):
        return sum(r.get("failed", 0) for rounds in self.cells.values() for r in rounds)


def ratio_text(peers, scenario, proxy, key):
    parts = []
    for w in WORKERS:
        other = peers.best(scenario, w, key)
        around = peers.spread(scenario, proxy, other, w, key)
        parts.append(factor(peers.ratio(scenario, proxy, other, w, key)) + (" (%s–%s)" % tuple(map(factor, around)) if around and proxy != other else ""))
    return ABSENT if parts == [ABSENT] * len(parts) else " / ".join(parts)


# heading, key, digits; one pair of figures each
LOAD = [("CPU, saturation", "cpu", None), ("CPU, fixed rate", "cpu_rate", None), ("p50 at the rate", "p50", 0), ("p99 at the rate", "p99", 0),
        ("p99.9 at the rate", "p999", 0),
        ("req/s", "rps", 0), ("opened", "opened", 0), ("opened per 100,000", "opened_100k", 0)]
CAP = [("most open", "peak", 0), ("p50 at saturation", "sat_p50", 0), ("p99/p50", "tail", 2)]
BURST = [("CPU", "cpu", None), ("p50", "sat_p50", 0), ("p99", "sat_p99", 0), ("opened", "opened", 0), ("opened per burst", "opened_burst", 2)]


def of_load(peers, scenario):
    columns = BURST if scenario == "S10" else LOAD + (CAP if scenario == "S7" else [])
    ratios = [("ratio", "cpu")] if scenario == "S10" else [("ratio, saturation", "cpu"), ("ratio, fixed rate", "cpu_rate")]
    rows = []
    for proxy in peers.proxies(scenario):
        if peers.unable(scenario, proxy):
            rows.append([NAMES[proxy], "unable"] + [""] * (len(columns) + len(ratios) - 1))
            continue
        cells = [pair((peers.figure(scenario, proxy, w, key) for w in WORKERS), digits) for _, key, digits in columns]
        rows.append([NAMES[proxy], *[ratio_text(peers, scenario, proxy, key) for _, key in ratios], *cells])
    return table(["proxy", *[name for name, _ in ratios], *[name for name, _, _ in columns]], rows)


def of_idle(peers):
    columns = [("resident before, MiB", "rss_idle", 1024), ("with 10,000 clients, MiB", "rss_10000", 1024),
               ("KiB per client of 1,000", "kib_client_1000", 1), ("of 10,000", "kib_client_10000", 1), ("first response, ms", "start_ms", 1)]
    rows = []
    for proxy in peers.proxies("S9"):
        cells = [[peers.figure("S9", proxy, w, key) for w in WORKERS] for _, key, _ in columns]
        rows.append([NAMES[proxy], *[pair([v / c[2] if v is not None else None for v in values], 1) for c, values in zip(columns, cells)]])
    return table(["proxy", *[name for name, _, _ in columns]], rows)


def sections(peers):
    for scenario, title in SCENARIOS.items():
        rate = peers.rates.get(scenario)
        more = "; fixed rate %s per second" % number(rate, 0) if rate and scenario not in ("S9", "S10") else ""
        body = "Not measured." if not peers.proxies(scenario) else of_idle(peers) if scenario == "S9" else of_load(peers, scenario)
        yield "### %s: %s%s\n\n%s" % (scenario, title, more, body)


def extremes(peers):
    """One sentence: the best and the worst ratio to the best peer at saturation."""
    every = [(ratio, SHORT[s], w) for s in SHORT for w, ratio in peers.to_best(s)]
    text = ["%.2f (%s, %d worker%s)" % (ratio, name, w, "s" * (w > 1)) for ratio, name, w in (min(every), max(every))]
    return "Against the best peer of each scenario, the worst ratio is %s and the best is %s." % (text[1], text[0])


def summary(peers):
    """README's table: carpool's CPU time per request against each peer."""
    reverse = [peer for peer in PEERS if peer != FORWARD]
    heads = ["%s %s" % (PEERS[peer], peers.about["versions"].get(PEERS[peer], "")) for peer in reverse]
    rows = []
    for scenario, name in SHORT.items():
        cells = []
        for peer in reverse:
            ratios = [peers.ratio(scenario, "carpool", peer, w) for w in WORKERS]
            absent = "unable" if (scenario, peer, 1) in peers.cells and peers.unable(scenario, peer) else ABSENT
            cells.append(" / ".join(map(factor, ratios)) if any(ratios) else absent)
        rows.append([name, *cells])
    return table(["CPU per request, 1 / 2 workers", *["against " + head.strip() for head in heads]], rows, 4) + "\n\n" + extremes(peers)
