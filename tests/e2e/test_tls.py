"""TLS towards origins, seen from the origin: names, protocols, sessions, certificates."""
import pathlib
import ssl

import pytest
from harness.wait import until


def told(exchange):
    """Returns the origin's view of the connection."""
    sock = exchange.stream.sock
    exchange.reply(body=("%s %s %s" % (sock.version(), sock.selected_alpn_protocol(), sock.session_reused)).encode())


def test_http11_alone_is_offered_where_it_is_listed_alone(origin, carpool, pki, context):
    context.set_alpn_protocols(["h2", "http/1.1"])
    o, c = origin(told, tls=context), carpool(upstream={"protocols": ["h1"], "tls": {"ca_file": pki.ca}})
    with c.client() as client:
        assert client.get(o.url + "/").body == b"TLSv1.3 http/1.1 False"


@pytest.mark.parametrize("version, name", [(ssl.TLSVersion.TLSv1_2, b"TLSv1.2"), (ssl.TLSVersion.TLSv1_3, b"TLSv1.3")])
@pytest.mark.parametrize("workers", [1, 2])
def test_sessions_are_resumed_by_whichever_loop_dials(origin, carpool, pki, context, version, name, workers):
    context.minimum_version = context.maximum_version = version
    o = origin(told, tls=context)
    c = carpool(workers=workers, upstream={"tls": {"ca_file": pki.ca}}, pool={"max_usage": 1})
    responses = []
    for _ in range(6):
        with c.client() as client:
            responses.append(client.get(o.url + "/").body)
    assert o.opened == 6 and all(a.startswith(name) for a in responses)
    assert responses[0].endswith(b"False") and all(a.endswith(b"True") for a in responses[1:]), responses


def test_a_minimum_version_is_kept(origin, carpool, pki, context):
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    o, c = origin(tls=context), carpool(upstream={"tls": {"ca_file": pki.ca, "min_version": "1.3"}})
    with c.client() as client:
        assert client.get(o.url + "/").status == 502
    assert not o.seen


def test_an_address_is_verified_as_an_address_and_no_name_is_sent(origin, carpool, pki, context):
    names = []
    context.sni_callback = lambda sock, name, ctx: names.append(name)
    o, c = origin(tls=context), carpool(upstream={"tls": {"ca_file": pki.ca}})
    with c.client() as client:
        assert client.get("https://127.0.0.1:%d/" % o.port).status == 200
        assert client.get("https://localhost:%d/" % o.port).status == 200
    assert names == [None, "localhost"]


def test_server_name_overrides_what_is_asked_for_and_verified(origin, carpool, pki, context):
    names = []
    context.sni_callback = lambda sock, name, ctx: names.append(name)
    o = origin(tls=context)
    c = carpool(upstream={"tls": {"ca_file": pki.ca}}, origin=[
        {"uri": "https://inner.test:%d" % o.port, "addresses": [o.authority], "upstream": {"tls": {"server_name": "origin.test"}}}])
    with c.client() as client:
        assert client.get("https://inner.test:%d/" % o.port).status == 200
    assert names == ["origin.test"] and o.seen[0].message.get("host") == "inner.test:%d" % o.port


def test_an_origin_that_demands_a_certificate_gets_the_right_one_or_none(origin, carpool, pki, context):
    context.load_verify_locations(pki.ca)
    context.verify_mode = ssl.CERT_REQUIRED
    o = origin(lambda e: e.reply(body=str(e.stream.sock.getpeercert()["subject"]).encode()), tls=context)
    shown = {"cert_file": pki.client, "key_file": pki.client_key}
    c = carpool(upstream={"tls": {"ca_file": pki.ca}}, origin=[
        {"uri": "https://localhost:%d" % o.port, "upstream": {"tls": shown}}])
    with c.client() as client:
        assert b"client.test" in client.get("https://localhost:%d/" % o.port).body
        assert client.get("https://127.0.0.1:%d/" % o.port).status == 502  # another origin: no certificate for it


def test_a_revoked_certificate_of_an_origin_is_refused(origin, carpool, pki, context):
    o = origin(tls=context)
    c = carpool(upstream={"tls": {"ca_file": pki.revoking(pki.server)}}, origin=[
        {"uri": "https://origin.test:%d" % o.port, "addresses": [o.authority], "upstream": {"tls": {"ca_file": pki.revoking(pki.client, name="other.pem")}}}])
    with c.client() as client:
        response = client.get("https://localhost:%d/" % o.port)
        assert response.status == 502 and b"certificate revoked" in response.body, response
        assert client.get("https://origin.test:%d/" % o.port).status == 200, "a list that does not name it"


def test_a_list_of_revoked_certificates_that_appears_in_ca_file_retires_connections(origin, carpool, pki, context, tmp_path):
    authorities = tmp_path / "authorities.pem"
    authorities.write_bytes(pathlib.Path(pki.ca).read_bytes())
    o, c = origin(tls=context), carpool(upstream={"tls": {"ca_file": str(authorities)}})
    with c.client() as client:
        assert client.get("https://localhost:%d/" % o.port).status == 200
        authorities.write_bytes(pathlib.Path(pki.revoking(pki.server)).read_bytes())
        assert c.admin("POST", "/reload").status == 200
        assert client.get("https://localhost:%d/" % o.port).status == 502, "the idle connection is not used again"


def test_a_close_notify_while_idle_retires_the_connection(origin, carpool, pki, context):
    def polite(exchange):
        exchange.reply()
        try:
            exchange.stream.sock.unwrap()
        except (OSError, ssl.SSLError):
            pass
        return False
    o, c = origin(polite, tls=context), carpool(upstream={"tls": {"ca_file": pki.ca}})
    with c.client() as client:
        for i in range(5):
            assert client.get(o.url + "/").status == 200
            until(lambda: c.metric("carpool_pool_closed_total", origin=o.url, cause="peer_closed") == i + 1, what="its end")


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_an_early_response_arrives_although_the_origin_reads_no_more(origin, carpool, pki, context, version):
    def refuse(exchange):
        exchange.reply(413, b"no", [("Connection", "close")])
        return False  # the socket is closed with unread input, so a reset follows
    context.minimum_version = context.maximum_version = version
    o, c = origin(refuse, tls=context), carpool(upstream={"tls": {"ca_file": pki.ca}})
    for _ in range(20):
        with c.client() as client:
            assert client.request("POST", o.url + "/", body=bytes(2 << 20)).status == 413


@pytest.mark.parametrize("size", [100, 300, 1000])
def test_a_body_that_comes_during_the_handshake_is_sent_behind_it(origin, carpool, pki, context, size):
    o, c = origin(tls=context), carpool(upstream={"tls": {"ca_file": pki.ca}}, pool={"max_usage": 1})
    for _ in range(3):
        with c.client() as client:
            assert client.request("PUT", o.url + "/", body=b"x" * size * 1024).status == 200
    assert o.opened == 3
