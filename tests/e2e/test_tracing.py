"""W3C trace context: carpool forwards the application's trace headers unchanged."""
import pytest
from harness.h2_client import H2Client
from harness.origin import hello
from harness.wait import until

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
STATES = ["vendor=t61rcWkgMzE,other=00f067aa0ba902b7", "third=1"]
BAGGAGE = "userId=alice,serverNode=DF%2028"
FIELDS = [("traceparent", PARENT), ("tracestate", STATES[0]), ("tracestate", STATES[1]), ("baggage", BAGGAGE)]


def assert_whole(message):
    assert message.all("traceparent") == [PARENT]
    assert ",".join(message.all("tracestate")) == ",".join(STATES), "their order is their meaning"
    assert message.all("baggage") == [BAGGAGE]


def test_the_context_passes_whole(origin, carpool):
    o, c = origin(), carpool()
    with c.client() as client:
        assert client.get(o.url + "/", *FIELDS).status == 200
    with H2Client(c.address) as client:
        assert client.get("/", authority=o.authority, headers=FIELDS).status == 200
    for seen in o.seen:
        assert_whole(seen.message)
    until(lambda: [row.get("trace_id") for row in c.access_log()] == [PARENT.split("-")[1]] * 2, what="the trace in the log")


def test_a_request_sent_again_keeps_its_context(origin, carpool):
    def dies_when_reused(exchange):
        exchange.read_body()
        if exchange.nth > 1:
            return False
        exchange.reply()
        return True
    o, c = origin(dies_when_reused), carpool()
    with c.client() as client:
        client.get(o.url + "/first")
        assert client.get(o.url + "/", *FIELDS).status == 200
    assert [s.message.target for s in o.seen] == ["/first", "/", "/"]
    for seen in o.seen[1:]:
        assert_whole(seen.message)


@pytest.mark.parametrize("junk", ["", "00-zz", "ff-" + "0" * 32 + "-" + "0" * 16 + "-00", "x" * 600])
def test_a_context_that_is_none_is_not_our_business(origin, carpool, junk):
    o, c = origin(hello), carpool()
    with c.client() as client:
        assert client.get(o.url + "/", ("traceparent", junk)).status == 200
    assert o.seen[0].message.all("traceparent") == [junk]
    until(c.access_log, what="the line")
    assert "trace_id" not in c.access_log()[0]


def test_no_context_is_made_up(origin, carpool):
    o, c = origin(), carpool()
    with c.client() as client:
        assert client.get(o.url + "/").status == 200
    assert not {"traceparent", "tracestate"} & {name for name, _ in o.seen[0].message.headers}
