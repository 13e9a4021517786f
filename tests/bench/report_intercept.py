"""The cost of interception: the table of targets, and of each form's CPU time."""
import statistics

from tables import number, table

HALF = {"part": "resident memory of a client that stops within its first message, KiB",
        "whole": "resident memory of a client that stops after its first message, KiB"}


class Intercept:
    def __init__(self, stored):
        self.about, self.rounds, self.kib, self.half = stored["conditions"], stored["rows"], stored["kib"], stored.get("half")

    def over(self, of):
        """Median and range over the rounds."""
        values = [of(row) for row in self.rounds]
        return statistics.median(values), min(values), max(values)

    def figures(self):
        """(what, bound, median, least, greatest)."""
        least = {name: self.over(lambda row, name=name: row[name])[1] for name in ("request", "intercepted")}
        yield "CPU time of a request against plain text, at saturation, the least of all rounds", 1.25, *[least["intercepted"] / least["request"]] * 3
        rate = {name: self.over(lambda row, name=name: row[name])[0] for name in ("request_rate", "intercepted_rate")}
        yield "CPU time of a request against plain text, 2,000 per second", 1.25, *[rate["intercepted_rate"] / rate["request_rate"]] * 3
        yield "CPU time of a full handshake, µs", 450, *self.over(lambda row: row["full"] - row["connect"])
        yield "CPU time of a resumed handshake, µs", 150, *self.over(lambda row: row["resumed"] - row["connect"])
        yield "resident memory of an idle client, KiB", 16, self.kib, self.kib, self.kib
        for way, what in HALF.items() if self.half else ():
            yield what, 8, self.half[way], self.half[way], self.half[way]


def _line(what, bound, value, least, greatest):
    digits = 2 if bound < 2 else 0 if bound > 100 else 1
    span = "" if least == greatest else " (%s–%s)" % (number(least, digits), number(greatest, digits))
    return [what, number(bound, 2 if bound < 2 else 0), number(value, digits) + span, "reached" if value <= bound else "**not reached**"]


def targets(intercept):
    return table(["target, at most", "bound", "measured", ""], [_line(*figure) for figure in intercept.figures()])


def forms(intercept):
    words = {"request": "a request in plain text, at saturation", "intercepted": "a request inside an intercepted CONNECT, at saturation",
             "request_rate": "a request in plain text, 2,000 per second", "intercepted_rate": "a request inside an intercepted CONNECT, 2,000 per second",
             "connect": "a connection with CONNECT alone",
             "full": "with a full handshake", "resumed": "with a resumed handshake"}
    rows = []
    for name, text in words.items():
        middle, least, _ = intercept.over(lambda row, name=name: row[name])
        rows.append([text, number(middle, 1), number(least, 1)])
    return table(["form", "CPU time, µs", "least"], rows)
