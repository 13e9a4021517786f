"""carpool ca: an authority that applications trust by their environment, for its hosts alone."""
import base64
import concurrent.futures
import contextlib
import os
import pathlib
import re
import shlex
import shutil
import socket
import ssl
import stat
import subprocess
import sys

import pytest
from harness.acceptor import Acceptor
from harness.carpool import PROGRAM
from harness.java import compiled
from harness.ports import tcp_server
from harness.terminal import Terminal
from harness.wait import HANGS, until

NAME = "localhost"


def ca(*arguments, ok=True, **more):
    done = subprocess.run([PROGRAM, "ca", *map(str, arguments)], capture_output=True, text=True, timeout=60, **more)
    assert (done.returncode == 0) == ok, done
    return done.stdout if ok else done.stderr


def openssl(*arguments):
    return subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, text=True, timeout=60).stdout


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "ca"
    ca("init", made, "--host", NAME, "api.example.com")
    return made


def signed(folder, name, into):
    """A leaf for any name, signed with the authority's key by a third party."""
    key, request, leaf, extensions = (into / ("leaf." + end) for end in ("key", "csr", "pem", "ext"))
    openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=leaf", "-keyout", key, "-out", request)
    extensions.write_text("subjectAltName=DNS:%s\nauthorityKeyIdentifier=keyid\nextendedKeyUsage=serverAuth\n" % name)
    openssl("x509", "-req", "-in", request, "-CA", folder / "ca.pem", "-CAkey", folder / "ca.key", "-days", "1", "-extfile", extensions, "-out", leaf)
    return leaf, key


def test_processes_that_write_one_bundle_together_do_not_disturb_each_other(folder, tmp_path):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: ca("bundle", folder, "--trust", tmp_path / "trust"), range(24)))
    assert ssl.create_default_context(cafile=str(tmp_path / "trust" / "bundle.pem")).get_ca_certs()


def listeners():
    """One on each loopback address, on the same port: which one `localhost` names first depends on the machine."""
    first = tcp_server()
    try:
        return [first, socket.create_server(("::1", first.getsockname()[1]), family=socket.AF_INET6)]
    except OSError:  # without IPv6
        return [first]


