"""Whose time the slowest requests at the fixed rate take: waits for a processor and turns of the proxy, the origin and the client."""
import statistics

from report_peers import NAMES, SCENARIOS
from tables import ABSENT, number, table

WORDS = {**NAMES, "direct": "no proxy"}
HEAD = ["proxy, workers", "p50", "p99", "p99.9", "proxy waits, p99.9", "proxy runs, p99.9", "long: proxy waits", "proxy runs", "origin", "client"]


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
                own = [self.figure(cell, "proxy", of, share) for share in ("p999", "long") for of in ("waited", "ran")]
                others = [sum(self.figure(cell, party, of, "long") for of in ("waited", "ran")) for party in ("origin", "client")]
                latencies = [self.figure(cell, share) for share in ("p50", "p99", "p999")]
                name = WORDS[proxy] if proxy == "direct" else "%s, %d" % (WORDS[proxy], workers)
                yield [name, *[ABSENT if value is None else number(value, 0) for value in latencies + own + others]]


TEXT = """`tests/bench/tails.py`: the fixed rate again, while perf records when the kernel wakes, runs and suspends each thread; all in µs, medians of {rounds} rounds. A
turn of a thread begins when it is woken and ends when it waits for events again. It "waits" while the thread is ready but both processors execute others, and it "runs"
otherwise, also while the host does not execute this machine. A request takes two turns of the proxy, one of the origin and two of the client. "Long" is the time, per second,
in waits and runs of a millisecond and more: at 2,000 requests per second, 1,000 µs of them delay about two requests, a thousandth, so they make p99.9."""


WHY = """The milliseconds of p99.9 are the machine's. Without a proxy p99.9 is about as high as with one, and from round to round it is 1 to 6 ms for each of them. What is long
is spread over all parties, also over the client, which computes nothing: the host executes something else then. Carpool's turns at p99.9, 0.2 to 1.2 ms, have the length of the
peers'. So a ratio of two p99.9 says little here, and one to the lowest of four medians even less. In S4 without a proxy one request in a thousand takes 40 ms with the origin's
own HTTP/2, as through the byte relay."""


def section(tails):
    tables = ["%s, %s:\n\n%s" % (scenario, SCENARIOS[scenario], table(HEAD, list(tails.rows(scenario)))) for scenario in tails.scenarios()]
    return "\n\n".join([TEXT.format(rounds=tails.about["rounds"]), WHY, *tables])
