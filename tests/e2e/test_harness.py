"""The harness itself: client and scripted origin understand each other without a proxy between them."""
import time

from harness import late, toml
from harness.wire import Client


def test_the_client_reads_what_the_origin_sends(origin):
    def trailers(exchange):
        exchange.read_body()
        exchange.send(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                      b"3\r\nabc\r\n0\r\nDigest: x\r\n\r\n")
    o = origin(trailers)
    with Client(("127.0.0.1", o.port)) as c:
        response = c.request("POST", "/x", body=b"12345")
        assert (response.status, response.body, response.trailers, response.interim[0].status) == (200, b"abc", [("digest", "x")], 103)
    assert o.seen[0].message.body == b"12345" and o.targets() == ["/x"]


def test_settings_become_toml():
    assert toml.dumps(toml.merge({"workers": 2, "pool": {"size": 4}}, {"pool": {"x": "1s"}, "origin": [{"uri": "u", "tls": {"a": True}}]})) == (
        'workers = 2\n\n[pool]\nsize = 4\nx = "1s"\n\n[[origin]]\nuri = "u"\n\n[origin.tls]\na = true\n')


def test_a_late_log_delays_each_line_behind_that_of_readiness_and_loses_none(monkeypatch):
    monkeypatch.setattr(late, "enabled", True)
    monkeypatch.setattr(late, "LOG", 0.05)
    began, came = time.monotonic(), []
    for line in late.lines([b"before\n", b"carpool ready\n", b"behind\n", b"the last\n"]):
        came.append((line, time.monotonic() - began >= 0.05))
    assert [line for line, _ in came] == [b"before\n", b"carpool ready\n", b"behind\n", b"the last\n"]
    assert [delayed for _, delayed in came][2:] == [True, True]
