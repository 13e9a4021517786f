"""The instructions of a request by the number of origins and of idle clients, and their growth."""
from tables import number, table

GROWTH = 1.10


class Scale:
    def __init__(self, stored):
        self.about, self.active, self.rows = stored["conditions"], stored["active"], stored["rows"]

    def base(self):
        """One origin, no idle client."""
        return next(row for row in self.rows if (row["origins"], row["idle"]) == (1, 0))

    def growth(self, row):
        """The greater growth: of the program's own instructions, or of all outside the kernel."""
        return max(row[of] / self.base()[of] for of in ("program", "all"))


def _line(scale, row):
    growth, figures = scale.growth(row), [number(row[of], 0) for of in ("origins", "idle", "program", "all")]
    if row is scale.base():
        return [*figures, "1.00", "", ""]
    return [*figures, number(growth, 2), number(GROWTH, 2), "reached" if round(growth, 3) <= GROWTH else "**not reached**"]


TEXT = """`tests/bench/scale_cost.py`: one worker, {active} clients that send requests one after the other, the next one when the response to the last has
arrived, to the origins in turn; the idle clients have sent one request each. callgrind counts instructions outside the kernel, of carpool alone and with
its libraries, without the work of timers. "Growth" is that against one origin and no idle client, of the two counts the greater one."""


WHY = """Two things cost more with more origins. A loop keeps the layouts of 2,048 field sections ([ADR 24](decisions/0024-known-fields-are-not-parsed-again.md));
requests to different origins have different sections, because `Host` differs, and where more sections than that are in use, llhttp parses each request's fields
again, in 2,000 instructions. A connection that was idle for some milliseconds is checked by a `recv` before its use. Nothing else in a request's way depends on
the number of origins or of clients."""


def section(scale):
    return "\n\n".join([TEXT.format(active=scale.active), instructions(scale), WHY])


def instructions(scale):
    head = ["origins in rotation", "idle clients", "instructions of the program", "with libraries", "growth", "at most", ""]
    return table(head, [_line(scale, row) for row in scale.rows], 0)
