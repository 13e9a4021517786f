"""GET /history: what the sum of all origins counts."""
import socket

from harness.wait import until


def requests(c, origin=""):
    seen = c.get_json("/history" + ("?origin=" + origin if origin else ""))
    return round(sum(seen["requests_per_second"]) * seen["every_seconds"])


def test_the_sum_counts_origins_without_a_label_of_their_own_and_no_request_without_an_origin(carpool, origin):
    first, second, c = origin(), origin(), carpool(metrics={"max_origins": 1})
    until(lambda: c.get_json("/history")["ago_seconds"], 20, "a first point")
    for _ in range(7):
        with socket.create_connection(c.address) as refused:
            refused.sendall(b"GET http://a b/ HTTP/1.1\r\n\r\n")
            assert b" 400 " in refused.recv(4096)
    with c.client() as client:
        for o in (first, second):
            for _ in range(20):
                assert client.get(o.url + "/").status == 200
    until(lambda: requests(c) >= 40, 20, "a point with the requests")
    # A point lasts for five seconds and the time that its timer is late.
    assert 40 <= requests(c) <= 42
    assert 20 <= requests(c, first.url) <= 21 and requests(c, second.url) == 0
