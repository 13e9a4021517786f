"""Listeners with a credentials_file: which requests need credentials, the reply without them, and who receives them."""
import base64
import concurrent.futures
import contextlib
import hashlib
import shutil
import socket
import ssl
import subprocess
import threading

import pytest
from harness.carpool import PROGRAM
from harness.h2_client import H2Client
from harness.wait import until
from harness.wire import Client

RESULTS = "carpool_downstream_authentications_total"
PASSWORD, TOKEN = "open sesame", "mF_9.B5f-4.1JqM"


def line(scheme, name, secret):
    return "%s %s %s\n" % (scheme, name, hashlib.sha256(secret.encode()).hexdigest())


def basic(name="alice", secret=PASSWORD):
    return "Proxy-Authorization", "Basic " + base64.b64encode(("%s:%s" % (name, secret)).encode()).decode()


def bearer(token=TOKEN):
    return "Proxy-Authorization", "Bearer " + token


USERS = "# who may use it\n" + line("basic", "alice", PASSWORD) + line("bearer", "ci", TOKEN)


@pytest.fixture
def users(tmp_path):
    path = tmp_path / "users"
    path.write_text(USERS)
    return path


@pytest.fixture
def scene(origin, carpool, users):
    """Returns an origin, and carpool whose listener requires credentials."""
    def make(listen=(), **more):
        o = origin()
        return o, carpool(listen={"credentials_file": str(users), **dict(listen)}, **more)
    return make


def replace(path, text):
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    fresh.rename(path)


def refused(response):
    return (response.status == 407 and "error=http_request_denied" in response.get("proxy-status") and
            response.all("proxy-authenticate") == ['Basic realm="carpool", charset="UTF-8"', 'Bearer realm="carpool"'])


def test_each_request_of_a_connection_needs_credentials(scene):
    o, c = scene()
    with c.client() as client:
        assert refused(client.get(o.url + "/1"))
        assert client.get(o.url + "/2", basic()).status == 200
        assert refused(client.get(o.url + "/3")), "the one before does not vouch for it"
        assert client.get(o.url + "/4", bearer()).status == 200
    assert o.targets() == ["/2", "/4"] and o.opened == 1
    until(lambda: [(r.get("user"), r["status"]) for r in c.access_log()] == [(None, 407), ("alice", 200), (None, 407), ("ci", 200)], what="the log")
    assert c.metric(RESULTS, result="accepted") == c.metric(RESULTS, result="missing") == 2


def test_the_origin_gets_neither_the_field_nor_loses_its_own(scene):
    o, c = scene()
    with c.client() as client:
        assert client.get(o.url + "/", basic(), ("Authorization", "Bearer mine"), ("Connection", "proxy-authorization")).status == 200
    with H2Client(c.address) as client:
        assert client.get("/", authority=o.authority, headers=[(basic()[0].lower(), basic()[1]), ("authorization", "Bearer mine")]).status == 200
    for seen in o.seen:
        assert seen.message.get("authorization") == "Bearer mine"
        assert not [h for h in seen.message.headers if "proxy-auth" in h[0]]


WRONG = {
    "another password": ([basic(secret="x")], "rejected"),
    "no such user": ([basic("mallory")], "rejected"),
    "a password as a token": ([bearer("opensesame")], "rejected"),
    "a token as a password": ([basic("ci", TOKEN)], "rejected"),
    "the digest of the password": ([basic(secret=hashlib.sha256(PASSWORD.encode()).hexdigest())], "rejected"),
    "two lines, both good": ([basic(), basic()], "malformed"),
    "two lines, one good": ([basic(secret="x"), basic()], "malformed"),
    "a list of two": ([("Proxy-Authorization", basic()[1] + ", " + bearer()[1])], "malformed"),
    "no base64": ([("Proxy-Authorization", "Basic !!!!")], "malformed"),
    "no colon": ([("Proxy-Authorization", "Basic YWxpY2U=")], "malformed"),
    "another scheme": ([("Proxy-Authorization", "Digest username=alice")], "malformed"),
    "nothing": ([("Proxy-Authorization", "")], "malformed"),
    "a huge value": ([bearer("x" * 50_000)], "malformed"),
    "the origin's field": ([("Authorization", basic()[1])], "missing"),
    "a similar name": ([("Proxy_Authorization", basic()[1])], "missing"),
}