@contextlib.contextmanager
def server(leaf, key):
    """Responds to every request with 204."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(leaf, key)
    listening = listeners()

    def serve(client):
        with contextlib.suppress(OSError), client:
            client.settimeout(10)
            with context.wrap_socket(client, server_side=True) as stream:
                stream.recv(65536)
                stream.sendall(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
    acceptors = [Acceptor(one, serve) for one in listening]
    try:
        yield listening[0].getsockname()[1]
    finally:
        for acceptor in acceptors:
            acceptor.stop()


def environment(folder):
    lines = ca("env", folder, "--format", "plain").splitlines()
    return dict(line.split("=", 1) for line in lines)


def test_the_authority_is_for_its_hosts_and_its_key_for_its_owner(folder):
    assert stat.S_IMODE((folder / "ca.key").stat().st_mode) == 0o600
    text = openssl("x509", "-in", folder / "ca.pem", "-noout", "-text")
    assert "X509v3 Name Constraints: critical" in text and "DNS:localhost" in text and "DNS:api.example.com" in text
    assert "CA:TRUE, pathlen:0" in text and "NIST CURVE: P-256" in text
    assert "IP:0.0.0.0/0.0.0.0" in text and "IP:0:0:0:0:0:0:0:0/0:0:0:0:0:0:0:0" in text, "no address at all"


def test_an_authority_that_covers_the_hosts_is_kept(folder):
    before = [(folder / name).read_bytes() for name in ("ca.pem", "ca.key")]
    assert ca("init", folder, "--host", "API.example.com.").startswith("kept %s/ca.pem: it covers api.example.com until " % folder)
    assert [(folder / name).read_bytes() for name in ("ca.pem", "ca.key")] == before


def test_an_authority_is_never_replaced_unasked(folder):
    before = (folder / "ca.pem").read_bytes()
    wrong = ca("init", folder, "--host", "other.test", ok=False)
    assert "ca.pem: does not cover other.test" in wrong and "--replace" in wrong
    (folder / "ca.key").chmod(0o644)
    assert "mode is 0644" in ca("init", folder, "--host", NAME, ok=False)
    assert (folder / "ca.pem").read_bytes() == before
    assert ca("init", folder, "--host", "other.test", "--replace").startswith("made ")
    assert (folder / "ca.pem").read_bytes() != before


def test_an_init_that_was_cut_off_is_made_up_for(tmp_path):
    (tmp_path / "ca.key").write_text("half")
    (tmp_path / "ca.pem.new").write_text("half")
    assert ca("init", tmp_path, "--host", NAME).startswith("made ")
    assert ca("init", tmp_path, "--host", NAME).startswith("kept ")


def test_two_that_start_together_make_one_authority(tmp_path):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        said = list(pool.map(lambda _: ca("init", tmp_path / "new", "--host", NAME), range(8)))
    assert sorted(line.split()[0] for line in said) == ["kept"] * 7 + ["made"]


def test_the_bundle_holds_the_systems_authorities_and_ours_once(folder):
    for _ in range(2):  # the second time by way of the first one's bundle
        said = ca("bundle", folder, env={**os.environ, **environment(folder)} if (folder / "bundle.pem").exists() else None)
        own = (folder / "ca.pem").read_text()
        bundle = (folder / "bundle.pem").read_text()
        assert bundle.count(own) == 1
        assert "%d authorities of the system" % (bundle.count("BEGIN CERTIFICATE") - 1) in said
    assert bundle.count("BEGIN CERTIFICATE") > 10
    assert "PRIVATE" not in bundle
    listed = openssl("pkcs12", "-in", folder / "bundle.p12", "-nokeys", "-passin", "pass:changeit")
    assert listed.count("BEGIN CERTIFICATE") == bundle.count("BEGIN CERTIFICATE")
    (folder / "ca.key").unlink()
    ca("bundle", folder)


@pytest.mark.parametrize("action", ["init", "bundle"])
def test_the_folder_for_applications_has_what_they_trust_and_no_key(folder, tmp_path, action):
    trust = tmp_path / "trust"
    said = ca(action, folder, "--trust", "%s/" % trust, *(["--host", NAME] if action == "init" else []))
    assert "made %s/bundle.pem and %s/bundle.p12" % (trust, trust) in said
    assert sorted(path.name for path in trust.iterdir()) == ["bundle.p12", "bundle.pem", "ca.pem"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in trust.iterdir()} == {0o644}
    own = (folder / "ca.pem").read_text()
    assert (trust / "ca.pem").read_text() == own and own in (trust / "bundle.pem").read_text()
    assert not any(b"PRIVATE" in path.read_bytes() for path in trust.iterdir())
    assert sorted(path.name for path in folder.iterdir()) == ["ca.key", "ca.pem"]
    assert environment(trust)["NODE_EXTRA_CA_CERTS"] == "%s/ca.pem" % trust


def test_the_environment_survives_a_shell(tmp_path):
    folder = tmp_path / "it's a folder"
    ca("init", folder, "--host", NAME)
    ca("bundle", folder)
    script = 'eval "$("$1" ca env "$2")"; printf "%s" "$SSL_CERT_FILE"'
    shown = subprocess.run(["sh", "-c", script, "sh", PROGRAM, folder], capture_output=True, text=True, check=True, timeout=20)
    assert shown.stdout == "%s/bundle.pem" % folder


@pytest.mark.parametrize("format", ["sh", "plain"])
def test_there_is_no_environment_of_files_that_do_not_exist(folder, tmp_path, format):
    """An application with such variables trusts no authority; a shell evaluates what is printed whatever the exit code is."""
    def env(of):
        done = subprocess.run([PROGRAM, "ca", "env", of, "--format", format], capture_output=True, text=True, timeout=20)
        assert done.stdout == "" or done.returncode == 0
        return done.returncode, done.stderr
    assert env(folder) == (1, "carpool: %s/bundle.pem: does not exist, so nothing is printed; write it first: carpool ca bundle %s\n" % (folder, folder))
    trust = tmp_path / "trust"
    code, why = env(trust)
    assert code == 1 and "%s/ca.pem: does not exist" % trust in why and why.endswith(
        "carpool ca bundle AUTHORITY --trust %s, with the folder that `carpool ca init` made as AUTHORITY\n" % trust)
    ca("bundle", folder, "--trust", trust)
    assert env(trust) == (0, "")
    (trust / "bundle.p12").unlink()
    assert env(trust)[0] == 1


def test_options_that_java_has_already_stay_before_those_of_the_environment(tmp_path):
    ca("init", tmp_path / "ca", "--host", NAME)
    ca("bundle", tmp_path / "ca")
    script = 'eval "$("$1" ca env "$2")"; printf "%s" "$JAVA_TOOL_OPTIONS"'

    def options(**more):
        return subprocess.run(["sh", "-c", script, "sh", PROGRAM, tmp_path / "ca"], env={"PATH": os.environ["PATH"], **more},
                              capture_output=True, text=True, check=True, timeout=20).stdout

    ours = options()
    assert ours.startswith("-Djavax.net.ssl.trustStore=")
    assert options(JAVA_TOOL_OPTIONS="-Xmx64m -Da='b c'") == "-Xmx64m -Da='b c' " + ours


@pytest.mark.parametrize("name", ["plain", "it's", "it's a folder", 'the "old" one', 'a"b', "it's \"old\"", "form\ffeed"])
def test_java_reads_the_name_of_any_folder_as_one_option(tmp_path, name):
    # Java's own rules are those of a shell's words without backslashes.
    folder = tmp_path / name
    ca("init", folder, "--host", NAME)
    ca("bundle", folder)
    options = subprocess.run(["sh", "-c", 'eval "$("$1" ca env "$2")"; printf "%s" "$JAVA_TOOL_OPTIONS"', "sh", PROGRAM, folder],
                             capture_output=True, text=True, check=True, timeout=20).stdout
    assert shlex.split(options)[0] == "-Djavax.net.ssl.trustStore=%s/bundle.p12" % folder and len(shlex.split(options)) == 3, options


def test_a_certificate_in_need_of_a_passphrase_is_refused_without_a_prompt(folder):
    encrypted = "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00112233445566778899AABBCCDDEEFF\n\n" + "A" * 24
    (folder / "ca.pem").write_text("-----BEGIN CERTIFICATE-----\n%s\n-----END CERTIFICATE-----\n" % encrypted)
    for arguments in (["bundle", folder], ["init", folder, "--host", NAME]):
        terminal = Terminal([PROGRAM, "ca", *arguments])
        try:
            assert terminal.end()[0] == 1
            terminal.until_written(b"ca.pem: contains no certificate", what="the reason")
            assert b"phrase" not in terminal.written
        finally:
            terminal.close()


@pytest.mark.skipif(shutil.which("java") is None, reason="there is no Java")
def test_java_finds_its_authorities_in_a_folder_whose_name_has_spaces(tmp_path):
    folder = tmp_path / "it's a folder"
    ca("init", folder, "--host", NAME)
    ca("bundle", folder)
    script = 'eval "$("$1" ca env "$2")"; exec java -XshowSettings:properties -version'
    shown = subprocess.run(["sh", "-c", script, "sh", PROGRAM, folder], capture_output=True, text=True, check=True, timeout=60)
    assert "javax.net.ssl.trustStore = %s/bundle.p12\n" % folder in shown.stderr, shown
    assert "javax.net.ssl.trustStoreType = PKCS12\n" in shown.stderr, shown


NODE = "require('https').get(process.argv[1], r => { console.log(r.statusCode); r.resume() }).on('error', e => { console.log(e.code); process.exit(1) })"
REQUESTS = "import requests, sys; print(requests.get(sys.argv[1]).status_code)"
HTTPX = "import httpx, sys; print(httpx.get(sys.argv[1]).status_code)"
SSL = "import ssl, sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).status)"
JAVA = """import java.net.*;
public class Ask { public static void main(String[] a) throws Exception {
  System.out.println(((HttpURLConnection) new URL(a[0]).openConnection()).getResponseCode()); } }
