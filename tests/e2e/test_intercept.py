"""Origins with intercept = true: CONNECT ends here, and its requests are sent on connections of the origin's pool."""
import re
import signal
import socket
import ssl
import subprocess
import threading
import urllib.parse

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from harness.authority import Authority
from harness.carpool import PROGRAM
from harness.h2_client import H2Client
from harness.intercept import CONNECTS, NAME, authority, connected, inside, scene, trusting  # noqa: F401
from harness.tls import shake_hands
from harness.wait import until
from harness.wire import Client, received


def test_requests_inside_connect_come_out_of_the_pool(scene, authority):
    o, c = scene()
    for n in range(5):
        with inside(c, trusting(authority.ca)) as client:
            response = client.get("/%d" % n, host=c.authority)
            assert response.status == 200 and response.get("via"), response
            assert client.get("/again", host=c.authority).status == 200
    assert o.opened == 1, "ten requests of five connections, one to the origin"
    assert o.targets()[:2] == ["/0", "/again"]
    until(lambda: c.metric(CONNECTS, origin=c.label, result="intercepted") == 5, what="five")
    assert c.metric("carpool_pool_opened_total", origin=c.label, cause="first") == 1


def test_metrics_and_explain_tell_what_became_of_connects(scene, authority):
    _, c = scene()
    with inside(c, trusting(authority.ca)) as client:
        assert client.get("/", host=c.authority).status == 200
    until(lambda: c.metric(CONNECTS, origin=c.label, result="intercepted") == 1, what="the CONNECT")
    assert c.metric("carpool_intercept_leaves") == c.metric("carpool_intercept_leaves_minted_total", result="minted") == 1
    assert 0 < c.metric("carpool_intercept_authority_expiry_seconds") <= 24 * 3600
    explained = c.get_json("/pools/%s/explain" % urllib.parse.quote(c.label, safe=""))["explanation"]
    assert "1 CONNECT ended here, and the requests inside used this pool (result intercepted)." in explained


def test_a_connect_that_arrives_during_the_drain_ends_here_too(scene, authority):
    o, c = scene(shutdown_grace="60s")
    sock = socket.create_connection(c.address, 20)
    sock.sendall(b"CONNECT ")  # a client that has sent nothing has one second
    until(lambda: c.metric("carpool_downstream_connections") == 1, what="its arrival")
    c.signal(signal.SIGTERM)
    until(lambda: c.admin("GET", "/readyz").status == 503, what="readyz 503")
    sock.sendall(b"%s HTTP/1.1\r\nHost: %s\r\n\r\n" % (c.authority.encode(), c.authority.encode()))
    with Client(sock=sock) as bare:
        assert bare.head().status == 200
        with Client(sock=trusting(authority.ca).wrap_socket(bare.sock, server_hostname=NAME)) as client:
            response = client.get("/", host=c.authority)
            assert (response.status, response.keeps_alive()) == (200, False)
    assert c.wait() == 0 and o.targets() == ["/"]


def test_explain_tells_nothing_of_connects_that_origins_share(origin, carpool, pki, authority):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pki.server, pki.server_key)
    o, plain = origin(tls=context), [origin() for _ in range(2)]
    c = carpool(origin=[{"uri": plain[0].url}, {"uri": "https://%s:%d" % (NAME, o.port), "intercept": True, "upstream": {"tls": {"ca_file": pki.ca}}}],
                intercept={"ca_dir": str(authority.folder)}, metrics={"max_origins": 1})
    c.authority = "%s:%d" % (NAME, o.port)
    with inside(c, trusting(authority.ca)) as client:
        assert client.get("/", host=c.authority).status == 200
    with c.client() as client:
        assert client.get(plain[1].url + "/").status == 200
    until(lambda: c.metric(CONNECTS, origin="other", result="intercepted") == 1, what="the CONNECT")
    for url in (plain[1].url, "https://" + c.authority):
        assert "CONNECT" not in " ".join(c.get_json("/pools/%s/explain" % urllib.parse.quote(url, safe=""))["explanation"])


def test_max_forwards_of_a_connect_means_nothing(scene, authority):
    """RFC 9110 §7.6.2: it applies to TRACE and OPTIONS alone."""
    o, c = scene()
    for value in (b"0", b"5"):
        sock = connected(c, fields=b"Max-Forwards: %s\r\n" % value)
        with Client(sock=trusting(authority.ca).wrap_socket(sock, server_hostname=NAME)) as client:
            assert client.get("/", host=c.authority).status == 200
    assert c.metric(CONNECTS, origin=c.label, result="intercepted") == 2 and o.opened == 1


