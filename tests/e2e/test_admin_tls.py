"""The admin endpoint over TLS: protocols, client certificates, replaced files, the command line, and clients that misuse it."""
import contextlib
import json
import socket
import ssl
import subprocess

import pytest
from harness.carpool import PROGRAM
from harness.h2_client import H2Client
from harness.ports import free_port, tcp_server
from harness.tls import files, shake_hands, trusting  # noqa: F401
from harness.wait import until
from harness.wire import Client


def get(c, context, path, method="GET", headers=()):
    with Client(c.admin_address, context, "localhost") as client:
        return client.request(method, path, headers, host="localhost:%d" % c.admin_address[1])


@contextlib.contextmanager
def over_h2(c, context):
    sock = context.wrap_socket(socket.create_connection(c.admin_address, 20), server_hostname="localhost")
    assert sock.selected_alpn_protocol() == "h2"
    with H2Client(c.admin_address, sock=sock) as client:
        yield client


def metric(c, context, line):
    return any(one.startswith(line) for one in get(c, context, "/metrics").body.decode().splitlines())


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=20)


def test_both_protocols_answer_the_same_and_alpn_selects(carpool, pki, files):
    c = carpool(admin=files.settings())
    plain, h1 = trusting(pki), trusting(pki, ["http/1.1"])
    with over_h2(c, trusting(pki, ["h2", "http/1.1"])) as client:
        for path in ("/livez", "/version", "/config", "/openapi.json"):
            bodies = [get(c, context, path).body for context in (plain, h1)]
            assert bodies == [client.get(path, authority="localhost").body] * 2, path
        streams = [client.ask(("/metrics", "/readyz", "/pools")[i % 3], authority="localhost", scheme="https") for i in range(60)]
        assert {client.response(s).status for s in streams} == {200}
        events = client.ask("/events", authority="localhost")
        assert client.until(lambda: client.responses[events].body.count(b"event: ") == 2)
    assert metric(c, plain, 'carpool_admin_handshakes_total{result="full"}')
    assert metric(c, plain, 'carpool_certificate_end_timestamp_seconds{file="%s",use="admin"}' % files.cert) or \
        metric(c, plain, 'carpool_certificate_end_timestamp_seconds{use="admin",file="%s"}' % files.cert)


def test_a_request_in_the_flight_of_the_handshake_is_answered(carpool, pki, files):
    c = carpool(admin=files.settings())
    for alpn in ("http/1.1", "h2"):
        context = trusting(pki, [alpn])
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
        with socket.create_connection(c.admin_address, 10) as sock:
            shake_hands(tls, incoming, outgoing, sock)
            # Finished and the request, in one segment.
            request = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n" if alpn == "http/1.1" else b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"
            tls.write(request)
            sock.sendall(outgoing.read())
            response = b""
            while not response:
                incoming.write(sock.recv(65536))
                with contextlib.suppress(ssl.SSLWantReadError):
                    response = tls.read(100)
            assert response.startswith(b"HTTP/1.1 200" if alpn == "http/1.1" else b"\0\0"), response


def test_plain_text_and_no_common_protocol_are_refused_and_counted(carpool, pki, files):
    c = carpool(admin=files.settings())
    with socket.create_connection(c.admin_address, 10) as sock:
        sock.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"HTTP" not in sock.recv(100)
    with pytest.raises(ssl.SSLError):
        get(c, trusting(pki, ["spdy/3"]), "/livez")
    assert metric(c, trusting(pki), 'carpool_admin_handshakes_total{result="failed"} 2')


def test_silent_clients_keep_no_probe_out(carpool, pki, files):
    c = carpool(admin=files.settings())
    with contextlib.ExitStack() as stack:
        for i in range(200):
            sock = stack.enter_context(contextlib.closing(socket.create_connection(c.admin_address, 10)))
            sock.sendall(b"\x16\x03\x01\x02\x00\x01" if i % 2 else b"")
        assert get(c, trusting(pki), "/readyz").status == 200


def test_clients_must_present_a_certificate_where_authorities_are_named(carpool, pki, files):
    port = free_port()
    c = carpool(admin=files.settings(client_ca_file=pki.ca), metrics={"address": "127.0.0.1:%d" % port})
    assert get(c, trusting(pki, certificate=True), "/pools").status == 200
    with pytest.raises((ssl.SSLError, ConnectionError)):
        get(c, trusting(pki), "/livez")
    with over_h2(c, trusting(pki, ["h2"], certificate=True)) as client:
        assert client.get("/pools", authority="localhost").status == 200
    refused, shown = run("pools", "--config", c.config), run("pools", "--config", c.config, "--client-cert", pki.client, "--client-key", pki.client_key)
    assert refused.returncode == 2 and "certificate required" in refused.stderr, refused
    assert shown.returncode == 0, shown
    assert run("--config", c.config, "--health").returncode == 0  # at the [metrics] address


def test_a_command_says_what_is_missing_to_reach_an_instance_with_tls(carpool, pki, files):
    c = carpool(admin=files.settings())
    named = "localhost:%d" % c.admin_address[1]
    plain = run("pools", "--admin", named)
    assert plain.returncode == 2 and plain.stderr.endswith("the connection was closed; with TLS the address is https://HOST:PORT\n"), plain
    distrusted = run("pools", "--admin", "https://" + named)
    assert distrusted.returncode == 2 and "TLS handshake with %s: " % named in distrusted.stderr, distrusted
    assert distrusted.stderr.endswith("; --cacert FILE names its authorities\n"), distrusted


