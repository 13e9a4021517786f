"""One HTTP/1.1 message after it was forwarded: order, interim responses, trailers, versions, fields."""
import contextlib

import pytest
from harness.h2_client import H2Client
from harness.h2_origin import H2Origin
from harness.wait import until


def via(response):
    return response.get("via", "")


def test_a_request_arrives_in_origin_form_with_via_and_comes_back_with_via(origin, carpool):
    o, c = origin(), carpool()
    with c.client() as client:
        response = client.get(o.url + "/a%2Fb?q=1", host="elsewhere.test")
    assert (response.status, response.body) == (200, b"ok")
    seen = o.seen[0].message
    assert seen.first == "GET /a%2Fb?q=1 HTTP/1.1"
    assert seen.all("host") == [o.authority]
    assert seen.get("via").startswith("1.1 carpool-") and via(response).startswith("1.1 carpool-")
    assert not seen.all("x-forwarded-for")


def test_clients_in_turn_share_one_connection(origin, carpool):
    o, c = origin(), carpool()
    with contextlib.ExitStack() as clients:
        for _ in range(6):  # a client that stays makes the next one come to the other loop
            client = clients.enter_context(c.client())
            for _ in range(20):
                assert client.get(o.url + "/").status == 200
    assert o.opened == 1 and len(o.seen) == 120
    assert sum(c.pool(o.url)["opened"].values()) == 1


def test_pipelined_requests_are_answered_in_order(origin, carpool):
    def echo(exchange):
        body = exchange.read_body()
        exchange.reply(body=exchange.request.target.encode() + body)
    o, c = origin(echo), carpool()
    with c.client() as client:
        for i in range(10):
            client.ask("POST" if i % 3 == 1 else "GET", "%s/%d" % (o.url, i), body=b"body" if i % 3 == 1 else b"")
        bodies = [client.response().body.decode() for _ in range(10)]
    assert bodies == ["/%d%s" % (i, "body" if i % 3 == 1 else "") for i in range(10)]


def test_expect_waits_for_the_origins_100(origin, carpool):
    def careful(exchange):
        exchange.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        exchange.reply(body=exchange.read_body()[::-1])
    o, c = origin(careful), carpool()
    with c.client() as client:
        client.send(b"PUT %s/x HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n" % o.url.encode())
        assert client.head().status == 100
        client.send(b"abc")
        assert client.response().body == b"cba"
    assert o.seen[0].message.get("expect") == "100-continue"


def test_a_refused_expectation_ends_without_the_body(origin, carpool):
    def strict(exchange):
        exchange.reply(417, b"no", [("Connection", "close")])
        return False
    o, c = origin(strict), carpool()
    with c.client() as client:
        client.send(b"PUT %s/x HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n" % o.url.encode())
        response = client.response()
    assert (response.status, response.body) == (417, b"no")


def strict_about(expectation):
    def strict(exchange):
        if exchange.request.get("expect") == expectation:
            exchange.reply(417, b"no")
            return False
        exchange.reply(body=exchange.read_body())
    return strict


WAITS = b"PUT %s/x HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"
REPEATS = b"PUT %s/x HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"


def test_a_417_ends_the_connection_and_the_request_without_its_expectation_needs_another(origin, carpool):
    o, c = origin(strict_about("100-continue")), carpool()
    with c.client() as client:
        client.send(WAITS % o.url.encode())
        response = client.response()
        assert (response.status, response.body, response.keeps_alive()) == (417, b"no", False)
        assert client.at_end()
    with c.client() as client:
        client.send(REPEATS % o.url.encode())
        assert client.response().body == b"abc"
        assert client.get(o.url + "/after").status == 200


@pytest.mark.parametrize("late", [b"abc", b"GET /smuggled HTTP/1.1\r\nHost: %s\r\n\r\n", b"\0\r\n\r\n",
                                  b"PUT http://%s/x HTTP/1.1\r\nHost: %s\r\nX-Body: not a field\r\nContent-Length: 0\r\n\r\n"])