def test_requests_inside_connect_get_the_fields_of_the_origin(scene, authority):
    o, c = scene(request={"headers": {"Authorization": "Bearer planted"}})
    with inside(c, trusting(authority.ca)) as client:
        assert client.request("GET", "/x", [("Authorization", "Basic mine")], host=c.authority).status == 200
    assert o.seen[0].message.all("authorization") == ["Bearer planted"]


def test_http2_inside_connect_is_selected_by_alpn(scene, authority):
    o, c = scene()
    sock = trusting(authority.ca, ("h2", "http/1.1")).wrap_socket(connected(c), server_hostname=NAME)
    assert sock.selected_alpn_protocol() == "h2"
    with H2Client(None, sock) as client:
        response = client.get("/h2", authority=c.authority, scheme="https")
        assert response.status == 200, response
        assert client.get("/h2", authority="other.test", scheme="https").status == 421
    assert o.targets() == ["/h2"]


@pytest.mark.parametrize("target, host", [("/x", "other.test"), ("https://other.test/x", "other.test"), ("http://%s/x" % NAME, NAME)])
def test_another_name_inside_is_421(scene, authority, target, host):
    o, c = scene()
    with inside(c, trusting(authority.ca)) as client:
        response = client.request("GET", target, host=host)
        assert response.status == 421 and "carpool" in response.get("proxy-status"), response
    assert not o.seen


def test_connect_inside_connect_is_421(scene, authority):
    o, c = scene()
    with inside(c, trusting(authority.ca)) as client:
        assert client.request("CONNECT", "other.test:443", host="other.test:443").status == 421
    assert not o.seen


def test_another_server_name_reaches_nothing(scene, authority):
    o, c = scene()
    context = trusting(authority.ca)
    context.check_hostname = False
    with inside(c, context, name="other.test") as client:
        assert client.get("/", host=c.authority).status == 421
    assert not o.seen


def test_what_is_not_tls_goes_on_as_a_tunnel(origin, carpool, pki, authority):
    o = origin()  # plain text, to an origin that is configured as https
    c = carpool(origin=[{"uri": "https://%s:%d" % (NAME, o.port), "intercept": True,
                         "upstream": {"tls": {"ca_file": pki.ca}}}], intercept={"ca_dir": str(authority.folder)}, dns={})
    target = "%s:%d" % (NAME, o.port)
    sock = connected(c, target)
    with Client(sock=sock) as client:
        assert client.get("/plain").status == 200
    assert o.targets() == ["/plain"]
    assert c.metric(CONNECTS, origin="https://" + target, result="not_tls") == 1


def test_a_tunnel_whose_head_is_too_large_when_carpool_repeats_it_ends_without_a_response_inside(origin, carpool, pki, authority):
    o = origin()
    c = carpool(listen={"max_headers": 5}, origin=[{"uri": "https://%s:%d" % (NAME, o.port), "intercept": True}],
                intercept={"ca_dir": str(authority.folder)}, dns={})
    with socket.create_connection(c.address, 20) as sock:
        sock.sendall(b"CONNECT %s:%d HTTP/1.0\r\n" % (NAME.encode(), o.port) + b"via: a\r\n" * 5 + b"\r\n")  # it needs a Host besides
        assert received(sock).split()[1] == b"200"
        sock.sendall(b"plain text")
        assert received(sock) == b""
    assert not o.seen


def test_a_client_of_another_protocol_gets_its_tunnel(scene, pki):
    o, c = scene(alpn=("foo",))
    with trusting(pki.ca, ("foo",)).wrap_socket(connected(c), server_hostname=NAME) as sock:
        assert sock.selected_alpn_protocol() == "foo", "from the origin itself"
    assert c.metric(CONNECTS, origin=c.label, result="alpn") == 1
    until(lambda: any('"not_intercepted":"alpn"' in line for line in c.output), what="its line")


@pytest.mark.parametrize("offered", [["-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256"], ["-sigalgs", "rsa_pss_rsae_sha256"], ["-groups", "P-521"]],
                         ids=["suite", "signature", "group"])
