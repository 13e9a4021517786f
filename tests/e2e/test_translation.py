"""Messages that change their protocol on the way: HTTP/1 requests to HTTP/2 origins, and the responses of those."""
import pytest
from harness.h2_client import DATA, END_STREAM, block, frame, headers, never_indexed, request
from harness.h2_raw import RawClient, RawOrigin
from harness.wire import Gone

OF_THE_HOP = {"connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade", "http2-settings", "host",
              "proxy-authorization"}


def status(code, *more):
    return block([(b":status", code), *more])


def plain(stream):
    return headers(stream, status(b"200"))


@pytest.fixture
def pair(carpool):
    """pair(respond(stream)) -> (carpool, origin of HTTP/2)."""
    started = []

    def start(response=plain):
        def script(peer, stream):
            if peer.over(stream):
                peer.send(response(stream))
        started.append(RawOrigin(script))
        return carpool(upstream={"protocols": ["h2"]}), started[-1]
    yield start
    for o in started:
        o.stop()


def sent(client, o, line, fields=b"", body=b""):
    """Sends a request; returns its response, its head at the origin as a list, and the peer of the origin."""
    client.send((line % o.url).encode() + b"\r\nHost: " + o.authority.encode() + b"\r\n" + fields + b"\r\n" + body)
    response = client.response()
    assert response.status == 200, (line, fields, response)
    stream = o.asked[-1][1]
    return o.peers[-1].heads[stream], o.peers[-1].data[stream]


TARGETS = {
    "OPTIONS %s HTTP/1.1": "*",
    "GET %s HTTP/1.1": "/",
    "GET %s?x HTTP/1.1": "/?x",
    "OPTIONS %s/ HTTP/1.1": "/",
    "GET %s/a%%2Fb//c?d=%%zz HTTP/1.1": "/a%2Fb//c?d=%zz",
}


def test_the_target_becomes_scheme_authority_and_path(pair):
    c, o = pair()
    with c.client() as client:
        for line, path in TARGETS.items():
            heads, _ = sent(client, o, line)
            pseudo = {n: v for n, v in heads[0] if n.startswith(":")}
            assert pseudo == {":method": line.split(" ")[0], ":scheme": "http", ":authority": o.authority, ":path": path}, line
        client.send(b"OPTIONS * HTTP/1.1\r\nHost: %s\r\n\r\n" % o.authority.encode())
        assert client.response().status == 200 and o.asked[-1][2][":path"] == "*"


