"""Interim responses reach only the client that sent the request, whatever happens to the attempt that caused them."""
import contextlib

import pytest
from harness.h2_client import block, headers
from harness.h2_raw import RawOrigin
from harness.origin import Gate
from harness.ports import tcp_server
from harness.wire import Stream

FIELD = b"x-of-another"
MISDIRECTED = (b"HTTP/1.1 103 Early Hints\r\n%s: 1\r\n\r\nHTTP/1.1 421 Misdirected Request\r\nContent-Length: 0\r\n\r\n" % FIELD)


def of_http1(origin, gate):
    """An origin that misdirects the first attempt, with an interim response in the same segment, and holds the second one."""
    def handler(exchange):
        if len(o.seen) == 1:
            return exchange.send(MISDIRECTED)
        gate.enter()
        return exchange.reply(body=b"second attempt")
    o = origin(handler)
    return o, {}


def of_http2(_, gate):
    def script(peer, stream):
        if len(o.asked) == 1:
            return peer.send(headers(stream, block([(b":status", b"103"), (FIELD, b"1")]), end=False)
                             + headers(stream, block([(b":status", b"421")])))
        gate.enter()
        return peer.send(headers(stream, block([(b":status", b"200"), (b"content-length", b"0")])))
    o = RawOrigin(script)
    return o, {"origin": [{"uri": o.url, "upstream": {"protocols": ["h2"]}}]}


@contextlib.contextmanager
def in_front_of_a_head(client, origin):
    o = origin()
    yield
    client.ask("GET", o.url + "/")
    response = client.response()
    assert response.status == 200 and response.body == b"ok" and not response.interim
    assert FIELD.decode() not in [name for name, _ in response.headers]


@contextlib.contextmanager
def inside_a_body(client, origin):
    gate = Gate()

    def handler(exchange):
        exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfirst")
        gate.enter()
        exchange.send(b"later")
    client.ask("GET", origin(handler).url + "/")
    assert client.head().status == 200 and client.exactly(5) == b"first"
    yield
    gate.open()
    assert client.exactly(5) == b"later"


@contextlib.contextmanager
def inside_a_tunnel(client, _):
    listener = tcp_server()
    port = listener.getsockname()[1]
    client.send(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % (port, port))
    assert client.head().status == 200
    far = Stream(listener.accept()[0])
    yield
    far.send(b"tunnelled")
    assert client.exactly(9) == b"tunnelled"
    far.close()
    listener.close()


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("bystander", [in_front_of_a_head, inside_a_body, inside_a_tunnel])
@pytest.mark.parametrize("misdirecting", [of_http1, of_http2])
def test_an_interim_response_before_a_misdirected_one_reaches_its_own_client_alone(origin, carpool, gate, misdirecting,
                                                                                   bystander, workers):
    o, settings = misdirecting(origin, gate)
    c = carpool(workers=workers, **settings)
    with contextlib.ExitStack() as stack:
        # More bystanders than loops: one of them shares its loop with the client below.
        others = [stack.enter_context(c.client()) for _ in range(2 * workers)]
        asking = stack.enter_context(c.client())
        held = [contextlib.ExitStack() for _ in others]
        for client, one in zip(others, held):
            one.enter_context(bystander(client, origin))
        asking.ask("GET", o.url + "/")
        gate.wait_for(1)
        for one in held:
            one.close()
        gate.open()
        response = asking.response()
        assert response.status == 200
        assert [(i.status, i.get(FIELD.decode())) for i in response.interim] == [(103, "1")]
    o.stop()


@pytest.mark.parametrize("rest", [b"\0\0\0", b"HTTP/1.1 20", b""], ids=["garbage", "half-a-head", "nothing"])
def test_an_interim_response_before_a_failure_is_told_once_and_to_its_own_client(origin, carpool, rest):
    def handler(exchange):
        exchange.send(b"HTTP/1.1 103 Early Hints\r\n%s: 1\r\n\r\n" % FIELD + rest)
        return False
    o, other, c = origin(handler), origin(), carpool(workers=1)
    with c.client() as asking, c.client() as client:
        response = asking.get(o.url + "/")
        assert response.status == 502 and [i.status for i in response.interim] == [103]
        response = client.get(other.url + "/")
        assert response.status == 200 and not response.interim