def test_pages_of_its_own_are_https(carpool, pki, files):
    c = carpool(admin=files.settings())
    own = "localhost:%d" % c.admin_address[1]
    for origin, status in (("https://" + own, 200), ("http://" + own, 403), ("https://evil.test", 403)):
        assert get(c, trusting(pki), "/log-level?level=info", "PUT", [("Origin", origin)]).status == status


def test_replaced_files_are_in_force_without_a_restart(carpool, pki, files):
    c = carpool(admin=files.settings())
    with Client(c.admin_address, trusting(pki), "localhost") as before:
        old = before.sock.getpeercert(True)
        assert before.request("GET", "/livez", host="localhost").status == 200
        files.write(*pki.issue("renewed", ["localhost"]))

        def renewed():
            with Client(c.admin_address, trusting(pki), "localhost") as client:
                return client.sock.getpeercert(True) != old
        until(renewed)
        assert before.request("GET", "/livez", host="localhost").status == 200
    files.key.write_text("no key")
    c.signal(1)
    until(lambda: any("admin.key_file: " in line for line in c.output))
    assert get(c, trusting(pki), "/readyz").status == 200


def test_a_reload_begins_and_ends_tls(carpool, pki, files):
    c = carpool()
    text = c.config.read_text()
    assert c.get_json("/livez")["status"] == "live"
    assert "[admin]\n" in text
    c.config.write_text(text.replace("[admin]\n", '[admin]\ncert_file = "%s"\nkey_file = "%s"\n' % (files.cert, files.key)))
    done = run("reload", "--admin", "127.0.0.1:%d" % c.admin_address[1])
    assert done.returncode == 0 or "with TLS the address is https" in done.stderr, done  # the file watch may be faster
    assert get(c, trusting(pki), "/livez").status == 200
    assert run("pools", "--config", c.config).returncode == 0
    c.config.write_text(text)
    done = run("reload", "--admin", "https://127.0.0.1:%d" % c.admin_address[1], "--cacert", pki.ca)
    assert done.returncode == 0 or "does not seem to speak TLS" in done.stderr, done
    assert c.get_json("/livez")["status"] == "live"


def test_check_names_the_line_of_an_incomplete_identity(tmp_path, files):
    for keys, wanted in (({"cert_file": files.cert}, "admin.cert_file: is set without key_file"), ({"key_file": files.key}, "admin.key_file: is set without cert_file"),
                         ({"client_ca_file": files.cert}, "admin.client_ca_file: is set without cert_file"),
                         ({"cert_file": tmp_path / "none.pem", "key_file": files.key}, "none.pem")):
        config = tmp_path / "check.toml"
        config.write_text("[admin]\n\n" + "".join('%s = "%s"\n' % one for one in keys.items()))
        done = run("--config", config, "--check")
        assert done.returncode == 1 and "check.toml:3:" in done.stderr and wanted in done.stderr, done


def test_commands_verify_the_instance(carpool, pki, files, tmp_path):
    c = carpool(admin=files.settings())
    address = "127.0.0.1:%d" % c.admin_address[1]
    assert run("pools", "--config", c.config).returncode == 0
    assert run("top", "--once", "--config", c.config, "--cacert", pki.ca).returncode == 0
    assert run("overload", "--admin", "https://%s/" % address, "--cacert", pki.ca).returncode == 0
    assert run("overload", "--admin", "https://localhost:%d" % c.admin_address[1], "--cacert", pki.ca).returncode == 0
    assert run("--config", c.config, "--health").returncode == 0
    for arguments, code, wanted in (
            (("--admin", "https://" + address), 2, "self-signed certificate in certificate chain|unable to get"),
            (("--admin", address), 2, "no answer"),
            (("--admin", "https://127.0.0.1"), 1, "needs a port"),
            (("--admin", address, "--cacert", pki.ca), 1, "--cacert needs --admin https://HOST:PORT"),
            (("--admin", "https://" + address, "--cacert", tmp_path / "none"), 1, "carpool: --cacert: %s: No such file" % (tmp_path / "none")),
            (("--admin", "https://" + address, "--client-cert", tmp_path), 1, "carpool: --client-cert: %s: is a directory" % tmp_path)):
        done = run("pools", *arguments)
        assert done.returncode == code and any(part in done.stderr for part in wanted.split("|")), done


def test_commands_send_no_token_to_another_server_at_the_address(pki, files, tmp_path):
    other, heard = pki.issue("squatter", ["localhost"]), []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*other)
    (tmp_path / "token").write_text("s3cret\n")
    with tcp_server() as server:
        config = tmp_path / "squatted.toml"
        config.write_text('[admin]\naddress = "127.0.0.1:%d"\ntoken_file = "%s"\ncert_file = "%s"\nkey_file = "%s"\n' % (
            server.getsockname()[1], tmp_path / "token", files.cert, files.key))
        process = subprocess.Popen([PROGRAM, "pools", "--config", config], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        with context.wrap_socket(server.accept()[0], server_side=True) as sock, contextlib.suppress(OSError):
            heard.append(sock.recv(1000))
        _, errors = process.communicate(timeout=20)
    assert process.returncode == 2 and "its certificate is not the one in %s" % files.cert in errors, errors
    assert heard in ([], [b""])


def test_a_foreign_address_demands_token_and_tls(carpool, pki, files, tmp_path):
    token, port = tmp_path / "token", free_port()
    token.write_text("s3cret\n")
    c = carpool(admin=files.settings(address="0.0.0.0:%d" % port, token_file=str(token)))
    c.admin_address = ("127.0.0.1", port)
    assert get(c, trusting(pki), "/pools").status == 401
    shown = run("pools", "--json", "--config", c.config)
    assert shown.returncode == 0 and json.loads(shown.stdout)["pools"] == [], shown
