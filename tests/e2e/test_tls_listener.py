"""A listener that speaks TLS with its clients: protocols, client certificates, replaced files, hostile handshakes."""
import concurrent.futures
import datetime
import json
import pathlib
import shutil
import socket
import ssl
import struct
import subprocess
import time

import pytest
from harness.authority import Authority
from harness.carpool import PROGRAM
from harness.h2_client import H2Client
from harness.intercept import NAME, connected
from harness.pki import Pki
from harness.tls import files, trusting  # noqa: F401
from harness.wait import until
from harness.wire import Client

HANDSHAKES = "carpool_downstream_handshakes_total"


def tls(c, context, host="localhost"):
    return Client(c.address, context, host)


@pytest.mark.parametrize("workers", [1, 2])
def test_http1_clients_reach_origins_over_one_connection(origin, carpool, pki, files, workers):
    o, c = origin(), carpool(workers=workers, listen=files.settings())
    with tls(c, trusting(pki, ["http/1.1"])) as client:
        assert client.sock.selected_alpn_protocol() == "http/1.1"
        for body in (b"", b"x" * 100_000):
            response = client.request("POST" if body else "GET", o.url + "/", body=body)
            assert response.status == 200, response
    assert c.metric(HANDSHAKES, result="full") == 1


def test_http2_is_what_alpn_selects_first(origin, carpool, pki, files):
    o, c = origin(), carpool(listen=files.settings())
    context = trusting(pki, ["h2", "http/1.1"])
    sock = context.wrap_socket(socket.create_connection(c.address, 20), server_hostname="localhost")
    assert sock.selected_alpn_protocol() == "h2"
    with H2Client(c.address, sock=sock) as client:
        streams = [client.ask("/%d" % n, authority=o.authority) for n in range(8)]
        assert [client.response(s).status for s in streams] == [200] * 8


def test_a_client_without_alpn_may_speak_either_version(origin, carpool, pki, files):
    o, c = origin(), carpool(listen=files.settings())
    with tls(c, trusting(pki)) as client:
        assert client.get(o.url + "/").status == 200
    sock = trusting(pki).wrap_socket(socket.create_connection(c.address, 20), server_hostname="localhost")
    with H2Client(c.address, sock=sock) as client:
        assert client.get("/", authority=o.authority).status == 200


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_curl_uses_it_as_an_https_proxy_and_as_a_gateway(origin, carpool, pki, files, version):
    o = origin()
    c = carpool(listen=files.settings(origin=o.url, connect=False))
    url = "https://localhost:%d/" % c.address[1]
    done = subprocess.run(["curl", "-sS", version, "--cacert", pki.ca, "-o", "/dev/null", "-w", "%{http_code}", url], capture_output=True, text=True)
    assert done.stdout == "200", (done, c.tail())
    forward = carpool(listen=files.settings())
    done = subprocess.run(["curl", "-sS", "--proxy", "https://localhost:%d" % forward.address[1], "--proxy-cacert", pki.ca, "-o", "/dev/null", "-w",
                           "%{http_code}", o.url + "/"], capture_output=True, text=True)
    assert done.stdout == "200", (done, forward.tail())


