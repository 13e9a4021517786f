"""Clients inside a CONNECT that try to reach more than its origin, or around the rules of that origin."""
import ssl
import subprocess

import pytest
from harness.h2_client import H2Client
from harness.intercept import CONNECTS, NAME, authority, connected, inside, scene, trusting  # noqa: F401
from harness.wait import until


@pytest.fixture
def two(origin, carpool, pki, authority):
    """Two intercepted origins of one host, with rules, at the ports of `origins`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pki.server, pki.server_key)
    origins = [origin(tls=context), origin(tls=context)]
    tables = [{"uri": "https://%s:%d" % (NAME, o.port), "intercept": True, "allow": ["GET /v1/*"], "upstream": {"tls": {"ca_file": pki.ca}}} for o in origins]
    c = carpool(origin=tables, intercept={"ca_dir": str(authority.folder)})
    c.authority, c.label = tables[0]["uri"].removeprefix("https://"), tables[0]["uri"]
    return origins, c


def plain_text(c, _):
    with connected(c) as sock:
        sock.sendall(b"GET /v2/x HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert sock.recv(1) == b""


def other_protocol(c, pki):
    trusting(pki.ca, ("other",)).wrap_socket(connected(c), server_hostname=NAME).close()


def distrust(c, pki):
    with pytest.raises(ssl.SSLCertVerificationError):
        trusting(pki.ca).wrap_socket(connected(c), server_hostname=NAME)
    until(lambda: c.metric(CONNECTS, origin=c.label, result="refused") == 1, what="the refusal")
    trusting(pki.ca).wrap_socket(connected(c), server_hostname=NAME).close()


@pytest.mark.parametrize("way, result", [(plain_text, "not_tls"), (other_protocol, "alpn"), (distrust, "distrusted")])
def test_a_connect_that_cannot_end_here_is_no_tunnel_around_the_rules(two, pki, way, result):
    """The client has its 200 before carpool knows what it speaks, so the refusal is the end of the connection."""
    origins, c = two
    with pytest.raises((ConnectionResetError, ssl.SSLEOFError)):
        way(c, pki)
    until(lambda: c.metric(CONNECTS, origin=c.label, result=result) == 1, what="the reason")
    until(lambda: any("refused by the rules of the origin" in line for line in c.output), what="the line that says so")
    assert [o.opened for o in origins] == [0, 0]


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_ticket_of_one_origin_is_worth_nothing_at_another(two, authority, version):
    origins, c = two
    context = trusting(authority.ca)
    context.minimum_version = context.maximum_version = version

    def visit(o, session=None):
        name = "%s:%d" % (NAME, o.port)
        with context.wrap_socket(connected(c, name), server_hostname=NAME, session=session) as sock:
            sock.sendall(b"GET /v1/x HTTP/1.1\r\nHost: %s\r\n\r\n" % name.encode())
            assert sock.recv(4096).startswith(b"HTTP/1.1 200 ")
            return sock.session, sock.session_reused
    ticket, _ = visit(origins[0])
    assert visit(origins[1], ticket)[1] is False
    assert visit(origins[0], ticket)[1] is True


def test_no_early_data_and_no_renegotiation_are_accepted(two, authority):
    """Early data can be replayed (RFC 8446 §8), and a renegotiation could change who the client is."""
    _, c = two

    def visit(text, *arguments):
        command = ["openssl", "s_client", "-proxy", "%s:%d" % c.address, "-connect", c.authority, "-CAfile", authority.ca, "-verify_return_error", *arguments]
        return subprocess.run(command, input=text, capture_output=True, text=True, timeout=30)
    request = "GET /v1/x HTTP/1.1\nHost: %s\nConnection: close\n\n" % c.authority
    shown = visit(request, "-tls1_3", "-crlf", "-ign_eof").stdout
    assert "Max Early Data: 0" in shown, shown
    renegotiating = visit("R\n" + request, "-tls1_2")
    assert "no renegotiation" in renegotiating.stderr and "HTTP/1.1" not in renegotiating.stdout, renegotiating


@pytest.mark.parametrize("host, status", [
    ("LOCALHOST", 200), ("localhost.", 200), ("127.0.0.1", 421), ("127.1", 421), ("localhost.test", 421), ("xn--localhost-", 421), ("localhost@other.test", 400)])
def test_only_the_name_of_connect_leads_to_the_origin(two, authority, host, status):
    """A name is compared in its canonical spelling; an address is no name, and the port counts."""
    origins, c = two
    port = origins[0].port
    with inside(c, trusting(authority.ca)) as client:
        assert client.get("/v1/x", host="%s:%d" % (host, port)).status == status
    sock = trusting(authority.ca, ("h2",)).wrap_socket(connected(c), server_hostname=NAME)
    with H2Client(None, sock) as client:
        assert client.get("/v1/x", authority="%s:%d" % (host, port), scheme="https").status == status
        for other in (NAME, "%s:%d" % (NAME, origins[1].port)):
            assert client.get("/v1/x", authority=other, scheme="https").status == 421
        assert client.get("/v1/x", authority=c.authority, scheme="http").status == 421
    assert origins[1].opened == 0 and all(target == "/v1/x" for target in origins[0].targets())
