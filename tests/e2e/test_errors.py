"""Errors as the application sees them: status, Proxy-Status, and never a response that looks complete."""
import json
import ssl

import pytest
from harness.h2_client import headers, request
from harness.h2_raw import RawClient
from harness.ports import free_port
from harness.tls import files, trusting  # noqa: F401
from harness.wait import until
from harness.wire import Client


def check(response, status, error=None):
    """Checks the contract's form of a generated response."""
    assert response.status == status, response
    told = response.get("proxy-status", "")
    assert told.startswith("carpool"), response
    assert error is None or "error=" + error in told.replace(" ", ""), told
    assert "carpool" in response.get("via", ""), response
    assert response.complete


def server_tls(certificate, key):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


def test_a_refused_connection_is_502(carpool):
    c = carpool()
    with c.client() as client:
        check(client.get("http://127.0.0.1:%d/" % free_port()), 502, "connection_refused")
        check(client.get("http://127.0.0.1:%d/" % free_port()), 502, "connection_refused")  # the client may continue


def test_an_origin_that_hangs_up_without_a_word_is_502(origin, carpool):
    o, c = origin(lambda exchange: False), carpool()
    with c.client() as client:
        check(client.get(o.url + "/"), 502, "connection_terminated")
    assert len(o.seen) == 1  # it was the connection's first request: not replayed


@pytest.mark.parametrize("reply", [
    b"HTTP/1.1 20 OK\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nA: b\r\n c: folded\r\nContent-Length: 0\r\n\r\n",
    b"SSH-2.0-OpenSSH_9.2p1\r\n",
])
def test_a_malformed_response_is_502_or_made_clean(origin, carpool, reply):
    def bad(exchange):
        exchange.send(reply)
        return False
    o, c = origin(bad), carpool()
    with c.client() as client:
        response = client.get(o.url + "/")
    assert response.status == 502 or b"folded" in reply and response.get("a") == "b c: folded"
    if response.status == 502:
        check(response, 502)


def test_a_certificate_for_another_name_is_502(origin, carpool, pki):
    o = origin(tls=server_tls(pki.wrong_name, pki.wrong_name_key))
    c = carpool(upstream={"tls": {"ca_file": pki.ca}})
    with c.client() as client:
        check(client.get(o.url + "/"), 502, "tls_certificate_error")
    assert not o.seen


def test_a_certificate_of_an_unknown_authority_is_502(origin, carpool, pki):
    o, c = origin(tls=server_tls(pki.server, pki.server_key)), carpool()
    with c.client() as client:
        check(client.get(o.url + "/"), 502, "tls_certificate_error")
    assert not o.seen


def test_verification_off_means_off(origin, carpool, pki):
    o = origin(tls=server_tls(pki.wrong_name, pki.wrong_name_key))
    c = carpool(upstream={"tls": {"verify": False}})
    with c.client() as client:
        assert client.get(o.url + "/").status == 200


def test_plain_text_where_tls_was_expected_is_502(nginx, carpool):
    c = carpool()
    with c.client() as client:
        check(client.get("https://127.0.0.1:%d/" % nginx.port), 502)