def test_a_tunnel_and_a_half_close_pass_through_it(origin, carpool, pki, files):
    o, c = origin(), carpool(listen=files.settings())
    with tls(c, trusting(pki)) as client:
        client.ask("CONNECT", o.authority, host=o.authority)
        assert client.head().status == 200
        client.send(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert client.head().status == 200


def test_a_client_certificate_is_demanded_and_verified(origin, carpool, pki, files, tmp_path):
    o, c = origin(), carpool(listen=files.settings(client_ca_file=pki.ca))
    with tls(c, trusting(pki, certificate=True)) as client:
        assert client.get(o.url + "/").status == 200
    (tmp_path / "other").mkdir()
    other = Pki(tmp_path / "other")
    foreign = trusting(pki)
    foreign.load_cert_chain(other.client, other.client_key)
    for context in (trusting(pki), foreign):
        with pytest.raises((ssl.SSLError, ConnectionError, EOFError, AssertionError)):
            with tls(c, context) as client:  # with TLS 1.3 the refusal arrives after the client's own last message
                client.get(o.url + "/")
    until(lambda: c.metric(HANDSHAKES, result="failed") == 2, what="both refusals are counted")
    assert c.metric(HANDSHAKES, result="full") == 1
    assert c.metric("carpool_requests_total", origin=o.url) == 1, "no request of the refused clients reached the origin"


def refused(c, context, url):
    """Returns whether a client with this context gets no response."""
    try:
        with tls(c, context) as client:
            client.get(url)
    except (ssl.SSLError, ConnectionError, EOFError, AssertionError):
        return True
    return False


def test_a_revoked_certificate_of_a_client_is_refused(origin, carpool, pki, files):
    o, c = origin(), carpool(listen=files.settings(client_ca_file=pki.revoking(pki.client)))
    assert refused(c, trusting(pki, certificate=True), o.url + "/")
    other = trusting(pki)
    other.load_cert_chain(*pki.issue("second-client", ["second.test"]))
    assert not refused(c, other, o.url + "/"), "one that the list does not name"
    assert c.metric(HANDSHAKES, result="failed") == 1


def test_a_revocation_list_that_has_ended_refuses_everybody(origin, carpool, pki, files):
    o, c = origin(), carpool(listen=files.settings(client_ca_file=pki.revoking(name="ended.pem", until=-datetime.timedelta(hours=1))))
    assert refused(c, trusting(pki, certificate=True), o.url + "/")


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_session_does_not_outlive_the_authorities_of_the_clients(origin, carpool, pki, files, tmp_path, version):
    authorities = tmp_path / "clients.pem"
    authorities.write_bytes(pathlib.Path(pki.ca).read_bytes())
    o, c = origin(), carpool(listen=files.settings(client_ca_file=str(authorities)))
    context = trusting(pki, certificate=True)
    context.minimum_version = context.maximum_version = version
    with tls(c, context) as client:
        assert client.get(o.url + "/").status == 200
        session = client.sock.session
    authorities.write_bytes(pathlib.Path(pki.revoking(pki.client, name="now.pem")).read_bytes())
    assert c.admin("POST", "/reload").status == 200
    with pytest.raises((ssl.SSLError, ConnectionError)):
        with context.wrap_socket(socket.create_connection(c.address, 10), server_hostname="localhost", session=session) as sock:
            sock.sendall(b"GET %s/ HTTP/1.1\r\nHost: x\r\n\r\n" % o.url.encode())
            assert not sock.recv(1), "no answer"
            raise ConnectionError("refused without an alert")


@pytest.mark.parametrize("cipher", ["AES256-SHA", "AES128-GCM-SHA256", "ECDHE-ECDSA-AES128-SHA256", "ECDHE-ECDSA-AES256-SHA"])
def test_suites_without_forward_secrecy_or_authenticated_encryption_are_refused(carpool, pki, files, cipher):
    c = carpool(listen=files.settings())
    context = trusting(pki)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(cipher + ":@SECLEVEL=0")
    with pytest.raises((ssl.SSLError, ConnectionError)):
        context.wrap_socket(socket.create_connection(c.address, 10), server_hostname="localhost")


@pytest.mark.parametrize("group, accepted", [("prime256v1", True), ("secp384r1", True), ("secp521r1", False)])
def test_groups_of_keys_are_those_of_every_client(carpool, pki, files, group, accepted):
    c = carpool(listen=files.settings())
    context = trusting(pki)
    context.set_ecdh_curve(group)
    if accepted:
        context.wrap_socket(socket.create_connection(c.address, 10), server_hostname="localhost").close()
        return
    with pytest.raises((ssl.SSLError, ConnectionError)):
        context.wrap_socket(socket.create_connection(c.address, 10), server_hostname="localhost")


def test_replaced_files_are_shown_to_new_clients_and_running_ones_go_on(origin, carpool, pki, files, tmp_path):
    o, c = origin(), carpool(listen=files.settings())
    (tmp_path / "other").mkdir()
    other = Pki(tmp_path / "other")
    with tls(c, trusting(pki)) as before:
        assert before.get(o.url + "/").status == 200
        files.write(other.server, other.server_key)

        def shown():
            try:
                with tls(c, trusting(other)) as client:
                    return client.get(o.url + "/").status == 200
            except ssl.SSLError:
                return False
        until(shown, what="the file watch reads the new files")
        assert before.get(o.url + "/").status == 200, "a connection made before goes on"
        response = json.loads(c.admin("POST", "/reload").body)
        assert response["status"] == "unchanged", response


def test_unusable_files_are_named_at_the_start_and_refuse_a_reload(origin, carpool, pki, files):
    c = carpool(listen=files.settings(), start=False)
    files.cert.write_text("no certificate")
    done = subprocess.run([PROGRAM, "--config", c.config], capture_output=True, text=True, timeout=20)
    assert done.returncode != 0
    assert "listen.cert_file: %s: no start line" % files.cert in done.stdout + done.stderr
    files.write(pki.server, pki.client_key)
    done = subprocess.run([PROGRAM, "--config", c.config], capture_output=True, text=True, timeout=20)
    assert "listen.key_file: %s: key values mismatch" % files.key in done.stdout + done.stderr
    files.write(pki.server, pki.server_key)
    c.start()
    files.key.write_text("no key")
    response = c.admin("POST", "/reload")
    assert response.status == 400 and "key_file" in response.body.decode(), response
    o = origin()
    with tls(c, trusting(pki)) as client:
        assert client.get(o.url + "/").status == 200, "the identity in force stays"


def test_check_demands_certificate_and_key_together(carpool, pki, files):
    for settings, text in (({"cert_file": str(files.cert)}, "is set without key_file"), ({"key_file": str(files.key)}, "is set without cert_file"),
                           ({"client_ca_file": pki.ca}, "is set without cert_file")):
        assert text in carpool(listen=settings, start=False).check()


def test_what_is_no_handshake_is_closed_and_counted(carpool, files):
    c = carpool(listen=files.settings(header_timeout="500ms"))
    for text in (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\xff\xff" + b"\x01" * 400, b"\0" * 100):
        with socket.create_connection(c.address, 10) as sock:
            sock.sendall(text)
            assert not drained(sock), "an alert at most, no HTTP"
    until(lambda: c.metric(HANDSHAKES, result="failed") + c.metric(HANDSHAKES, result="timeout") == 3, what="three failures")
    began = time.monotonic()
    with socket.create_connection(c.address, 30) as sock:
        assert sock.recv(1) == b"" and 0.45 < time.monotonic() - began < 8, "a silent client has header_timeout, not the 10 s of the default"
    until(lambda: c.metric("carpool_downstream_connections") == 0, what="all are gone")


def drained(sock):
    """Returns what is left of the bytes until FIN or reset, without TLS alerts."""
    got = b""
    try:
        while chunk := sock.recv(4096):
            got += chunk
    except ConnectionError:
        pass
    return got if got[:1] != b"\x15" else b""


def test_a_thousand_half_handshakes_cost_little_and_others_are_served(origin, carpool, pki, files, full):
    count = 4000 if full else 1000
    o, c = origin(), carpool(listen=files.settings(header_timeout="30s", max_connections=count + 100))
    with tls(c, trusting(pki)) as client:
        assert client.get(o.url + "/").status == 200
    before = c.rss()
    hello = client_hello()
    socks = [socket.create_connection(c.address, 10) for _ in range(count)]
    for sock in socks:
        sock.sendall(hello[:-1])  # all but the last byte: no handshake begins to compute
    until(lambda: c.metric("carpool_downstream_connections") >= count, what="all are accepted")
    with tls(c, trusting(pki)) as client:
        assert client.get(o.url + "/").status == 200
    each = (c.rss() - before) / count
    for sock in socks:
        sock.close()
    until(lambda: c.metric("carpool_downstream_connections") == 0, what="all are gone")
    assert each < 4 * 1024, each


@pytest.mark.parametrize("way", ["listener", "intercepted"])
def test_handshakes_without_the_last_message_of_the_client_are_bounded_and_end(origin, carpool, pki, files, tmp_path, way):
    """OpenSSL holds buffers for messages of the largest size until a handshake is complete."""
    listen, count, hello = {"header_timeout": "120s", "max_connections": 1000}, 300, client_hello()
    if way == "listener":
        c = carpool(listen=files.settings(**listen))
    else:
        authority = Authority(tmp_path / "ca", [NAME])
        c = carpool(listen=listen, intercept={"ca_dir": str(authority.folder)}, origin=[{"uri": "https://localhost:1", "intercept": True}])

    def half():
        sock = socket.create_connection(c.address, 10) if way == "listener" else connected(c, "localhost:1")
        sock.sendall(hello)
        assert sock.recv(1) == b"\x16", "carpool's messages follow"
        return sock
    first = [half() for _ in range(50)]
    before = c.rss()
    socks = [half() for _ in range(count)]
    each = (c.rss() - before) / count
    c.config.write_text(c.config.read_text().replace("120s", "1s"))
    assert c.admin("POST", "/reload").status == 200
    last = half()
    while last.recv(65536):  # until header_timeout ends it
        pass
    for sock in first + socks:
        sock.close()
    until(lambda: c.metric("carpool_downstream_connections") == 0, what="all are gone")
    assert c.metric(HANDSHAKES, result="timeout") == 1
    assert each < 48 * 1024, each


def client_hello():
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    one = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        one.do_handshake()
    return outgoing.read()


LONG_HELLO = b"\x16\x03\x03\x00\x09" + b"\x01\x02\x01\x40" + b"begin"  # a few bytes of a message that announces 131,392


@pytest.mark.parametrize("before", ["nothing", "a warning", "HelloRetryRequest"])
def test_a_hello_that_announces_more_than_17_kib_is_refused(carpool, files, before):
    """OpenSSL reserves memory for all that is announced, and keeps it until header_timeout."""
    c = carpool(listen=files.settings(header_timeout="30s"))
    with socket.create_connection(c.address, 10) as sock:
        if before == "a warning":
            sock.sendall(b"\x15\x03\x03\x00\x02\x01\x29")
        if before == "HelloRetryRequest":  # carpool does not support the group of the client's key
            own, other = bytes.fromhex("003300260024001d0020"), bytes.fromhex("003300260024001e0020")
            assert own in client_hello()
            sock.sendall(client_hello().replace(own, other))
            assert sock.recv(4096)[5] == 2, "a ServerHello"
            sock.sendall(b"\x14\x03\x03\x00\x01\x01")
        sock.sendall(LONG_HELLO)
        drained(sock)
    until(lambda: c.metric(HANDSHAKES, result="failed") == 1, what="the count")


def test_handshakes_beyond_inline_handshakes_run_as_tasks(origin, carpool, pki, files):
    o, c = origin(), carpool(listen=files.settings(), threads={"inline_handshakes": 1})

    def one(_):
        with tls(c, trusting(pki)) as client:
            return client.get(o.url + "/").status
    with concurrent.futures.ThreadPoolExecutor(8) as many:
        assert set(many.map(one, range(64))) == {200}
    assert c.metric("carpool_exec_tasks_total") > 0
    assert c.metric(HANDSHAKES, result="full") + c.metric(HANDSHAKES, result="resumed") == 64


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_handshake_goes_to_another_thread_and_back_once(carpool, pki, files, version):
    c, count = carpool(listen=files.settings(), threads={"inline_handshakes": 1}), 20
    context = trusting(pki)
    context.minimum_version = context.maximum_version = version
    before = c.metric("carpool_exec_tasks_total")
    began = time.monotonic()
    for _ in range(count):
        context.wrap_socket(socket.create_connection(c.address, 10), server_hostname="localhost").close()
    inline = 1 + time.monotonic() - began
    looks = []  # each is a task
    until(lambda: looks.append(None) or c.metric(HANDSHAKES, result="full") == count, what="all are complete")
    tasks = c.metric("carpool_exec_tasks_total") - before
    steps = 2 if version == ssl.TLSVersion.TLSv1_2 else 1  # the keys of TLS 1.2 are exchanged with the second one
    # Other tasks, such as those of a certificate's watch, are counted too; a second hand-over of each would double the number.
    assert steps * (count - inline) <= tasks < 1.5 * steps * count + len(looks), tasks


def test_a_session_is_resumed_by_a_ticket(origin, carpool, pki, files):
    o, c = origin(), carpool(listen=files.settings())
    context = trusting(pki)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    first = context.wrap_socket(socket.create_connection(c.address, 10), server_hostname="localhost")
    session = first.session
    first.close()
    again = context.wrap_socket(socket.create_connection(c.address, 10), server_hostname="localhost", session=session)
    assert again.session_reused
    again.close()
    until(lambda: c.metric(HANDSHAKES, result="resumed") == 1, what="it is counted")


def test_term_ends_handshakes_at_once(carpool, files):
    c = carpool(listen=files.settings(header_timeout="60s"), shutdown_grace="60s")
    with socket.create_connection(c.address, 10):
        until(lambda: c.metric("carpool_downstream_connections") == 1, what="it is accepted")
        began = time.monotonic()
        c.stop()
        assert time.monotonic() - began < 15, "neither shutdown_grace nor header_timeout"


def test_the_key_is_in_no_answer_and_no_log(carpool, pki, files):
    c = carpool(listen=files.settings(), log={"level": "trace"})
    with tls(c, trusting(pki)):
        pass
    secret = pathlib.Path(pki.server_key).read_text().splitlines()[1]
    for path in ("/config", "/config.toml", "/metrics", "/pools", "/connections", "/readyz"):
        assert secret not in c.admin("GET", path).body.decode(errors="replace"), path
    assert secret not in "\n".join(c.output)


@pytest.mark.parametrize("way", ["http/1.0", "tunnel"])
def test_what_breaks_off_ends_without_close_notify(origin, carpool, pki, files, way):
    def handler(exchange):
        exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")
        exchange.stream.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset, not FIN
        return False
    o, c = origin(handler), carpool(listen=files.settings())
    raw = socket.create_connection(c.address, 20)
    with trusting(pki, ["http/1.1"]).wrap_socket(raw, server_hostname="localhost", suppress_ragged_eofs=False) as sock:
        if way == "tunnel":
            sock.sendall(b"CONNECT %s HTTP/1.1\r\nHost: x\r\n\r\n" % o.authority.encode())
            assert sock.recv(4096).startswith(b"HTTP/1.1 200")
            sock.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        else:
            sock.sendall(b"GET %s/ HTTP/1.0\r\n\r\n" % o.url.encode())
        with pytest.raises((ssl.SSLEOFError, ConnectionResetError)):
            while sock.recv(4096):  # b"" would be close_notify: an end in order
                pass


def test_a_connection_keeps_its_scheme_when_a_reload_takes_tls_from_its_listener(origin, carpool, pki, files):
    plain, secure = origin(), origin(tls=server_context(pki))
    c = carpool(listen=files.settings(), upstream={"tls": {"ca_file": pki.ca}})
    host = "localhost:%d" % secure.port
    with tls(c, trusting(pki, ["http/1.1"])) as client:
        assert client.get("/", host=host).status == 200
        text = c.config.read_text()
        c.config.write_text("\n".join(line for line in text.splitlines() if not line.startswith(("cert_file", "key_file"))))
        assert c.admin("POST", "/reload").status == 200
        assert client.get("/", host=host).status == 200, "still https: the connection is secured"
    with Client(c.address) as client:
        assert client.get("/", host=plain.authority).status == 200, "new clients speak plain text"


def server_context(pki):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pki.server, pki.server_key)
    return context
