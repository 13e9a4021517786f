"""Which requests are sent again when a connection ends that was idle before: idempotent ones without a body, and only
before any byte of the response."""
import pytest
from harness.wait import until

REPLAYED = {("GET", b""), ("HEAD", b""), ("OPTIONS", b""), ("TRACE", b"")}
ONCE = {("DELETE", b""), ("PUT", b"ab"), ("POST", b""), ("POST", b"ab"), ("PATCH", b"ab"), ("PROPFIND", b""), ("GET", b"ab"),
        ("get", b"")}


def ending(how):
    """Returns a handler that ends the connection of the first request to each /last/... in this way."""
    met = set()

    def handler(exchange):
        exchange.read_body()
        target = exchange.request.target
        if target == "/first" or target in met:
            return exchange.reply()
        met.add(target)
        if how == "reset":
            exchange.stream.reset()
        elif how != "fin":
            exchange.send(how)
        return False
    return handler


@pytest.mark.parametrize("how", ["fin", "reset", b"H", b"HTTP/1.1 103 Early Hints\r\n\r\n"],
                         ids=["fin", "reset", "one-byte", "interim"])
def test_a_request_is_sent_again_only_if_it_is_idempotent_and_before_any_byte_of_its_response(origin, carpool, how):
    o, c = origin(ending(how)), carpool(pool={"learn_idle_timeout": False})
    for number, (method, body) in enumerate(sorted(REPLAYED | ONCE)):
        again = (method, body) in REPLAYED and how in ("fin", "reset")
        with c.client() as client:
            assert client.get(o.url + "/first").status == 200
            target = "/last/%d" % number
            response = client.request(method, o.url + target, body=body)
            asked = [s.connection for s in o.seen if s.message.target == target]
            first = [s.connection for s in o.seen if s.message.target == "/first"][-1]
            assert asked[0] == first, "on a connection that had served"
            assert (len(asked), response.status) == ((2, 200) if again else (1, 502)), (how, method, body)
    assert c.metric("carpool_retries_total", proof="idempotent_reused") == (len(REPLAYED) if how in ("fin", "reset") else 0)


@pytest.mark.parametrize("method, body, again", [("GET", b"", True), ("POST", b"ab", False)])
def test_a_connection_that_was_opened_ahead_and_ends_is_one_that_was_idle(origin, carpool, method, body, again):
    o = origin(ending("fin"))
    c = carpool(origin=[{"uri": o.url, "pool": {"warm_up": {"enabled": True, "size": 1}}}])
    until(lambda: c.metric("carpool_pool_connections", origin=o.url, state="idle") == 1, what="a connection opened ahead")
    with c.client() as client:
        assert client.request(method, o.url + "/last/0", body=body).status == (200 if again else 502)
    assert len(o.seen) == (2 if again else 1)


def test_a_connection_that_was_dialed_for_the_request_and_ends_is_new(origin, carpool):
    o, c = origin(ending("fin")), carpool()
    with c.client() as client:
        assert client.get(o.url + "/last/0").status == 502
    assert len(o.seen) == 1 and c.metric("carpool_retries_total", proof="idempotent_reused") == 0
