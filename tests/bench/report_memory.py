"""Resident memory: at rest, for a client, for an origin."""
from report_targets import verdict
from tables import number, pair, table

# key: (what, unit, bound)
TARGETS = {"rest": ("at rest, with a bundle of certificate authorities", "MiB", 10), "client": ("an idle client, of {clients}", "KiB", 0.6),
           "plain": ("an origin in plain text, of {origins}, with its idle connection", "KiB", 6),
           "plain_closed": ("the same once the pool has closed it", "KiB", 6),
           "tls": ("an origin over TLS, of {origins}, with its idle connection", "KiB", 6),
           "tls_closed": ("the same once the pool has closed it", "KiB", 6)}


class Memory:
    def __init__(self, stored):
        self.about, self.rows = stored["conditions"], {row["workers"]: row for row in stored["rows"]}
        self.counts = {name: number(stored[name], 0) for name in ("clients", "origins")}

    def workers(self):
        return sorted(self.rows)

    def figures(self, key, of):
        """(workers, figure); `rest` is of the process, not a growth."""
        found = [(w, self.rows[w][key]) for w in self.workers()]
        return [(w, value[of] if isinstance(value, dict) else value) for w, value in found]


def _line(memory, key):
    what, unit, bound = TARGETS[key]
    resident, digits = memory.figures(key, "resident"), 2 if bound < 1 else 1
    allocated = pair((value for _, value in memory.figures(key, "allocated")), digits) if key != "rest" else ""
    return ["%s, %s" % (what.format(**memory.counts), unit), number(bound, digits), pair((value for _, value in resident), digits), allocated,
            verdict(resident, lambda _: bound)]


def targets(memory):
    return table(["memory", "at most", "resident", "allocated", ""], [_line(memory, key) for key in TARGETS])


TEXT = """`tests/bench/scale_memory.py`: the growth of resident memory for each client and each origin, for 1 / 2 workers, once it has come to rest; and the growth
of the blocks that malloc has allocated, resident or not. An origin is used once, by one loop."""


WHY = """Bytes of an origin in plain text (valgrind's dhat): its pool 3,264, the pool's maps and first four entries 1,650, the record of its borrows 350, its
settings 744, its addresses 490, its connection 650, and its label and its places in nine tables 1,000. Of each 1,000 origins 256 also have a ring of 5,040 bytes
for the plots of the page, and 200 a block of 1,472 bytes for the metrics of each worker that used them: 1.6 KiB for an average one. All but the
connection remains until the pool ends (`pool.total.origin_idle_timeout`). Of the pool the largest parts are what it learns of the origin's idle timeout (952 bytes)
and its counters by cause (392).

Over TLS OpenSSL allocates 38 KiB for an open connection (7.6 KiB are one object), of which 12 KiB are not touched and not resident. A closed one leaves its two
session tickets, each with the origin's certificate: 9 KiB allocated. Its freed blocks lie between those that remain, so that not all of their pages return to
the system; the next connections use them."""


def section(memory):
    return "\n\n".join([TEXT, targets(memory), WHY])