@pytest.mark.parametrize("case", WRONG)
def test_other_credentials_are_refused_and_counted(scene, case):
    o, c = scene()
    fields, result = WRONG[case]
    with c.client() as client:
        assert refused(client.get(o.url + "/", *fields))
        assert client.get(o.url + "/good", basic()).status == 200, "the connection goes on"
    with H2Client(c.address) as client:
        response = client.get("/", authority=o.authority, headers=[(n.lower(), v) for n, v in fields])
        assert response.status == 407 and [v for n, v in response.headers if n == "proxy-authenticate"] == [
            'Basic realm="carpool", charset="UTF-8"', 'Bearer realm="carpool"']
        assert client.get("/good", authority=o.authority, headers=[(basic()[0].lower(), basic()[1])]).status == 200
    assert o.targets() == ["/good", "/good"]
    assert c.metric(RESULTS, result=result) == 2 and c.metric(RESULTS, result="accepted") == 2
    c.stop()  # writes all lines
    assert not any(PASSWORD in text or TOKEN in text or basic()[1] in text for text in c.output)


@pytest.mark.parametrize("request_line", ["GET http://%s/ HTTP/1.1", "GET / HTTP/1.1", "OPTIONS * HTTP/1.1", "GET http://%s/ HTTP/1.0", "CONNECT %s HTTP/1.1"])
def test_every_form_of_a_target_needs_them(scene, request_line):
    o, c = scene()
    first = request_line % o.authority if "%" in request_line else request_line
    head = first + "\r\nHost: " + o.authority + "\r\nMax-Forwards: 0\r\n"
    with c.client() as client:
        client.send(head.encode() + b"\r\n")
        assert refused(client.response())
    assert o.opened == 0
    with c.client() as client:
        client.send(head.replace("Max-Forwards: 0\r\n", "").encode() + b"%s: %s\r\n\r\n" % tuple(x.encode() for x in basic()))
        assert client.head().status == 200


