"""Rules that schemathesis cannot read from /openapi.json: the form of an origin, and rules between two parameters."""
import os

import schemathesis
from hypothesis import strategies

LIVE = os.environ["CARPOOL_ORIGIN"]  # has a pool; the others have none
SPELLINGS = [LIVE, LIVE + "/", LIVE.replace("http", "HTTP", 1)]
OTHERS = ["http://nobody.test", "https://[2001:db8::1]:8443", "tcp://10.0.0.1:5432"]
schemathesis.openapi.format("origin", strategies.sampled_from(SPELLINGS + OTHERS))


def number(query, name, default):
    text = str(query.get(name, default))
    return int(text) if text.isdecimal() else default


@schemathesis.hook
def filter_case(context, case):
    """OpenAPI 3.0 cannot express "not more than the other one" and "one of both"; each has a test of its own."""
    query = case.query if isinstance(case.query, dict) else {}
    if case.operation.path == "/pools/{origin}/what-if":
        return number(query, "min_idle", 0) <= number(query, "size", 64)
    if case.operation.label == "PUT /log-level" and isinstance(case.body, schemathesis.core.NotSet):
        return "level" in query
    return True