@pytest.mark.parametrize("head, status", [
    (b"GET /\r\n\r\n", 400),
    (b"GET http://127.0.0.1:1/ HTTP/1.1\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400),
    (b"GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    (b"POST http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
    (b"GET http://a/ HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 70000 + b"\r\n\r\n", 431),
    (b"GET http://a/ HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * 150 + b"\r\n", 431),
    (b"GET http://a/" + b"x" * 20000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 414),
])
def test_a_request_that_cannot_be_served_says_why(carpool, head, status):
    c = carpool()
    with c.client() as client:
        client.send(head)
        response = client.response()
        check(response, status)
        assert client.at_end()  # bytes after a malformed head cannot be trusted


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_a_body_over_the_limit_is_413(origin, carpool, framing):
    o, c = origin(), carpool(listen={"max_body": "4KiB"})
    with c.client() as client:
        start = b"POST %s/ HTTP/1.1\r\nHost: x\r\n" % o.url.encode()
        if framing == "length":
            client.send(start + b"Content-Length: 5000\r\n\r\n")
        else:
            client.send(start + b"Transfer-Encoding: chunked\r\n\r\n" + b"1388\r\n" + b"x" * 5000 + b"\r\n")
        check(client.response(), 413)


@pytest.mark.parametrize("version", ["plain", "tls"])
@pytest.mark.parametrize("sender", ["carpool", "origin"])
def test_a_client_that_sends_everything_before_it_reads_gets_an_early_answer(origin, carpool, pki, files, version, sender):
    def refuse(exchange):
        exchange.reply(413, b"no", [("Connection", "close")])
        while exchange.stream.more():
            exchange.stream.buffer = b""
        return False
    o = origin(refuse)
    listen = {"max_body": "4KiB"} if sender == "carpool" else {}
    c = carpool(listen=files.settings(**listen) if version == "tls" else listen)
    with Client(c.address, trusting(pki) if version == "tls" else None, "localhost") as client:
        client.send(b"PUT %s/ HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (o.url.encode(), 64 << 20))
        for _ in range(64):
            client.send(bytes(1 << 20))
        response = client.response()
        assert (response.status, response.keeps_alive()) == (413, False) and client.at_end()


REFUSED_HEADS = {
    400: b"HEAD /x HTTP/1.1\r\nHost: a\r\nX : y\r\n\r\n",
    408: b"HEAD /x HTTP/1.1\r\nHost: a\r\n",
    414: b"HEAD /%s HTTP/1.1\r\nHost: a\r\n\r\n" % (b"a" * 20_000),
    431: b"HEAD /x HTTP/1.1\r\nHost: a\r\n%s\r\n" % (b"X: y\r\n" * 200),
    501: b"HEAD /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
    505: b"HEAD /x HTTP/3.0\r\nHost: a\r\n\r\n",
}


@pytest.mark.parametrize("status", REFUSED_HEADS)
def test_an_error_for_head_has_no_content(carpool, status):
    c = carpool(listen={"header_timeout": "300ms"})
    with c.client() as client:
        client.send(REFUSED_HEADS[status])
        response = client.head()
        check(response, status)
        assert int(response.get("content-length")) > 0 and client.at_end()


def test_an_error_for_head_has_no_content_over_http2(carpool):
    many = [(b"x-%d" % i, b"y") for i in range(150)]
    c = carpool()
    for address in c.address, c.admin_address:
        with RawClient(address) as client:
            client.send(headers(1, request(b"127.0.0.1:%d" % address[1], method=b"HEAD", more=many)))
            assert client.over(1) and (client.status(1), client.data.get(1, b"")) == (431, b""), address


def test_an_error_for_head_has_no_content_of_the_admin_listener(carpool):
    c = carpool()
    with Client(c.admin_address) as client:
        client.send(REFUSED_HEADS[400])
        assert client.head().status == 400 and client.at_end()


@pytest.mark.parametrize("how", ["close", "reset"])
@pytest.mark.parametrize("start", [
    b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\nhalf",
])
def test_a_broken_response_never_looks_complete(origin, carpool, start, how):
    def breaks(exchange):
        exchange.send(start)
        if how == "reset":
            exchange.stream.reset()
        return False
    o, c = origin(breaks), carpool()
    with c.client() as client:
        response = client.get(o.url + "/")
    if response.status == 200:
        assert not response.complete
    else:
        check(response, 502)


def test_names_that_do_not_exist_are_502_dns_error(resolver, carpool):
    c = carpool(inside=resolver.inside)
    with c.client() as client:
        check(client.get("http://gone.test/"), 502, "dns_error")


def test_clients_beyond_the_limit_wait_until_one_leaves(origin, carpool):
    o, c = origin(), carpool(listen={"max_connections": 2})
    with c.client() as one, c.client() as two:
        assert one.get(o.url + "/1").status == two.get(o.url + "/2").status == 200
        with c.client() as three:
            three.ask("GET", o.url + "/3")
            assert one.get(o.url + "/1").status == 200
            assert c.metric("carpool_downstream_connections") == 2 and "/3" not in o.targets()
            assert c.metric("carpool_downstream_limits_total", limit="connections") == 1
            two.close()
            assert three.response().status == 200
    said = until(lambda: [json.loads(line) for line in list(c.output) if "max_connections is reached" in line], what="the line")
    assert [(row["module"], row["address"], row["max_connections"]) for row in said] == [("listener", "%s:%d" % c.address, 2)]