def test_a_body_behind_a_417_is_never_taken_for_a_request(origin, carpool, late):
    o, c = origin(strict_about("100-continue")), carpool(listen={"header_timeout": "300ms"})
    with c.client() as client:
        client.send(WAITS % o.url.encode())
        assert client.response().status == 417
        client.send(late.replace(b"%s", o.authority.encode()))
        assert client.at_end(), "closed without another answer"
    assert [seen.message.target for seen in o.seen] == ["/x"]


def test_a_417_behind_a_100_ends_the_connection(origin, carpool):
    def both(exchange):
        exchange.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        exchange.reply(417, b"no")
        return False
    o, c = origin(both), carpool()
    with c.client() as client:
        client.send(WAITS % o.url.encode())
        response = client.response()
        assert response.status == 417 and not response.keeps_alive(), "its body may be on its way"


def test_early_hints_pass_with_their_fields(origin, carpool):
    def hints(exchange):
        exchange.send(b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n")
        exchange.reply()
    o, c = origin(hints), carpool()
    with c.client() as client:
        response = client.get(o.url + "/")
    assert [(i.status, i.get("link")) for i in response.interim] == [(103, "</style.css>; rel=preload")]
    assert response.status == 200


def test_trailers_pass_both_ways_and_framing_fields_in_them_do_not(origin, carpool):
    def trailing(exchange):
        exchange.read_body()
        exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Digest\r\n\r\n"
                      b"2\r\nhi\r\n0\r\nDigest: sha\r\nContent-Length: 7\r\n\r\n")
    o, c = origin(trailing), carpool()
    with c.client() as client:
        client.send(b"POST %s/ HTTP/1.1\r\nHost: x\r\nTE: trailers\r\nConnection: TE\r\nTransfer-Encoding: chunked\r\n\r\n"
                    b"3\r\nabc\r\n0\r\nChecksum: 1\r\nTransfer-Encoding: chunked\r\n\r\n" % o.url.encode())
        response = client.response()
    assert (response.body, response.trailers) == (b"hi", [("digest", "sha")])
    assert (o.seen[0].message.body, o.seen[0].message.trailers) == (b"abc", [("checksum", "1")])


def test_an_http_10_client_gets_no_chunks_and_its_connection_closes(origin, carpool):
    def chunked(exchange):
        exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
    o, c = origin(chunked), carpool()
    with c.client() as client:
        client.send(b"GET %s/ HTTP/1.0\r\nHost: x\r\n\r\n" % o.url.encode())
        response = client.response()
        assert not response.all("transfer-encoding") and response.body == b"abc" and client.at_end()


@pytest.mark.parametrize("method, head, status", [
    ("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n", 200),
    ("GET", b"HTTP/1.1 204 No Content\r\n\r\n", 204),
    ("GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 500\r\nETag: x\r\n\r\n", 304),
])
def test_a_response_without_a_body_leaves_the_connection_in_step(origin, carpool, method, head, status):
    def bare(exchange):
        if exchange.request.target == "/bare":
            exchange.send(head)
        else:
            exchange.reply()
    o, c = origin(bare), carpool()
    with c.client() as client:
        assert client.request(method, o.url + "/bare").status == status
        assert client.get(o.url + "/next").body == b"ok"
    assert o.opened == 1


@pytest.mark.parametrize("fields", [b"Content-Length: 5\r\nContent-Length: 5\r\n", b"Content-Length: 0\r\nTransfer-Encoding: chunked\r\n"],
                         ids=["doubled", "both"])
