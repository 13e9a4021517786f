"""Unix sockets in place of TCP: the CPU time of a request in each form as a ratio to TCP on both sides."""
import statistics

from report_targets import verdict
from tables import factor, number, pair, table

TCP = "tcp"
# form: (its words, the bound of its ratio or None)
FORMS = {TCP: ("TCP on both sides", None), "client": ("Unix socket of the clients", 0.85), "origin": ("Unix socket of the origin", None),
         "both": ("Unix sockets on both sides", 0.55)}


class Unix:
    def __init__(self, stored):
        self.about, self.requests = stored["conditions"], stored["requests"]
        self.rounds = {row["workers"]: row["rounds"] for row in stored["rows"]}

    def workers(self):
        return sorted(self.rounds)

    def figure(self, form, workers):
        return statistics.median(of[form] for of in self.rounds[workers])

    def ratio(self, form, workers):
        return self.figure(form, workers) / self.figure(TCP, workers)

    def spread(self, form, workers):
        """The least and the greatest ratio of a round."""
        ratios = [of[form] / of[TCP] for of in self.rounds[workers]]
        return min(ratios), max(ratios)


def _ratios(unix, form):
    return " / ".join("%s (%s–%s)" % (factor(unix.ratio(form, w)), *map(factor, unix.spread(form, w))) for w in unix.workers())


def forms(unix):
    rows = []
    for form, (words, bound) in FORMS.items():
        known = [(w, unix.ratio(form, w)) for w in unix.workers()]
        rows.append([words, pair((unix.figure(form, w) for w in unix.workers()), 1), _ratios(unix, form) if form != TCP else "1.00",
                     number(bound, 2), verdict(known, lambda _, bound=bound: bound) if bound else ""])
    return table(["form", "CPU time", "ratio", "at most", ""], rows)


TEXT = """`tests/bench/unix_cost.py`: the load of S1 at saturation ({clients} from h2load), through one carpool that has a listener for each form. The forms run in
turns, {requests} requests each. Figures are for 1 / 2 workers: CPU time in µs per request, and its ratio to the form with TCP on both sides in the same run,
with the range over the rounds."""


WHY = """A request is two calls of `recv` and two of `send` in each form (strace), and `epoll_wait` 0.04. The rest is carpool's own
code, which a kind of socket does not change (5.0 of 13.8 µs with TCP on both sides, 3.8 of 7.6 µs with Unix sockets on both, medians of five rounds by
`/proc/PID/stat`), and with one Unix side the two calls of the other side."""


def section(unix):
    return TEXT.format(clients="64 kept-alive clients", requests=number(unix.requests, 0)) + "\n\n" + forms(unix) + "\n\n" + WHY
