"""Which requests are sent again when a connection that had served before ends: idempotent ones without a body, and only
before any byte of the response."""
import pytest

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