@pytest.mark.parametrize("method, line", [("HEAD", b"200 OK"), ("GET", b"204 No Content"), ("GET", b"304 Not Modified")])
def test_a_response_without_a_body_may_announce_its_length_in_two_ways(origin, carpool, method, line, fields):
    def odd(exchange):
        if exchange.request.target == "/odd":
            exchange.send(b"HTTP/1.1 %s\r\n%s\r\n" % (line, fields))
        else:
            exchange.reply()
    o, c = origin(odd), carpool()
    with c.client() as client:
        response = client.request(method, o.url + "/odd")
        assert response.status == int(line[:3]) and not response.all("content-length") + response.all("transfer-encoding")
        assert client.get(o.url + "/next").body == b"ok"
    assert o.opened == 2, "the origin may have sent a body"


def test_fields_of_the_hop_stay_behind(origin, carpool):
    o, c = origin(), carpool()
    with c.client() as client:
        client.get(o.url + "/", ("Connection", "X-Mine, keep-alive"), ("X-Mine", "1"), ("Keep-Alive", "timeout=5"),
                   ("Proxy-Connection", "keep-alive"), ("Proxy-Authorization", "Basic eDp5"), ("TE", "gzip"),
                   ("Upgrade", "nothing"), ("X-Kept", "2"))
    names = {n for n, _ in o.seen[0].message.headers}
    assert "x-kept" in names
    assert not names & {"x-mine", "keep-alive", "proxy-connection", "proxy-authorization", "te", "upgrade"}


@pytest.mark.parametrize("word, name, value", [("x_forwarded_for", "x-forwarded-for", "127.0.0.1"), ("forwarded", "forwarded", "for=127.0.0.1;proto=http")])
@pytest.mark.parametrize("access", [True, False])
def test_an_origin_is_told_of_the_client_where_it_is_wanted(origin, carpool, word, name, value, access):
    told, other = origin(), origin()
    c = carpool(origin=[{"uri": told.url, "request": {"client_field": word}}], log={"access": access})
    with c.client() as client:
        client.get(told.url + "/", (name.title(), "earlier"))
        client.get(other.url + "/")
    assert [v for n, v in told.seen[0].message.headers if n == name] == ["earlier", value]
    assert not {"x-forwarded-for", "forwarded"} & {n for n, _ in other.seen[0].message.headers}


def test_a_reload_tells_of_the_clients_that_are_connected_already(origin, carpool):
    """No client had requested these addresses when they arrived."""
    o = origin()
    c = carpool(origin=[{"uri": o.url, "request": {"client_field": "off"}}], log={"access": False})
    with c.client() as one, H2Client(c.address) as two:
        assert one.get(o.url + "/").status == two.get("/", authority=o.authority).status == 200
        c.config.write_text(c.config.read_text().replace('client_field = "off"', 'client_field = "forwarded"').replace("access = false", "access = true"))
        assert c.admin("POST", "/reload").status == 200
        assert one.get(o.url + "/1").status == two.get("/2", authority=o.authority).status == 200
        assert [seen.message.get("forwarded") for seen in o.seen] == [None, None, "for=127.0.0.1;proto=http", "for=127.0.0.1;proto=http"]
        for path, sock in (("/1", one.sock), ("/2", two.sock)):
            client = '"client":"127.0.0.1:%d"' % sock.getsockname()[1]
            until(lambda p=path, n=client: any(n in line and '%s"' % p in line for line in c.output), what="the line of " + path)


def test_a_client_is_told_how_long_its_connection_may_rest(origin, carpool):
    o, c = origin(), carpool(listen={"idle_timeout": "20s"})
    with c.client() as client:
        for response in (client.get(o.url + "/"), client.get("http://169.254.169.254/")):
            assert (response.get("connection"), response.get("keep-alive")) == ("keep-alive", "timeout=18"), response
        last = client.get(o.url + "/", ("Connection", "close"))
        assert (last.get("connection"), last.get("keep-alive")) == ("close", None)


