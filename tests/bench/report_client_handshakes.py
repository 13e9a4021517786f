"""What the handshakes of one client cost the others."""
import statistics

from tables import number, table

WORDS = {"none": "none", "nginx": "with an nginx", "carpool": "with carpool"}
KINDS = ("handshakes", "plain_p50", "plain_p99", "intercepted_p50", "intercepted_p99")


def section(rows):
    def cells(form):
        for kind in KINDS:
            values = [row[kind] for row in rows if row["form"] == form]
            yield "%s (%s–%s)" % tuple(number(of(values), 0) for of in (statistics.median, min, max))
    return table(["handshakes", "per second", "plain, p50", "p99", "intercepted, p50", "p99"], [[word, *cells(form)] for form, word in WORDS.items()])
