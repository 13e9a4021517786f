"""Where the CPU time of a request is spent, beside the peers: the shares of perf's samples, applied to the CPU time of the same phase."""
import statistics

from report_peers import NAMES, PEERS, SCENARIOS
from tables import factor, number, pair, table

PHASES = {"sat": "saturation", "rate": "fixed rate", "burst": "all at once"}
CALLS = ("send", "recv", "epoll_wait")
TLS = ("libssl", "libcrypto")
PLACES = [*CALLS, "other calls", "interrupts", "own", "TLS", "libraries"]
# The names of the calls that perf counts, by the name of their place.
COUNTED = {"send": ("sendto", "sendmsg", "write", "writev"), "recv": ("recvfrom", "recvmsg", "read", "readv"), "epoll_wait": ("epoll_wait", "epoll_pwait")}


def column(place):
    """The column of a place of perf's samples."""
    if place in CALLS or place == "own":
        return place
    if place == "interrupts and faults":
        return "interrupts"
    if place.startswith(TLS):
        return "TLS"
    return "libraries" if ".so" in place or place.startswith("[") else "other calls"


def times(phase):
    """column -> CPU time in µs per request, in one phase of one round."""
    found = dict.fromkeys(PLACES, 0.0)
    for place, share in phase["shares"].items():
        found[column(place)] += share * phase["cpu"]
    return found


def calls(phase):
    """column -> system calls per request, in one phase of one round."""
    found = {place: sum(phase["calls"].get(name, 0) for name in names) for place, names in COUNTED.items()}
    return {**found, "other calls": sum(phase["calls"].values()) - sum(found.values())}


def medians(rounds):
    return {key: statistics.median(of[key] for of in rounds) for key in rounds[0]}


class Profiles:
    """The stored profiles, and those of the scenarios that have other peers."""

    def __init__(self, stored, *others):
        self.about = stored["conditions"]
        self.cells = {(row["scenario"], row["proxy"], row["workers"]): row["rounds"] for one in (stored, *others) for row in one["rows"]}

    def phases(self):
        """(scenario, phase, its words) of all scenarios."""
        for scenario in sorted({scenario for scenario, _, _ in self.cells}, key=lambda name: int(name[1:])):
            some = next(rounds for (of, _, _), rounds in self.cells.items() if of == scenario)[0]
            yield from ((scenario, phase, words) for phase, words in PHASES.items() if phase in some)

    def of(self, scenario, phase):
        """(proxy, workers, median CPU time, times, calls) of each cell, carpool first."""
        for proxy in NAMES:
            for workers in sorted(w for s, p, w in self.cells if (s, p) == (scenario, proxy)):
                rounds = [one[phase] for one in self.cells[scenario, proxy, workers]]
                yield proxy, workers, statistics.median(one["cpu"] for one in rounds), medians([times(one) for one in rounds]), medians([calls(one) for one in rounds])


def row(proxy, workers, cpu, spent, made):
    cells = [number(spent[place], 1) + (" (%.2f)" % made[place] if place in made else "") for place in PLACES]
    return ["%s, %d" % (NAMES[proxy], workers), number(cpu, 1), *cells]


def limits(profiles, scenario, phase):
    """The ratio to the best peer, and what it would be if carpool's own code and libraries took no time: [(ratio, limit)] by workers."""
    cells, found = list(profiles.of(scenario, phase)), []
    for workers in sorted({one[1] for one in cells}):
        best = min(cpu for proxy, w, cpu, _, _ in cells if w == workers and proxy in PEERS)
        cpu, spent = next((cpu, spent) for proxy, w, cpu, spent, _ in cells if w == workers and proxy == "carpool")
        found.append((cpu / best, (cpu - spent["own"] - spent["libraries"]) / best))
    return found


def own_code(profiles, scenario, phase, proxies):
    """The least time that one of these proxies spends in its own code and libraries, by workers."""
    cells = [one for one in profiles.of(scenario, phase) if one[0] in proxies]
    return [min(spent["own"] + spent["libraries"] for _, w, _, spent, _ in cells if w == workers) for workers in sorted({one[1] for one in cells})]


def summary(profiles):
    rows = []
    for scenario, phase, words in profiles.phases():
        of = limits(profiles, scenario, phase)
        rows.append(["%s, %s" % (scenario, words), " / ".join(factor(ratio) for ratio, _ in of), " / ".join(factor(limit) for _, limit in of),
                     pair(own_code(profiles, scenario, phase, ["carpool"]), 1), pair(own_code(profiles, scenario, phase, PEERS), 1)])
    return table(["phase", "ratio to the best peer", "without own code", "own code, carpool", "own code, least of the peers"], rows)


HEAD = ["proxy, workers", "CPU", "send", "recv", "epoll_wait", "other calls", "interrupts", "own code", "TLS", "other libraries"]

TEXT = """`tests/bench/profiles.py`: CPU time in µs per request, by the system call in which perf's samples fell (with the number of these calls per request), or by the
code that executed; medians of {rounds} rounds. "Own code" is the program with what is linked into it, "interrupts" include page faults. The kernel's part of a
`send` includes the receiving side of the loopback connection, up to the wake-up of its reader.

The next table is for 1 / 2 workers. "Without own code" is the ratio that would remain if the code of carpool and its libraries, except TLS, took no time: its system calls
alone, against all that the best peer of this run spends. Own code includes the other libraries."""

WHY = """A request through carpool is two calls of `recv` and two of `send`, the fewest that there can be. Code can gain what is above "without own code"; carpool's
own needs less than each peer's at saturation, and about as much as the best one's at the fixed rate, where instructions come from memory. Where that limit itself
is above a target, the target needs cheaper system calls ([ADR 22](decisions/0022-system-calls-are-not-batched.md)). `epoll_wait` grows as the rest
shrinks: a proxy that is done sooner finds fewer events at a time."""


def section(profiles):
    parts = [TEXT.format(rounds=profiles.about["rounds"]), summary(profiles), WHY]
    for scenario, phase, words in profiles.phases():
        rows = [row(*one) for one in profiles.of(scenario, phase)]
        parts.append("%s, %s, %s:\n\n%s" % (scenario, SCENARIOS[scenario], words, table(HEAD, rows)))
    return "\n\n".join(parts)
