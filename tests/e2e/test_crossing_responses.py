"""A response that the origin sent before it received the request, because it closes an idle connection: no client gets it."""
import sys

import pytest
from harness import crossing_origin
from harness.wire import Client

ORIGIN = crossing_origin.ORIGIN
pytestmark = pytest.mark.skipif(not crossing_origin.available(), reason="a network namespace and a TUN device need root")


@pytest.fixture
def client(carpool, tmp_path):
    """A client whose first request was answered on the first connection."""
    listener = "unix:%s" % (tmp_path / "c.sock")
    carpool(workers=1, listeners=[{"address": listener}],
            inside=["unshare", "-n", sys.executable, "-B", crossing_origin.__file__])
    with Client(str(tmp_path / "c.sock")) as one:
        assert one.get(ORIGIN + "/").body == b"1"
        yield one


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("status", [408, 400, 503, 200])
def test_the_last_response_of_an_origin_that_closes_is_no_answer(client, method, status):
    """RFC 9112 §9.6: it processes no request that follows on this connection."""
    response = client.request(method, ORIGIN + "/crossed/%d/close" % status, body=b"x" if method == "POST" else b"")
    assert (response.status, response.body) == (200, b"2"), "sent again, on another connection"


def test_of_an_origin_that_does_not_close_only_a_request_without_effect_is_sent_again(client):
    response = client.get(ORIGIN + "/crossed/503/keep")
    assert (response.status, response.body) == (200, b"2")


def test_a_request_that_must_not_be_repeated_fails_there(client):
    response = client.request("POST", ORIGIN + "/crossed/503/keep", body=b"x")
    assert response.status == 502 and "before it received the request" in response.get("proxy-status")
