"""Whose time the slowest requests at the fixed rate take: waits for a processor and turns of the proxy, the origin and the client."""
import statistics

from report_peers import NAMES, SCENARIOS
from tables import ABSENT, number, table

WORDS = {**NAMES, "direct": "no proxy"}
HEAD = ["proxy, workers", "p50", "p99", "p99.9", "proxy waits, p99", "p99.9", "proxy runs, p99", "p99.9", "origin waits, p99.9", "client waits, p99.9"]


class Tails:
    def __init__(self, stored):
        self.about = stored["conditions"]
        self.cells = {(row["scenario"], row["proxy"], row["workers"]): row["rounds"] for row in stored["rows"]}

    def scenarios(self):
        return list(dict.fromkeys(scenario for scenario, _, _ in self.cells))

    def figure(self, cell, *path):
        """The median over the rounds; None for a party that is not there."""
        values = []
        for value in self.cells[cell]:
            for key in path:
                value = value and value.get(key)
            values.append(value)
        known = [value for value in values if value is not None]
        return statistics.median(known) if known else None

    def rows(self, scenario):
        for proxy in WORDS:
            for workers in sorted(w for s, p, w in self.cells if (s, p) == (scenario, proxy)):
                cell = (scenario, proxy, workers)
                own = [self.figure(cell, "proxy", of, share) for of in ("waited", "ran") for share in ("p99", "p999")]
                others = [self.figure(cell, party, "waited", "p999") for party in ("origin", "client")]
                latencies = [self.figure(cell, share) for share in ("p50", "p99", "p999")]
                name = WORDS[proxy] if proxy == "direct" else "%s, %d" % (WORDS[proxy], workers)
                yield [name, *[ABSENT if value is None else number(value, 0) for value in latencies + own + others]]


TEXT = """`tests/bench/tails.py`: the fixed rate again, while perf records when the kernel wakes, runs and suspends each thread; all in µs, medians of {rounds} rounds. A
turn of a thread begins when it is woken and ends when it waits for events again. "Waits" is the part of a turn in which the thread is ready but both processors execute
others, "runs" the part in which it executes. A request takes two turns of the proxy, one of the origin and two of the client."""


def section(tails, why):
    tables = ["%s, %s:\n\n%s" % (scenario, SCENARIOS[scenario], table(HEAD, list(tails.rows(scenario)))) for scenario in tails.scenarios()]
    return "\n\n".join([TEXT.format(rounds=tails.about["rounds"]), why, *tables])
