"""Clients that speak HTTP/1.0: the responses that they receive, and which of their connections are kept (RFC 9112 §9.3)."""
import pytest
from harness.h2_origin import H2Origin
from harness.intercept import authority, inside, scene, trusting  # noqa: F401

STAYS = b"GET %s HTTP/1.0\r\nHost: %s\r\nConnection: keep-alive\r\n\r\n"


def asked_twice(client, target, host):
    """Returns the responses to two requests on one connection; the second is None if it has ended."""
    responses = []
    for _ in range(2):
        client.send(STAYS % (target.encode(), host.encode()))
        responses.append(client.response())
        if not responses[-1].keeps_alive():
            assert client.at_end()
            return responses + [None]
    return responses


@pytest.mark.parametrize("form", ["absolute", "origin"])
def test_a_proxy_keeps_no_connection_of_an_old_client(origin, carpool, form):
    o, c = origin(), carpool()
    with c.client() as client:
        first, second = asked_twice(client, o.url + "/" if form == "absolute" else "/", o.authority)
        assert (first.status, first.get("connection"), first.get("keep-alive"), second) == (200, "close", None, None)
    with c.client() as client:
        client.send(STAYS % (b"http://169.254.169.254/", b"a"))
        assert (client.response().get("connection"), client.at_end()) == ("close", True)


def test_the_gateway_of_one_origin_keeps_the_connection_of_an_old_client_that_asks_for_it(origin, carpool):
    o = origin()
    c = carpool(listen={"origin": o.url})
    with c.client() as client:
        assert [a.get("connection") for a in asked_twice(client, "/", "a")] == ["keep-alive"] * 2


def test_the_connection_of_an_old_client_inside_a_connect_is_kept(scene, authority):  # noqa: F811
    _, c = scene()
    with inside(c, trusting(authority.ca)) as client:
        assert [a.get("connection") for a in asked_twice(client, "/", c.authority)] == ["keep-alive"] * 2


@pytest.mark.parametrize("protocol", ["h1", "h2"])
def test_an_old_client_gets_no_chunks_no_trailers_and_no_interim_response(origin, carpool, protocol):
    def of_http1(exchange):
        exchange.send(b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                      b"2\r\nok\r\n0\r\nX-Sum: 1\r\n\r\n")

    def of_http2(stream):
        stream.head(103)
        stream.head(200)
        stream.data(b"ok")
        stream.end([("x-sum", "1")])
    o = origin(of_http1) if protocol == "h1" else H2Origin(of_http2)
    c = carpool(upstream={"protocols": [protocol]})
    with c.client() as client:
        client.send(b"GET %s/ HTTP/1.0\r\n\r\n" % o.url.encode())
        response = client.response()
        assert (response.status, response.body, response.interim, response.get("transfer-encoding")) == (200, b"ok", [], None)
    o.stop()
