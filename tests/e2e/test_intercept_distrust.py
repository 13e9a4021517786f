"""Clients that do not accept the certificate of an intercepted origin: what they send, how it is counted, and the tunnels they get."""
import json
import ssl

import pytest
from harness.intercept import CONNECTS, NAME, authority, connected, inside, scene, trusting  # noqa: F401
from harness.wait import until
from test_log import documented

REFUSALS = "carpool_intercept_refusals_total"


def warning(c):
    """Returns the line about a client that does not accept the certificate, or nothing yet."""
    return next((line for line in c.output if "does not accept carpool's certificate" in line), None)


def test_a_client_that_refuses_the_certificate_gets_tunnels_from_then_on(scene, pki):
    o, c = scene()
    with pytest.raises(ssl.SSLCertVerificationError):
        trusting(pki.ca).wrap_socket(connected(c), server_hostname=NAME)
    until(lambda: c.metric(CONNECTS, origin=c.label, result="refused") == 1, what="the refusal")
    with inside(c, trusting(pki.ca)) as client:
        assert client.get("/", host=c.authority).status == 200
    assert c.metric(CONNECTS, origin=c.label, result="distrusted") == 1
    until(lambda: any("does not accept carpool's certificate" in line for line in c.output), what="a warning")


def test_on_distrust_fail_tunnels_nobody(scene, pki):
    o, c = scene(intercept={"on_distrust": "fail"})
    for n in range(2):
        with pytest.raises(ssl.SSLCertVerificationError):
            trusting(pki.ca).wrap_socket(connected(c), server_hostname=NAME)
        until(lambda: c.metric(CONNECTS, origin=c.label, result="refused") == n + 1, what="the refusal")
    assert not o.seen


def test_clients_that_refuse_are_told_apart_by_address_and_agent_even_without_an_access_log(scene, pki):
    _, c = scene(log={"access": False})
    with pytest.raises(ssl.SSLCertVerificationError):
        trusting(pki.ca).wrap_socket(connected(c), server_hostname=NAME)
    until(lambda: any("does not accept carpool's certificate" in line for line in c.output), what="a warning")
    warning = next(line for line in c.output if "does not accept carpool's certificate" in line)
    assert '"client":"127.0.0.1 test"' in warning, warning
    documented(c, json.loads(warning)["message"])


def test_clients_behind_a_balancer_are_told_apart_by_the_announced_address(scene, pki, authority):
    _, c = scene(listen={"proxy_protocol": True, "trusted": ["127.0.0.0/8"]}, log={"access": False})

    def announced(host):
        return connected(c, header=b"PROXY TCP4 %s 10.0.0.1 4711 80\r\n" % host)

    with pytest.raises(ssl.SSLCertVerificationError):
        trusting(pki.ca).wrap_socket(announced(b"203.0.113.1"), server_hostname=NAME)
    until(lambda: warning(c), what="a warning")
    assert '"client":"203.0.113.1 test"' in warning(c)
    with trusting(authority.ca).wrap_socket(announced(b"203.0.113.2"), server_hostname=NAME):
        assert c.metric(CONNECTS, origin=c.label, result="distrusted") == 0
    with trusting(pki.ca).wrap_socket(announced(b"203.0.113.1"), server_hostname=NAME):
        assert c.metric(CONNECTS, origin=c.label, result="distrusted") == 1


def test_of_a_long_user_agent_a_part_is_kept(scene, pki):
    _, c = scene()
    with pytest.raises(ssl.SSLCertVerificationError):
        trusting(pki.ca).wrap_socket(connected(c, agent="a" * 5000), server_hostname=NAME)
    until(lambda: any("does not accept carpool's certificate" in line for line in c.output), what="a warning")
    warning = next(line for line in c.output if "does not accept carpool's certificate" in line)
    assert "a" * 128 in warning and "a" * 129 not in warning


def closing(c, context):
    """A client that verifies the certificate after the handshake, as Node's: it disconnects without an alert and without a request."""
    sock = context.wrap_socket(connected(c), server_hostname=NAME)
    until(lambda: c.metric(CONNECTS, origin=c.label, result="intercepted") > 0, what="the handshake")
    sock.close()