def test_a_client_whose_tls_does_not_suit_the_certificate_gets_its_tunnel(origin, carpool, pki, authority, tmp_path, offered):
    """For example one that has only cipher suites of RSA: its handshake with carpool would always fail."""
    cert, key = tmp_path / "rsa.pem", tmp_path / "rsa.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-out", cert, "-keyout", key], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    o = origin(lambda exchange: exchange.reply() is not None, tls=context)  # it closes after the response, as the client does
    target = "%s:%d" % (NAME, o.port)
    c = carpool(origin=[{"uri": "https://" + target, "intercept": True}], intercept={"ca_dir": str(authority.folder)})
    command = ["openssl", "s_client", "-proxy", "%s:%d" % c.address, "-connect", target, "-CAfile", cert, "-verify_return_error", "-quiet", "-ign_eof", "-crlf", *offered]
    done = subprocess.run(command, input="GET /x HTTP/1.1\nHost: localhost\nConnection: close\n\n", capture_output=True, text=True, timeout=30)
    assert done.stdout.startswith("HTTP/1.1 200"), done
    assert c.metric(CONNECTS, origin="https://" + target, result="no_common_tls") == 1
    until(lambda: any('"not_intercepted":"no_common_tls"' in line for line in c.output), what="its line")


def test_bytes_before_the_response_make_it_a_tunnel(scene, pki):
    o, c = scene()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = trusting(pki.ca).wrap_bio(incoming, outgoing, server_hostname=NAME)
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    sock = connected(c, early=outgoing.read())
    shake_hands(tls, incoming, outgoing, sock)
    assert c.metric(CONNECTS, origin=c.label, result="early") == 1
    sock.close()
    until(lambda: any('"not_intercepted":"early"' in line for line in c.output), what="its line")


def test_an_origin_without_intercept_is_a_tunnel_as_ever(scene, origin, pki):
    _, c = scene()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pki.server, pki.server_key)
    other = origin(tls=context)
    with inside(c, trusting(pki.ca), name="localhost", authority="127.0.0.1:%d" % other.port) as client:
        assert client.get("/", host="localhost").status == 200


def test_a_silent_client_after_connect_has_header_timeout(scene):
    _, c = scene(listen={"header_timeout": "300ms"})
    sock = connected(c)
    sock.settimeout(5)
    assert sock.recv(1) == b""
    until(lambda: c.metric("carpool_downstream_connections") == 0, what="nobody left")
    assert c.metric(CONNECTS, origin=c.label, result="failed") == 1


def test_a_hello_that_breaks_off_is_for_the_origin(origin, carpool, pki, authority):
    o = origin()
    c = carpool(origin=[{"uri": "https://%s:%d" % (NAME, o.port), "intercept": True, "upstream": {"tls": {"ca_file": pki.ca}}}],
                intercept={"ca_dir": str(authority.folder)}, listen={"header_timeout": "60s"})
    target = "%s:%d" % (NAME, o.port)
    sock = connected(c, target)
    sock.sendall(b"\x16\x03\x01\x02\x00\x01")
    sock.shutdown(socket.SHUT_WR)
    sock.settimeout(10)
    assert sock.recv(100) is not None, "the origin decides, long before header_timeout"
    assert c.metric(CONNECTS, origin="https://" + target, result="not_tls") == 1
    until(lambda: c.metric("carpool_downstream_connections") == 0, what="nobody left")


def test_a_client_that_is_silent_while_its_origin_goes_is_still_intercepted(scene, authority):
    _, c = scene(pool={"total": {"origin_idle_timeout": "1s"}}, listen={"header_timeout": "60s"})
    sock = connected(c)
    tables = re.split(r"(?m)^(?=\[)", c.config.read_text())
    c.config.write_text("".join(table for table in tables if not re.match(r"\[+(origin|intercept)", table)))
    assert c.admin("POST", "/reload").status == 200
    until(lambda: c.label not in c.admin("GET", "/pools").body.decode(), what="the pool is gone")
    with trusting(authority.ca).wrap_socket(sock, server_hostname=NAME):
        until(lambda: c.metric(CONNECTS, origin=c.label, result="intercepted") == 1, what="the handshake")


def one_by_one(sock, data):
    for byte in data:
        sock.sendall(bytes([byte]))


def test_a_hello_in_single_bytes_is_understood(scene, authority):
    _, c = scene()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = trusting(authority.ca).wrap_bio(incoming, outgoing, server_hostname=NAME)
    sock = connected(c)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while True:
        try:
            tls.do_handshake()
            break
        except ssl.SSLWantReadError:
            one_by_one(sock, outgoing.read())
            incoming.write(sock.recv(65536))
    one_by_one(sock, outgoing.read())
    until(lambda: c.metric(CONNECTS, origin=c.label, result="intercepted") == 1, what="the handshake")


def test_a_long_upload_and_its_answer_pass_whole(scene, authority):
    _, c = scene(lambda exchange: exchange.reply(body=exchange.read_body()))
    body = bytes(range(256)) * 40960
    with inside(c, trusting(authority.ca)) as client:
        client.sock.settimeout(60)
        assert client.request("POST", "/", body=body, host=c.authority).body == body


