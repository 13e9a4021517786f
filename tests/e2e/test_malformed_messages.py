"""Messages on the edge of the grammar: a rejected one never reaches the origin, a broken one never reaches the client."""
import pytest

CHUNKED = b"Transfer-Encoding: chunked\r\n"

REFUSED = {
    "length-nbsp": b"Content-Length: \xa05\r\n\r\nhello",
    "length-two-words": b"Content-Length: 5 5\r\n\r\nhello",
    "length-list-differs": b"Content-Length: 5, 6\r\n\r\nhello",
    "length-list-ends-empty": b"Content-Length: 5,\r\n\r\nhello",
    "length-exponent": b"Content-Length: 5e0\r\n\r\nhello",
    "coding-twice": CHUNKED + CHUNKED + b"\r\n0\r\n\r\n",
    "coding-identity": b"Transfer-Encoding: identity\r\nContent-Length: 5\r\n\r\nhello",
    "coding-empty": b"Transfer-Encoding:\r\nContent-Length: 5\r\n\r\nhello",
    "coding-quoted": b'Transfer-Encoding: "chunked"\r\n\r\n0\r\n\r\n',
    "coding-parameter": b"Transfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n",
    "coding-form-feed": b"Transfer-Encoding: \x0cchunked\r\nContent-Length: 5\r\n\r\nhello",
    "chunk-space-first": CHUNKED + b"\r\n 5\r\nhello\r\n0\r\n\r\n",
    "chunk-plus": CHUNKED + b"\r\n+5\r\nhello\r\n0\r\n\r\n",
    "chunk-size-nul": CHUNKED + b"\r\n5\0\r\nhello\r\n0\r\n\r\n",
    "chunk-size-cr-cr": CHUNKED + b"\r\n5\r\r\nhello\r\n0\r\n\r\n",
    "chunk-end-cr": CHUNKED + b"\r\n5\r\nhello\r0\r\n\r\n",
    "chunk-wraps": CHUNKED + b"\r\n10000000000000005\r\nhello\r\n0\r\n\r\n",
    "extension-quoted-crlf": CHUNKED + b'\r\n5;a="\r\n"\r\nhello\r\n0\r\n\r\n',
}

BROKEN = {
    "length-list-differs": b"HTTP/1.1 200 OK\r\nContent-Length: 2, 3\r\n\r\nok",
    "length-plus": b"HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok",
    "length-empty": b"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\nok",
    "length-huge": b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nok",
    "coding-unknown": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\nContent-Length: 2\r\n\r\nok",
    "status-short": b"HTTP/1.1 20 X\r\nContent-Length: 2\r\n\r\nok",
    "status-long": b"HTTP/1.1 1000 X\r\nContent-Length: 2\r\n\r\nok",
    "status-low": b"HTTP/1.1 099 X\r\nContent-Length: 2\r\n\r\nok",
    "version-2": b"HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "version-lower-case": b"http/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "another-protocol": b"ICY 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "no-head": b"hello world",
    "head-cut": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n",
    "interim-alone": b"HTTP/1.1 100 Continue\r\n\r\n",
    "unasked-upgrade-behind-100": b"HTTP/1.1 100 C\r\n\r\nHTTP/1.1 101 S\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
}


@pytest.mark.parametrize("rest", REFUSED.values(), ids=REFUSED.keys())
def test_an_odd_request_is_refused_and_nothing_behind_it_is_read(origin, carpool, rest):
    o, c = origin(), carpool()
    with c.client() as client:
        client.send(b"POST %s/ HTTP/1.1\r\nHost: x\r\n" % o.url.encode() + rest
                    + b"GET %s/behind HTTP/1.1\r\nHost: x\r\n\r\n" % o.url.encode())
        assert client.response().status in (400, 413, 501)
        assert client.at_end()
    assert o.targets() in ([], ["/"])  # a body may prove wrong after its head was passed on
    assert all(not seen.message.complete or not seen.message.body for seen in o.seen)


@pytest.mark.parametrize("reply", BROKEN.values(), ids=BROKEN.keys())
def test_an_odd_response_is_502_and_its_connection_serves_nobody_else(origin, carpool, reply):
    def odd_first(exchange):
        exchange.read_body()
        if exchange.request.target == "/odd":
            exchange.send(reply)
            return False
        return exchange.reply(body=b"clean")
    o, c = origin(odd_first), carpool()
    with c.client() as client:
        assert client.get(o.url + "/odd").status == 502
        assert client.get(o.url + "/next").body == b"clean"
    assert o.seen[0].connection != o.seen[-1].connection


def test_a_bare_line_feed_in_a_response_head_is_502_but_where_its_origin_is_allowed_it(origin, carpool):
    def old(exchange):
        exchange.send(b"HTTP/1.1 200 OK\nContent-Length: 2\nX-Old: yes\n\nok")
    old_one, strict_one = origin(old), origin(old)
    c = carpool(origin=[{"uri": old_one.url, "upstream": {"lenient": ["bare_lf"]}}])
    with c.client() as client:
        for _ in range(2):
            response = client.get(old_one.url + "/")
            assert (response.status, response.body, response.get("x-old")) == (200, b"ok", "yes")
        response = client.get(strict_one.url + "/")
        assert response.status == 502 and "LF" in response.get("proxy-status")
    assert old_one.opened == 1


@pytest.mark.parametrize("version", ["HTTP/2.0", "HTTP/3.0", "HTTP/9.9"])
def test_another_major_version_is_505(origin, carpool, version):
    o, c = origin(), carpool()
    with c.client() as client:
        client.send(("GET %s/ %s\r\nHost: a\r\n\r\n" % (o.url, version)).encode())
        response = client.response()
        assert response.status == 505 and not response.keeps_alive()
    assert not o.seen


def test_a_connection_field_of_commas_is_refused_and_reaches_no_origin(origin, carpool):
    o, c = origin(), carpool()
    with c.client() as client:
        response = client.get(o.url + "/", ("Connection", "," * 42000))
        assert response.status == 400 and "connection options" in response.get("proxy-status")
    assert not o.seen