def test_a_body_behind_a_refusal_is_no_request(scene):
    o, c = scene()
    inner = b"GET %s/smuggled HTTP/1.1\r\nHost: a\r\n%s: %s\r\n\r\n" % (o.url.encode(), *(x.encode() for x in basic()))
    with c.client() as client:
        client.send(b"POST %s/ HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % (o.url.encode(), len(inner)))
        response = client.response()
        assert refused(response) and not response.keeps_alive()
        client.send(inner)
        assert client.at_end()
    with c.client() as client:
        client.send(b"CONNECT %s HTTP/1.1\r\nHost: a\r\n\r\n" % o.authority.encode() + inner)
        response = client.response()
        assert refused(response) and not response.keeps_alive() and client.at_end()
    assert not o.seen and o.opened == 0


def test_a_refused_request_whose_body_has_arrived_leaves_the_connection_open(scene):
    o, c = scene()
    with c.client() as client:
        for size in (1, 1000, 8000):
            response = client.request("POST", o.url + "/", body=b"x" * size)
            assert refused(response) and response.keeps_alive()
        assert client.request("POST", o.url + "/", [basic()], body=b"body").status == 200
    assert len(o.seen) == 1
    with c.client() as client:
        client.send(b"POST %s/ HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbodyGET %s/next HTTP/1.1\r\nHost: a\r\n%s: %s\r\n\r\n"
                    % (o.url.encode(), o.url.encode(), *(x.encode() for x in basic())))
        assert refused(client.response()) and client.response().status == 200, "what follows the body is the next request"
    assert o.targets() == ["/", "/next"]


def test_tunnels_need_them_over_both_versions(scene):
    o, c = scene()
    with c.client() as client:
        client.ask("CONNECT", o.authority, [basic()], host=o.authority)
        assert client.head().status == 200
        client.send(b"GET /inside HTTP/1.1\r\nHost: x\r\n\r\n")
        assert client.response().status == 200
    with H2Client(c.address) as client:
        assert client.response(client.ask(method="CONNECT", authority=o.authority)).status == 407
        stream = client.ask(method="CONNECT", authority=o.authority, headers=[("proxy-authorization", bearer()[1])], end=False)
        assert client.until(lambda: client.responses[stream].headers) and client.responses[stream].status == 200
        client.send(stream, b"GET /inside HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", end=True)
        assert client.response(stream).body.startswith(b"HTTP/1.1 200")
    assert o.targets() == ["/inside"] * 2


def test_a_listener_with_a_fixed_origin_asks_too(origin, carpool, users):
    o = origin()
    c = carpool(listen={"credentials_file": str(users), "origin": o.url, "connect": False})
    with c.client() as client:
        assert refused(client.get("/1"))
        assert client.get("/2", basic()).status == 200
    assert o.targets() == ["/2"]


def test_only_the_schemes_of_the_file_are_offered(origin, carpool, users):
    users.write_text(line("bearer", "ci", TOKEN))
    o, c = origin(), carpool(listen={"credentials_file": str(users)})
    with c.client() as client:
        assert client.get(o.url + "/").all("proxy-authenticate") == ['Bearer realm="carpool"']


def test_a_replaced_file_applies_to_connections_that_exist(scene, users):
    o, c = scene()
    with c.client() as client:
        assert client.get(o.url + "/", basic()).status == 200
        replace(users, line("basic", "bob", "b") + line("basic", "alice", "new"))
        until(lambda: client.get(o.url + "/", basic("bob", "b")).status == 200, what="the new user")
        assert client.get(o.url + "/", basic()).status == 407
        assert client.get(o.url + "/", basic(secret="new")).status == 200
        response = client.get(o.url + "/")
        assert response.all("proxy-authenticate") == ['Basic realm="carpool", charset="UTF-8"']
    until(lambda: any('"files":1' in text.replace(" ", "") for text in c.output), what="the line of the reload")


@pytest.mark.parametrize("broken, named", [("", "lists no credentials"), (USERS + "basic planted\n", ":4: no SHA-256"), (None, "cannot be read")])
def test_a_broken_file_leaves_the_last_good_one_in_force(scene, users, broken, named):
    o, c = scene()
    users.unlink() if broken is None else replace(users, broken)
    c.admin("POST", "/reload")
    until(lambda: c.metric("carpool_reloads_total", result="refused") >= 1, what="the refusal")
    until(lambda: any(named in text for text in c.output), what="the line that names it")
    assert not any("planted" in text for text in c.output)
    with c.client() as client:
        assert client.get(o.url + "/", basic()).status == 200
        assert refused(client.get(o.url + "/"))
    replace(users, line("basic", "bob", "b"))
    with c.client() as client:
        until(lambda: client.get(o.url + "/", basic("bob", "b")).status == 200, what="the repaired file")


def test_a_reload_adds_and_removes_the_file(scene, users):
    o, c = scene()
    text = c.config.read_text()
    with c.client() as client:
        replace(c.config, text.replace('credentials_file = "%s"\n' % users, ""))
        until(lambda: client.get(o.url + "/").status == 200, what="no credentials are asked for")
        replace(c.config, text)
        until(lambda: client.get(o.url + "/").status == 407, what="they are asked for again")


def test_a_reload_removes_the_file_while_clients_are_refused(scene, users):
    """The list is read by every loop while the reload stores another one: long lists and credentials make that time long."""
    users.write_text("".join(line("bearer", "u%d" % n, "t%d" % n) for n in range(800)))
    o, c = scene(workers=4, log={"access": False})
    text = c.config.read_text()
    without = text.replace('credentials_file = "%s"\n' % users, "")
    assert without != text
    over, request = threading.Event(), b"GET %s/ HTTP/1.1\r\nHost: o\r\nProxy-Authorization: Bearer %s\r\n\r\n" % (o.url.encode(), b"A" * 3900)

    def drop(sock):
        with contextlib.suppress(OSError):
            while sock.recv(1 << 18):
                pass

    def guess():
        with contextlib.suppress(OSError), socket.create_connection(c.address, 10) as sock:
            reader = threading.Thread(target=drop, args=[sock])
            reader.start()
            while not over.is_set():
                sock.sendall(request * 8)
            sock.shutdown(socket.SHUT_RDWR)
            reader.join()
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        for _ in range(6):
            pool.submit(guess)
        try:
            until(lambda: c.metric(RESULTS, result="rejected") > 100, what="refusals on each loop")
            for now in [without, text] * 8:
                replace(c.config, now)
                assert c.admin("POST", "/reload").status == 200
        finally:
            over.set()
    with c.client() as client:
        assert client.get(o.url + "/").status == 407


def test_check_names_each_wrong_line_and_the_start_refuses(carpool, users):
    users.write_text(USERS + "alice:planted\nbasic bob planted\n")
    c = carpool(start=False, listen={"credentials_file": str(users)})
    said = c.check()
    row = next(n for n, text in enumerate(c.config.read_text().splitlines(), 1) if "credentials_file" in text)
    assert "%s:%d:" % (c.config, row) in said and "listen.credentials_file: %s:4: unknown scheme, expected" % users in said, said
    assert "%s:5: no SHA-256" % users in said and "planted" not in said
    done = subprocess.run([PROGRAM, "--config", c.config], capture_output=True, text=True, timeout=20)
    assert done.returncode == 1 and "users:4" in done.stderr and "planted" not in done.stderr
    users.write_text(USERS)
    assert c.check() == "ok\n"


def test_check_warns_of_passwords_in_plain_text(carpool, users, pki):
    c = carpool(start=False, listen={"credentials_file": str(users), "address": "0.0.0.0:3128"})
    said = c.check()
    assert said.startswith("ok\nwarning: ") and "in plain text" in said, said
    c = carpool(start=False, listen={"credentials_file": str(users), "address": "0.0.0.0:3128", "cert_file": pki.server, "key_file": pki.server_key})
    assert c.check() == "ok\n"


@pytest.fixture
def authority(tmp_path):
    folder = tmp_path / "ca"
    subprocess.run([PROGRAM, "ca", "init", folder, "--host", "localhost"], check=True, capture_output=True, timeout=60)
    return folder


@pytest.fixture
def intercepted(origin, carpool, users, pki, authority):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pki.server, pki.server_key)
    o = origin(tls=context)
    c = carpool(listen={"credentials_file": str(users)}, intercept={"ca_dir": str(authority)},
                origin=[{"uri": "https://localhost:%d" % o.port, "intercept": True, "upstream": {"tls": {"ca_file": pki.ca}}}])
    return o, c, "localhost:%d" % o.port


