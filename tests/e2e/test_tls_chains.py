"""Chains with an intermediate authority: revocation lists over all of it, and sessions that end with the first of its ends."""
import datetime
import socket
import ssl
import time

import pytest
from harness.chain import Chain
from harness.wait import until
from harness.wire import Client

HANDSHAKES = "carpool_downstream_handshakes_total"
BRIEF = datetime.timedelta(seconds=4)
versions = pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])


@pytest.fixture
def chain(tmp_path):
    return Chain(tmp_path)


def showing(chain, pki):
    context = ssl.create_default_context(cafile=pki.ca)
    context.load_cert_chain(chain.cert, chain.key)
    return context


def listener(carpool, pki, trusted):
    return carpool(listen={"cert_file": pki.server, "key_file": pki.server_key, "client_ca_file": trusted}, log={"level": "debug"})


def ask(c, o, context, session=None):
    """Returns whether the client got its response, whether it resumed, and its newest session."""
    try:
        with context.wrap_socket(socket.create_connection(c.address, 10), server_hostname="localhost", session=session) as sock:
            sock.sendall(b"GET %s/ HTTP/1.1\r\nHost: x\r\n\r\n" % o.url.encode())
            return bool(sock.recv(4096)), sock.session_reused, sock.session
    except (ssl.SSLError, ConnectionError):
        return False, False, None


def test_a_client_of_a_revoked_intermediate_authority_is_refused_with_the_reason(origin, carpool, pki, chain):
    o = origin()
    c = listener(carpool, pki, chain.trusted(chain.root.revoking(chain.middle), chain.middle.revoking()))
    assert not ask(c, o, showing(chain, pki))[0]
    until(lambda: c.metric(HANDSHAKES, result="failed") == 1, what="the refusal is counted")
    until(lambda: any("certificate revoked: middle" in line for line in c.output), what="the line with the reason")


def test_a_list_of_the_peers_issuer_is_enough_and_needed(origin, carpool, pki, chain):
    o = origin()
    assert ask(listener(carpool, pki, chain.trusted(chain.middle.revoking())), o, showing(chain, pki))[0]
    assert not ask(listener(carpool, pki, chain.trusted(chain.root.revoking())), o, showing(chain, pki))[0]


def test_an_origin_of_a_revoked_intermediate_authority_is_refused(origin, carpool, chain):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain.cert, chain.key)
    o = origin(tls=context)
    url = "https://localhost:%d/" % o.port
    with Client(carpool(upstream={"tls": {"ca_file": chain.trusted(chain.middle.revoking())}}).address) as client:
        assert client.get(url).status == 200
    c = carpool(upstream={"tls": {"ca_file": chain.trusted(chain.root.revoking(chain.middle), chain.middle.revoking())}})
    with Client(c.address) as client:
        response = client.get(url)
    assert response.status == 502 and "certificate revoked: middle" in response.get("proxy-status"), response


@versions
@pytest.mark.parametrize("ends", ["the intermediate authority", "the root's list"])
def test_a_session_of_a_client_ends_with_the_first_end_of_its_chain(origin, carpool, pki, tmp_path, version, ends):
    of_list = ends == "the root's list"
    chain = Chain(tmp_path, **({} if of_list else {"middle_life": BRIEF}))
    lists = [chain.root.revoking(life=BRIEF), chain.middle.revoking()] if of_list else []
    o, c = origin(), listener(carpool, pki, chain.trusted(*lists))
    context = showing(chain, pki)
    context.minimum_version = context.maximum_version = version
    served, _, session = ask(c, o, context)
    assert served
    resumed, limit = 0, time.monotonic() + 20
    while served and time.monotonic() < limit:  # each session comes from a resumption of the one before
        served, reused, newer = ask(c, o, context, session)
        session, resumed = newer or session, resumed + reused
    assert resumed > 0 and not served
    until(lambda: c.metric(HANDSHAKES, result="failed") == 1, what="the refusal is counted")
