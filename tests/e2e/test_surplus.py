"""Bytes behind a complete response belong to no request: they reach no client, and their connection serves no other request."""
import pytest
from harness.wait import until

RESPONSES = {
    "length": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    "no-content": b"HTTP/1.1 204 No Content\r\n\r\n",
    "not-modified": b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
}
SURPLUS = {
    "response": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong",
    "half-a-response": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwr",
    "interim": b"HTTP/1.1 103 Early Hints\r\nX-Wrong: 1\r\n\r\n",
    "empty-line": b"\r\n",
    "nul": b"\0",
}


@pytest.mark.parametrize("workers", [1, 2])
def test_surplus_behind_a_response_reaches_no_client_and_its_connection_serves_no_other_request(origin, carpool, workers):
    def handler(exchange):
        exchange.read_body()
        kind = exchange.request.target[1:]
        if kind == "own":
            return exchange.reply(body=b"own")
        response, surplus = kind.split("/")
        return exchange.send(RESPONSES[response] + SURPLUS[surplus])
    o, c = origin(handler), carpool(workers=workers)
    for response in RESPONSES:
        for surplus in SURPLUS:
            with c.client() as one, c.client() as other:
                first = one.get("%s/%s/%s" % (o.url, response, surplus))
                assert first.status < 400 and first.complete, (response, surplus, first)
                for client in (one, other):
                    own = client.get(o.url + "/own")
                    assert (own.body, own.interim) == (b"own", []), (response, surplus, own)
    used = [s.connection for s in o.seen if s.message.target != "/own"]
    assert len(set(used)) == len(used), "no connection serves two such requests"
    ends = {connection: [s.message.target for s in o.seen if s.connection == connection][-1] for connection in used}
    assert "/own" not in ends.values(), "nor another one behind it"


def test_a_pipelined_request_behind_surplus_gets_its_own_response(origin, carpool):
    def handler(exchange):
        target = exchange.request.target.encode()
        response = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(target), target)
        # In one send: a surplus that arrives behind the next request looks like the response to it.
        exchange.send(response + (SURPLUS["response"] if target == b"/first" else b""))
    o, c = origin(handler), carpool()
    with c.client() as client:
        client.ask("GET", o.url + "/first")
        client.ask("GET", o.url + "/second")
        assert [client.response().body for _ in range(2)] == [b"/first", b"/second"]
    until(lambda: c.pool(o.url)["closed"]["peer_closed"] == 1, what="the end of the first connection")
    assert c.pool(o.url)["closed"]["error"] == 0, "no exchange has failed"