def test_a_client_is_told_the_time_that_its_connection_has(origin, carpool):
    """A reload changes it for the connections that come later."""
    o, c = origin(), carpool(listen={"idle_timeout": "20s"})
    with c.client() as client:
        assert client.get(o.url + "/").get("keep-alive") == "timeout=18"
        c.config.write_text(c.config.read_text().replace('idle_timeout = "20s"', 'idle_timeout = "100s"'))
        assert c.admin("POST", "/reload").status == 200
        assert client.get(o.url + "/").get("keep-alive") == "timeout=18"
    with c.client() as client:
        assert client.get(o.url + "/").get("keep-alive") == "timeout=90"


def test_an_open_quote_of_a_client_does_not_hide_what_the_origin_is_told(origin, carpool):
    o = origin()
    c = carpool(origin=[{"uri": o.url, "request": {"client_field": "forwarded"}}])
    with c.client() as client:
        client.get(o.url + "/", ("Forwarded", 'for=1.2.3.4;by="x'), ("Forwarded", 'for="[::1]"'))
    assert o.seen[0].message.all("forwarded") == ['for="[::1]"', "for=127.0.0.1;proto=http"]


def test_max_forwards_counts_down_and_ends_here(origin, carpool):
    o, c = origin(), carpool()
    with c.client() as client:
        assert client.request("OPTIONS", o.url + "/", [("Max-Forwards", "3")]).status == 200
        assert o.seen[0].message.get("max-forwards") == "2"
        for more in (2**32, 10**30):
            assert client.request("OPTIONS", o.url + "/", [("Max-Forwards", str(more))]).status == 200
            assert o.seen[-1].message.get("max-forwards") == "999"
        assert client.request("TRACE", o.url + "/", [("Max-Forwards", "0")]).status < 500
        for method in ("OPTIONS", "TRACE"):
            assert client.request(method, o.url + "/", [("Max-Forwards", "0")]).get("proxy-status") == "carpool"
    assert len(o.seen) == 3


def test_a_request_that_was_here_before_is_a_loop(origin, carpool):
    o, c = origin(), carpool()
    with c.client() as client:
        client.get(o.url + "/")
        mine = o.seen[0].message.get("via")
        response = client.get(o.url + "/", ("Via", mine))
        assert response.status == 508 and response.get("proxy-status").startswith("carpool")
    assert len(o.seen) == 1


@pytest.mark.parametrize("protocol", ["h1", "h2"])
def test_an_origin_with_via_off_sees_no_via_of_ours_and_others_do(origin, carpool, protocol):
    o, other = (origin(), origin()) if protocol == "h1" else (H2Origin(), H2Origin())
    c = carpool(origin=[{"uri": o.url, "request": {"via": False}}], upstream={"protocols": [protocol]})
    with c.client() as client:
        quiet = client.get(o.url + "/", ("Via", "1.1 before"))
        assert quiet.status == 200 and " carpool-" in via(quiet), "the client still sees it"
        assert client.get(other.url + "/").status == 200
    if protocol == "h1":
        assert o.seen[0].message.all("via") == ["1.1 before"] and other.seen[0].message.get("via").startswith("1.1 carpool-")
    else:
        assert o.seen[0].field("via") == ["1.1 before"] and other.seen[0].field("via")[0].startswith("1.1 carpool-")
        o.stop(), other.stop()


def test_an_nginx_that_compresses_nothing_for_proxies_compresses_for_us(nginx, carpool):
    there = "http://127.0.0.1:%d" % nginx.port
    for settings, coding in (({"via": False}, "gzip"), ({}, None)):
        with carpool(origin=[{"uri": there, "request": settings}]).client() as client:
            response = client.get(there + "/gzip", ("Accept-Encoding", "gzip"))
            assert (response.status, response.get("content-encoding")) == (200, coding)


def test_two_sidecars_in_a_row_are_no_loop(origin, carpool):
    o, second = origin(), carpool()
    first = carpool(listen={"origin": "http://%s:%d" % second.address, "preserve_host": True})
    with first.client() as client:
        assert client.get("/", host=o.authority).status == 200
    assert ", ".join(o.seen[0].message.all("via")).count("carpool-") == 2