def connect(c, name, *fields):
    """Returns a client whose CONNECT got a response, and the response."""
    client = c.client()
    client.ask("CONNECT", name, fields, host=name)
    return client, client.head()


def test_an_intercepted_connect_vouches_for_its_requests(intercepted, authority):
    o, c, name = intercepted
    client, response = connect(c, name)
    assert refused(client.body_of(response, until_close=False)) and o.opened == 0
    client, response = connect(c, name, basic())
    assert response.status == 200
    context = ssl.create_default_context(cafile=str(authority / "ca.pem"))
    with Client(sock=context.wrap_socket(client.sock, server_hostname="localhost")) as inside:
        for _ in range(2):
            assert inside.get("/", host=name).status == 200
    until(lambda: [r.get("user") for r in c.access_log() if r.get("intercepted")] == ["alice"] * 2, what="the user of both")
    assert c.metric(RESULTS, result="accepted") == 1 and c.metric(RESULTS, result="missing") == 1
    assert c.metric("carpool_intercept_connects_total", result="intercepted") == 1


def test_a_connect_that_cannot_end_here_is_a_tunnel_of_its_user(intercepted, pki):
    o, c, name = intercepted
    client, response = connect(c, name, basic())
    assert response.status == 200
    context = ssl.create_default_context(cafile=str(pki.ca))
    context.set_alpn_protocols(["other"])
    sock = context.wrap_socket(client.sock, server_hostname="localhost")
    with Client(sock=sock) as inside:
        assert inside.get("/", host=name).status == 200
    until(lambda: [(r["method"], r.get("user"), r["status"]) for r in c.access_log()] == [("CONNECT", "alice", 200)], what="the tunnel's line")
    assert c.metric(RESULTS, result="accepted") == 1, "judged once"


