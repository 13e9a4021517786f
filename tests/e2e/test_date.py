"""Date: a final response that has none gets the time at which carpool received it, and carpool's own replies have it."""
import email.utils
import time

import pytest
from harness.h2_client import H2Client, block, headers
from harness.h2_raw import RawOrigin
from harness.ports import free_port


def age(response):
    """Returns the seconds since the response's only Date, which must have the preferred format."""
    values = [value for name, value in response.headers if name == "date"]
    assert len(values) == 1, response
    sent = email.utils.parsedate_to_datetime(values[0]).timestamp()
    assert values == [email.utils.formatdate(sent, usegmt=True)]
    return time.time() - sent


def fresh(response):
    return -0.1 <= age(response) < 3


def bare(exchange):
    """A response without Date, behind an interim one."""
    exchange.send(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")


def dated(exchange):
    exchange.reply(headers=[("Date", "Sun, 06 Nov 1994 08:49:37 GMT")])


def test_a_response_without_date_gets_it_and_its_interim_response_does_not(origin, carpool):
    o, c = origin(bare), carpool()
    with c.client() as client:
        response = client.get(o.url + "/")
        assert response.body == b"ok" and fresh(response)
        assert [i.get("date") for i in response.interim] == [None]
    with H2Client(c.address) as client:
        assert fresh(client.get("/", authority=o.authority))


def test_the_date_of_the_origin_is_kept(origin, carpool):
    o, c = origin(dated), carpool()
    with c.client() as client:
        assert client.get(o.url + "/").all("date") == ["Sun, 06 Nov 1994 08:49:37 GMT"]
    with H2Client(c.address) as client:
        assert client.get("/", authority=o.authority).get("date") == "Sun, 06 Nov 1994 08:49:37 GMT"


def test_a_date_that_connection_lists_belongs_to_the_hop(origin, carpool):
    o, c = origin(lambda exchange: exchange.reply(headers=[("Connection", "date"), ("Date", "Sun, 06 Nov 1994 08:49:37 GMT")])), carpool()
    with c.client() as client:
        assert fresh(client.get(o.url + "/"))


def test_a_response_of_an_http2_origin_gets_it_too(carpool):
    def script(peer, stream):
        if peer.over(stream):
            peer.send(headers(stream, block([(b":status", b"200")])))
    o = RawOrigin(script)
    try:
        c = carpool(upstream={"protocols": ["h2"]})
        with c.client() as client:
            assert fresh(client.get(o.url + "/"))
        with H2Client(c.address) as client:
            assert fresh(client.get("/", authority=o.authority))
    finally:
        o.stop()


@pytest.mark.parametrize("request_line, status", [("GET http://127.0.0.1:%d/", 502), ("GET ftp://a/", 400), ("OPTIONS http://127.0.0.1:%d/", 200)])
def test_a_reply_of_its_own_has_it(carpool, request_line, status):
    method, target = (request_line % free_port() if "%d" in request_line else request_line).split(" ")
    c = carpool()
    with c.client() as client:
        response = client.request(method, target, [("Max-Forwards", "0")])
        assert response.status == status and fresh(response)


def test_a_reply_of_its_own_over_http2_has_it(carpool):
    c = carpool()
    with H2Client(c.address) as client:
        response = client.get("/", authority="127.0.0.1:%d" % free_port())
        assert response.status == 502 and fresh(response)
        call = client.get("/", method="POST", authority="127.0.0.1:%d" % free_port(), headers=[("content-type", "application/grpc")])
        assert call.get("grpc-status") == "14" and fresh(call)


def test_pages_of_the_admin_endpoint_have_it(carpool):
    c = carpool()
    for path, status in (("/pools", 200), ("/metrics", 200), ("/no-such", 404)):
        response = c.admin("GET", path)
        assert response.status == status and fresh(response), path