def test_a_drain_ends_it_like_any_client(scene, authority):
    _, c = scene()
    with inside(c, trusting(authority.ca)) as client:
        assert client.get("/", host=c.authority).status == 200
        c.signal(signal.SIGTERM)
        assert c.wait() == 0


def test_connect_in_a_stream_of_http2_is_a_tunnel_that_says_so(scene, pki):
    o, c = scene()
    with H2Client(c.address) as client:
        stream = client.ask(method="CONNECT", authority=c.authority, end=False)
        assert client.until(lambda: client.responses[stream].headers) and client.responses[stream].status == 200
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = trusting(pki.ca).wrap_bio(incoming, outgoing, server_hostname=NAME)
        response, said, done = client.responses[stream], 0, False
        while not done:
            try:
                tls.do_handshake()
                done = True
            except ssl.SSLWantReadError:
                client.send(stream, outgoing.read())
                assert client.until(lambda n=said: len(response.body) > n)
                incoming.write(response.body[said:])
                said = len(response.body)
        assert tls.getpeercert(), "the origin's own, which this client trusts"
        client.send(stream, outgoing.read(), end=True)
    until(lambda: c.metric(CONNECTS, origin=c.label, result="in_h2") == 1, what="the reason")
    until(lambda: any('"method":"CONNECT"' in line and '"not_intercepted":"in_h2"' in line for line in c.output), what="its line")


def test_the_access_log_says_that_it_was_intercepted(scene, authority):
    _, c = scene()
    with inside(c, trusting(authority.ca)) as client:
        assert client.get("/logged", host=c.authority).status == 200
    until(lambda: any('"/logged"' in line and '"intercepted":true' in line for line in c.output), what="the line")


def test_an_authority_that_cannot_sign_stops_the_start(carpool, tmp_path, pki):
    uri = {"uri": "https://localhost", "intercept": True}
    expired = Authority(tmp_path / "expired", [NAME], days=-1)
    elsewhere = Authority(tmp_path / "elsewhere", ["elsewhere.test"])
    names_alone = Authority(tmp_path / "names", [NAME], refused=())
    addresses_alone = Authority(tmp_path / "addresses", [])
    for folder, text in ((tmp_path / "none", "cannot be read"), (expired.folder, "has expired"), (elsewhere.folder, "https://localhost"),
                         (names_alone.folder, "leave IPv4 addresses open"), (addresses_alone.folder, "leave DNS names open")):
        c = carpool(start=False, origin=[uri], intercept={"ca_dir": str(folder)})
        done = subprocess.run([PROGRAM, "--config", c.config], capture_output=True, text=True, timeout=20)
        assert done.returncode == 1 and text in done.stdout + done.stderr, (folder, done)


KEYS = {"RSA": lambda: rsa.generate_private_key(65537, 2048), "P-384": lambda: ec.generate_private_key(ec.SECP384R1()),
        "Ed25519": ed25519.Ed25519PrivateKey.generate, "Ed448": ed448.Ed448PrivateKey.generate}


@pytest.mark.parametrize("make", KEYS.values(), ids=KEYS)
def test_the_key_of_an_authority_may_be_of_any_kind(scene, authority, make):
    other = Authority(authority.folder, [NAME], key=make())
    _, c = scene()
    with inside(c, trusting(other.ca)) as client:
        assert client.get("/", host=c.authority).status == 200


def test_check_says_why_an_authority_gives_no_certificate(carpool, tmp_path):
    clients_only = Authority(tmp_path / "clients", [NAME], more=[x509.ExtendedKeyUsage([x509.ExtendedKeyUsageOID.CLIENT_AUTH])])
    said = carpool(start=False, origin=[{"uri": "https://localhost", "intercept": True}], intercept={"ca_dir": str(clients_only.folder)}).check()
    assert "gets no certificate of %s: " % clients_only.ca in said and "purpose" in said and "name constraints" not in said, said


def test_a_changed_authority_is_used_without_a_restart(scene, authority):
    _, c = scene()
    old = authority.ca.read_text()
    Authority(authority.folder, [NAME])
    assert authority.ca.read_text() != old
    assert c.admin("POST", "/reload").status == 200

    def served():
        try:
            with inside(c, trusting(authority.ca)) as client:
                return client.get("/", host=c.authority).status == 200
        except ssl.SSLError:
            return False
    until(served, what="the new authority")


def test_many_at_once_share_the_pool(scene, authority):
    o, c = scene(pool={"size": 4})
    failed = []

    def work():
        for n in range(10):
            with inside(c, trusting(authority.ca)) as client:
                if client.get("/%d" % n, host=c.authority).status != 200:
                    failed.append(n)
    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed and o.opened <= 4