"""
GO = """package main
import ("fmt"; "net/http"; "os")
func main() { r, err := http.Get(os.Args[1]); if err != nil { fmt.Println(err); os.Exit(1) }; fmt.Println(r.StatusCode) }
"""


def clients(python):
    return {
        "curl": ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}"],
        "python ssl": [python, "-c", SSL], "requests": [python, "-c", REQUESTS], "httpx": [python, "-c", HTTPX],
        "node": ["node", "-e", NODE], "go": ["./ask"], "java": ["javac"],
    }


@pytest.mark.parametrize("client", ["curl", "python ssl", "requests", "httpx", "node", "go", "java"])
def test_clients_trust_the_authority_by_the_environment_alone(folder, tmp_path, client):
    command = clients(sys.executable)[client]
    if shutil.which("go" if client == "go" else command[0]) is None:
        pytest.skip("%s is not installed" % client)
    if client in ("requests", "httpx"):
        pytest.importorskip(client)
    (tmp_path / "Ask.java").write_text(JAVA)
    (tmp_path / "ask.go").write_text(GO)
    ca("bundle", folder)
    bare = {**os.environ, "NO_PROXY": "*"}
    if client == "go":
        subprocess.run(["go", "build", "-o", "ask", "ask.go"], check=True, timeout=HANGS, env={**bare, "GO111MODULE": "off"}, cwd=tmp_path)
    if client == "java":
        command = compiled("javac", tmp_path / "Ask.java", tmp_path)

    def ask(url, env):
        return subprocess.run([*command, url], capture_output=True, text=True, timeout=HANGS, env=env, cwd=tmp_path)
    with server(*signed(folder, NAME, tmp_path)) as port:
        url = "https://%s:%d/" % (NAME, port)
        trusting = ask(url, {**bare, **environment(folder)})
        assert trusting.returncode == 0 and trusting.stdout.strip() == "204", trusting
        doubting = ask(url, bare)
        assert doubting.returncode != 0, doubting


def test_a_stolen_key_signs_for_no_other_host(folder, tmp_path):
    leaf, _ = signed(folder, "bank.example", tmp_path)
    done = subprocess.run(["openssl", "verify", "-CAfile", folder / "ca.pem", leaf], capture_output=True, text=True, timeout=20)
    assert done.returncode != 0 and "permitted subtree violation" in done.stderr + done.stdout, done


@pytest.mark.parametrize("arguments, says", [
    ([], "needs init, bundle or env"), (["make", "d"], "`make` is not init, bundle or env"), (["init"], "needs a DIR"),
    (["init", "d"], "needs --host"), (["init", "d", "--host"], "--host needs a value"), (["init", "d", "--host", "*.example.com"], "*.example.com"),
    (["init", "d", "--host", "a:443"], "has a port"), (["init", "d", "--host", "a", "--days", "0"], "`0` is not a number of days"),
    (["bundle", "d", "--host", "a"], "`--host` is for init"), (["bundle", "d", "--days", "3"], "`--days` is for init"),
    (["env", "d", "--replace"], "`--replace` is for init"), (["init", "d", "--host", "a", "--format", "plain"], "`--format` is for env"), (["env", "d", "e"], "`e` is an unexpected argument"),
    (["env", "d", "--trust", "t"], "`--trust` is for init and bundle"), (["bundle", "d/", "--trust", "d"], "needs another folder than DIR"),
    (["init", "d", "--host", "a", "--trust", "./e/../d"], "needs another folder than DIR"),
    (["env", "d", "--format", "json"], "`json` is not sh or plain"), (["init", "d", "--hosts", "a"], "`--hosts` is not known")])
def test_wrong_use_is_exit_code_one_and_says_what_is_expected(arguments, says, tmp_path):
    done = subprocess.run([PROGRAM, "ca", *arguments], capture_output=True, text=True, timeout=20, cwd=tmp_path)
    assert done.returncode == 1 and says in done.stderr and not list(tmp_path.iterdir()), done


def test_the_folder_of_the_key_is_no_folder_of_trust_under_another_name(folder):
    link = folder.with_name("link")
    link.symlink_to(folder)
    before = sorted(folder.iterdir())
    assert "needs another folder than DIR" in ca("bundle", folder, "--trust", link, ok=False)
    assert sorted(folder.iterdir()) == before


def test_help_names_the_actions_and_flags():
    for arguments in (["--help"], ["init", "d", "--help"]):
        shown = ca(*arguments)
        assert all(word in shown for word in ("init", "bundle", "env", "--host", "--days", "--replace", "--format", "--trust")), shown


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    assert "%s/file" % tmp_path in ca("init", tmp_path / "file", "--host", NAME, ok=False)
    assert "ca.pem: No such file" in ca("bundle", tmp_path, ok=False)


def intercepting(folder, *hosts):
    return {"intercept": {"ca_dir": str(folder)}, "origin": [{"uri": "https://" + host, "intercept": True} for host in hosts]}


def checked(c):
    done = subprocess.run([PROGRAM, "--check", "--config", c.config], capture_output=True, text=True, timeout=20)
    return done.returncode, done.stderr


def test_check_and_start_refuse_a_host_that_the_authority_does_not_cover(carpool, folder):
    c = carpool(start=False, **intercepting(folder, NAME, "other.test"))
    line = c.config.read_text().splitlines().index('uri = "https://other.test"') + 2
    code, said = checked(c)
    assert code == 1 and ":%d:13: origin.intercept: `https://other.test` is outside the name constraints of %s/ca.pem" % (line, folder) in said, said
    command = said.rsplit("`carpool ", 1)[1].split("`")[0].split()
    assert command == ["ca", "init", str(folder), "--replace", "--host", NAME, "other.test"]
    started = subprocess.run([PROGRAM, "--config", c.config], capture_output=True, text=True, timeout=20)
    assert started.returncode == 1 and started.stderr == said, started
    assert subprocess.run([PROGRAM, *command], timeout=20).returncode == 0
    assert checked(c) == (0, "")


def test_check_refuses_an_authority_that_cannot_be_used(carpool, folder):
    c = carpool(start=False, **intercepting(folder, NAME))
    (folder / "ca.key").chmod(0o604)
    code, said = checked(c)
    assert code == 1 and "intercept.ca_dir: %s/ca.key: its mode is 0604" % folder in said and "carpool ca init" in said, said
    (folder / "ca.key").unlink()
    assert "ca.key: No such file" in checked(c)[1]


def reloads(c, result):
    return c.metric("carpool_reloads_total", result=result)


def test_a_new_authority_is_taken_and_an_unusable_one_is_refused(carpool, folder):
    c = carpool(**intercepting(folder, NAME))
    ca("init", folder, "--host", NAME, "--replace")
    c.admin("POST", "/reload")
    assert reloads(c, "refused") == 0
    (folder / "ca.pem").write_text("nonsense")
    until(lambda: reloads(c, "refused") >= 1, what="the file watch")
    until(lambda: "contains no certificate" in c.tail(), what="the reason in the log")


def test_a_process_with_the_key_writes_no_core(carpool, folder):
    c = carpool(inside=["prlimit", "--core=0:unlimited"], **intercepting(folder, NAME))
    limits = pathlib.Path("/proc/%d/limits" % c.process.pid).read_text()
    assert re.search(r"Max core file size +0 +0 ", limits), limits


def test_the_key_is_nowhere_to_be_read(carpool, folder):
    """Neither the log, nor any response of the admin address, nor the printed configuration contains a part of it."""
    c = carpool(log={"level": "trace"}, **intercepting(folder, NAME))
    pem = (folder / "ca.key").read_text()
    raw = openssl("pkey", "-in", folder / "ca.key", "-text", "-noout")
    secret = "".join(raw.split("priv:", 1)[1].split("pub:", 1)[0].split()).replace(":", "").lower()
    forms = {*pem.splitlines()[1:-1], secret, secret.upper(), "BEGIN PRIVATE KEY", base64.b64encode(bytes.fromhex(secret)).decode()}
    c.admin("POST", "/reload")
    with c.client() as client:
        client.request("CONNECT", "localhost:1")
    paths = [path for path, ways in c.get_json("/openapi.json")["paths"].items() if "get" in ways and "{" not in path and path != "/events"]
    shown = {path: c.admin("GET", path).body for path in paths}
    assert len(shown) > 10
    shown["print-config"] = subprocess.run([PROGRAM, "--print-config", "--config", c.config], capture_output=True, timeout=20, check=True).stdout
    c.stop()
    shown["log"] = c.tail(100_000).encode()
    assert b"carpool ready" in shown["log"] and str(folder).encode() in shown["/config"], "what is searched is what was said"
    for name, text in shown.items():
        found = [form for form in forms if form.encode() in text]
        assert not found, (name, found)
