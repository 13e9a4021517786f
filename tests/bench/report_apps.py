"""Applications whose https calls go through the proxy: the whole table, and the lines that the README opens with."""
from tables import ABSENT, number, table

README_TRIP = 30
DIRECT, OURS = "direct", ("direct", "CONNECT through carpool", "intercepted by carpool")
HEAD = ["application", "way", "p50, ms", "p99, ms", "connections", "full handshakes", "application's CPU, ms", "proxy's CPU, ms"]


class Applications:
    def __init__(self, stored):
        self.about, self.rows = stored["conditions"], stored["rows"]

    def failed(self):
        return sum(row["failed"] for row in self.rows)

    def calls(self):
        return max(row["calls"] for row in self.rows)

    def trips(self):
        return sorted({row["trip"] for row in self.rows})

    def at(self, trip):
        return [row for row in self.rows if row["trip"] == trip]


def _ms(value):
    return ABSENT if value is None else number(value, 1)


def _line(row):
    return [row["application"], row["mode"], _ms(row["p50"]), _ms(row["p99"]), str(row["connections"]), str(row["handshakes"]),
            number(row["application_ms"], 2), number(row["between_ms"], 2) if row["mode"] != DIRECT else ABSENT]


def sections(applications):
    for trip in applications.trips():
        yield "### Round trip of %d ms\n\n%s" % (trip, table(HEAD, [_line(row) for row in applications.at(trip)], 2))


def target(applications):
    """What interception is worth at the README's round trip: the median of a call against the direct one."""
    parts = []
    for name in dict.fromkeys(row["application"] for row in applications.rows):
        found = {row["mode"]: row for row in applications.at(README_TRIP) if row["application"] == name}
        ours, direct = found.get(OURS[2]), found.get(DIRECT)
        if ours and direct and ours["p50"] and direct["p50"]:
            parts.append("%s: %.2f round trips, %d %% of direct" % (name, ours["p50"] / README_TRIP, round(100 * ours["p50"] / direct["p50"])))
    return "; ".join(parts)


def summary(applications):
    lines = [_line(row)[:6] for row in applications.at(README_TRIP) if row["mode"] in OURS]
    return table(HEAD[:6], lines, 2)
