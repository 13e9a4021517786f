"""Date: carpool's own replies have it, and a forwarded response has what the origin sent."""
import email.utils
import time

import pytest
from harness.h2_client import H2Client
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


@pytest.mark.parametrize("dates", [[], ["Sun, 06 Nov 1994 08:49:37 GMT"]])
def test_a_forwarded_response_has_the_date_of_the_origin_or_none(origin, carpool, dates):
    o, c = origin(lambda exchange: exchange.reply(headers=[("Date", date) for date in dates])), carpool()
    with c.client() as client:
        assert client.get(o.url + "/").all("date") == dates
    with H2Client(c.address) as client:
        assert client.get("/", authority=o.authority).get("date") == next(iter(dates), None)


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