def leaving(c, context, word=b""):
    """A client that disconnects in the middle of the handshake without an alert, as Java's HttpClient and Node's with TLS 1.3."""
    sock = connected(c)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname=NAME)
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    sock.sendall(outgoing.read())
    assert sock.recv(1), "the certificate"
    sock.sendall(word)
    sock.close()


def taking_leave(c, context):
    """A client that closes the connection in order in the middle of the handshake: with a close_notify, which refuses nothing."""
    leaving(c, context, b"\x15\x03\x03\x00\x02\x01\x00")


def refusals(c, **labels):
    return c.metric(REFUSALS, origin=c.label, **labels)


@pytest.mark.parametrize("version, alpn, offer", [("TLSv1_3", ("h2", "http/1.1"), "tls13_h2"), ("TLSv1_3", ("http/1.1",), "tls13_h1"),
                                                  ("TLSv1_2", ("h2",), "tls12_h2"), ("TLSv1_2", (), "tls12")])
def test_a_refusal_is_counted_by_origin_offer_and_alert(scene, pki, version, alpn, offer):
    _, c = scene(intercept={"on_distrust": "fail"})
    context = ssl.create_default_context(cafile=pki.ca)
    context.maximum_version = ssl.TLSVersion[version]
    if alpn:
        context.set_alpn_protocols(list(alpn))
    with pytest.raises(ssl.SSLCertVerificationError):
        context.wrap_socket(connected(c), server_hostname=NAME)
    until(lambda: refusals(c, offer=offer, alert="unknown_ca") == 1, what="the refusal")
    assert refusals(c) == 1
    line = until(lambda: warning(c), what="a warning")
    assert '"offer":"%s"' % offer in line and '"alert":"unknown_ca"' in line, line
    explained = c.get_json("/pools/%s/explain" % c.label.replace("/", "%2F").replace(":", "%3A"))["explanation"]
    assert "1 refusal of the certificate by clients that offer %s, with the alert unknown_ca." % offer in explained


@pytest.mark.parametrize("leave", [closing, leaving, taking_leave])
def test_a_client_that_leaves_twice_without_a_word_gets_tunnels(scene, authority, pki, leave):
    o, c = scene()
    leave(c, trusting(authority.ca))
    until(lambda: c.metric("carpool_downstream_connections") == 0, what="its end")
    assert refusals(c) == 0 and not warning(c), "one may have left for another reason"
    leave(c, trusting(authority.ca))
    until(lambda: refusals(c, offer="tls13_h1", alert="none") == 1, what="the refusal")
    assert until(lambda: warning(c), what="a warning")
    with inside(c, trusting(pki.ca)) as client:
        assert client.get("/", host=c.authority).status == 200
    assert c.metric(CONNECTS, origin=c.label, result="distrusted") == 1


def test_a_client_that_uses_a_connection_is_no_more_suspected(scene, authority):
    _, c = scene()
    for n in range(3):
        closing(c, trusting(authority.ca))
        until(lambda: c.metric("carpool_downstream_connections") == 0, what="its end")
        with inside(c, trusting(authority.ca)) as client:
            assert client.get("/", host=c.authority).status == 200
        until(lambda n=n: c.metric(CONNECTS, origin=c.label, result="intercepted") == 2 * n + 2, what="interceptions alone")
    assert refusals(c) == 0


def test_clients_of_one_address_without_an_agent_are_told_apart_by_their_tls(scene, authority, pki):
    _, c = scene()
    with pytest.raises(ssl.SSLCertVerificationError):
        trusting(pki.ca).wrap_socket(connected(c), server_hostname=NAME)
    until(lambda: refusals(c) == 1, what="the refusal")
    other = trusting(authority.ca)
    other.set_ciphers("ECDHE-ECDSA-AES256-GCM-SHA384")
    with inside(c, other) as client:
        assert client.get("/", host=c.authority).status == 200
    assert c.metric(CONNECTS, origin=c.label, result="intercepted") == 1
    assert c.metric(CONNECTS, origin=c.label, result="distrusted") == 0


def test_a_client_that_is_reset_by_a_deadline_refuses_nothing(scene):
    _, c = scene(listen={"header_timeout": "300ms"})
    for _ in range(3):
        sock = connected(c)
        sock.settimeout(10)
        assert sock.recv(1) == b""
    until(lambda: c.metric(CONNECTS, origin=c.label, result="failed") == 3, what="their ends")
    assert refusals(c) == 0