def test_no_field_of_the_hop_reaches_an_http2_origin_and_te_says_trailers_at_most(pair):
    c, o = pair()
    with c.client() as client:
        for fields, te in ((b"Connection: X-Hop, keep-alive\r\nX-Hop: 1\r\nKeep-Alive: 3\r\nProxy-Connection: x\r\n", []),
                           (b"Proxy-Authorization: y\r\nUpgrade: h2c\r\nHTTP2-Settings: AAAA\r\n", []),
                           (b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAAA\r\n", []),
                           (b"TE: gzip, trailers;q=0.5\r\n", []), (b"TE: trailers\r\nConnection: TE\r\n", ["trailers"])):
            names = [n for n, _ in sent(client, o, "GET %s/ HTTP/1.1", fields)[0][0]]
            assert not OF_THE_HOP & set(names) and "x-hop" not in names, fields
            assert [v for n, v in o.peers[-1].heads[o.asked[-1][1]][0] if n == "te"] == te, fields


def test_chunks_become_data_and_of_the_trailers_only_those_allowed_remain(pair):
    c, o = pair()
    with c.client() as client:
        heads, body = sent(client, o, "POST %s/ HTTP/1.1", b"Transfer-Encoding: chunked\r\n",
                           b"3\r\nabc\r\n0\r\nX-Sum: 1\r\nConnection: x\r\nContent-Length: 9\r\nHost: b\r\nTE: x\r\nCookie: a=b\r\n\r\n")
    assert body == b"abc" and heads[1] == [("x-sum", "1")]
    assert not {"content-length", "transfer-encoding"} & {n for n, _ in heads[0]}


NO_RESPONSE = {
    **{"status-%s" % code.decode("latin-1"): status(code) for code in
       (b"1", b"20", b"2000", b"abc", b"-20", b"+20", b"099", b"", b" 200", b"2 0", b"\xff00")},
    **{"name-%s" % name.hex(): status(b"200", (name, b"x")) for name in
       (b"", b"a b", b"a:b", b"a\r\nb", b"\xc3\xa9", b"a\x7f", b'a"b', b"keep-alive", b"proxy-connection", b"upgrade")},
    **{"value-%s" % value.hex(): status(b"200", (b"x", value)) for value in (b"a\rb", b"a\nb", b"a\0b")},
}


def test_a_head_that_is_no_response_is_502_and_none_of_its_bytes_pass(pair):
    kinds = list(NO_RESPONSE)
    c, o = pair(lambda stream: headers(stream, NO_RESPONSE[kinds[len(o.asked) - 1]]))
    with c.client() as client:
        for kind in kinds:
            response = client.get(o.url + "/")
            assert response.status == 502 and response.get("proxy-status").startswith("carpool; error="), (kind, response)


BODILESS = [("HEAD", b"200", (), None), ("HEAD", b"200", ((b"content-length", b"7"),), "7"), ("GET", b"204", (), None),
            ("GET", b"204", ((b"content-length", b"0"),), None), ("GET", b"304", (), None),
            ("GET", b"304", ((b"content-length", b"7"),), "7")]


def test_no_length_is_invented_where_a_response_has_no_body(pair):
    c, o = pair(lambda stream: headers(stream, status(BODILESS[len(o.asked) - 1][1], *BODILESS[len(o.asked) - 1][2])))
    with c.client() as client:
        for method, code, _, length in BODILESS:
            response = client.request(method, o.url + "/")
            assert response.status == int(code) and response.get("transfer-encoding") is None
            assert response.get("content-length") == length, (method, code)


def test_trailers_behind_a_length_are_dropped_and_a_short_body_never_ends_in_order(pair):
    trailers = headers(0, block([(b"x-sum", b"1")]))

    def respond(stream):
        length = b"2" if len(o.asked) == 1 else b"9"
        return (headers(stream, status(b"200", (b"content-length", length)), end=False) + frame(DATA, 0, stream, b"ok")
                + trailers[:5] + stream.to_bytes(4, "big") + trailers[9:])
    c, o = pair(respond)
    with c.client() as client:
        whole = client.get(o.url + "/")
        assert (whole.body, whole.trailers, whole.complete) == (b"ok", [], True)
        try:
            assert not client.get(o.url + "/").complete
        except Gone:
            pass


def test_fields_that_may_be_repeated_stay_apart(pair):
    c, o = pair(lambda stream: headers(stream, status(b"200", (b"set-cookie", b"a=1"), (b"set-cookie", b"b=2")), end=False)
                + frame(DATA, END_STREAM, stream, b"ok"))
    with c.client() as client:
        assert client.get(o.url + "/").all("set-cookie") == ["a=1", "b=2"]


@pytest.mark.parametrize("workers", [1, 2])  # with two, a client may use the session of the other loop
def test_what_may_not_be_indexed_stays_so_in_heads_and_in_trailers(carpool, workers):
    def script(peer, stream):
        if peer.over(stream):
            peer.send(headers(stream, status(b"200") + never_indexed([(b"x-secret", b"1")]) + block([(b"x-open", b"1")]), end=False),
                      frame(DATA, 0, stream, b"ok"),
                      headers(stream, never_indexed([(b"x-last-secret", b"1")]) + block([(b"x-last-open", b"1")])))
    o = RawOrigin(script)
    try:
        c = carpool(workers=workers, upstream={"protocols": ["h2"]}, pool={"size": 1})
        for n in range(2):
            with RawClient(c.address) as client:
                asked = request(o.authority.encode(), method=b"POST")
                path = block([(b":path", b"/")])
                client.send(headers(1, asked.replace(path, never_indexed([(b":path", b"/")]))
                                    + never_indexed([(b"x-key", b"1")]) + block([(b"x-other", b"1")]), end=False),
                            frame(DATA, 0, 1, b"body"),
                            headers(1, never_indexed([(b"x-end-key", b"1")]) + block([(b"x-end", b"1")])))
                assert client.over(1) and client.data[1] == b"ok"
                assert client.never_indexed[1] == {"x-secret", "x-last-secret"}
            assert o.peers[-1].never_indexed[o.asked[n][1]] == {":path", "x-key", "x-end-key"}
    finally:
        o.stop()