def test_a_client_certificate_does_not_replace_them(scene, pki):
    o, c = scene(listen={"cert_file": pki.server, "key_file": pki.server_key, "client_ca_file": pki.ca})
    context = ssl.create_default_context(cafile=str(pki.ca))
    context.load_cert_chain(pki.client, pki.client_key)
    with Client(c.address, context, "localhost") as client:
        assert refused(client.get(o.url + "/"))
        assert client.get(o.url + "/", basic()).status == 200


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
@pytest.mark.parametrize("more", [[], ["--proxytunnel"], ["--proxytunnel", "--proxy-anyauth"]])
def test_curl_sends_what_it_is_asked_for(scene, more):
    o, c = scene()
    done = subprocess.run(["curl", "-sS", "--proxy", "http://127.0.0.1:%d" % c.address[1], "--proxy-user", "alice:" + PASSWORD, *more, "-o", "/dev/null",
                           "-w", "%{http_code}", o.url + "/"], capture_output=True, text=True, timeout=60)
    assert done.stdout == "200", (done, c.tail())


def credential(*arguments, secret=""):
    return subprocess.run([PROGRAM, "credential", *arguments], input=secret, capture_output=True, text=True, timeout=20)


def test_the_command_makes_a_line(carpool, users, origin):
    for scheme, name, secret in (("basic", "alice", PASSWORD), ("bearer", "ci", TOKEN)):
        for end in ("", "\n", "\r\n"):
            assert credential(scheme, name, secret=secret + end).stdout == line(scheme, name, secret)
    assert "warning" in credential("basic", "alice", secret="short").stderr
    made = credential("basic", "carol", secret="a much longer secret")
    assert made.stderr == ""
    users.write_text(made.stdout)
    o, c = origin(), carpool(listen={"credentials_file": str(users)})
    with c.client() as client:
        assert client.get(o.url + "/", basic("carol", "a much longer secret")).status == 200


@pytest.mark.parametrize("arguments, secret, says", [
    ([], "", "basic or bearer"), (["digest", "a"], "", "not basic or bearer"), (["basic"], "", "NAME"), (["basic", "a:b"], "", "not a name"),
    (["basic", "a", "planted"], "", "standard input"), (["basic", "a"], "", "no secret"), (["basic", "a"], "x" * 9999, "longer than"),
    (["basic", "a"], "one\ntwo\n", "control character"), (["bearer", "a"], "a b", "characters other than")])
def test_the_command_names_what_is_wrong(arguments, secret, says):
    done = credential(*arguments, secret=secret)
    assert done.returncode == 1 and says in done.stderr and not done.stdout, done


def test_a_burst_of_failures_costs_others_nothing(scene, users):
    users.write_text("".join(line("basic", "user%d" % n, str(n)) for n in range(600)))
    o, c = scene()
    with c.client() as attacker, socket.create_connection(c.address) as _:
        for n in range(200):
            assert attacker.get(o.url + "/", basic("user7", "guess%d" % n)).status == 407
        assert attacker.get(o.url + "/", basic("user599", "599")).status == 200
    assert c.metric(RESULTS, result="rejected") == 200
