"""The files that a configuration names: `--check` refuses what the start refuses, at the line that names the file."""
import re
import subprocess

import pytest
from harness.carpool import PROGRAM

SERVER = {"cert_file": "server", "key_file": "server_key"}
IDENTITY = {"cert_file": "client", "key_file": "client_key"}
TABLES = {
    "listen": ('[[listen]]\naddress = "127.0.0.1:0"\n', "", {**SERVER, "client_ca_file": "ca"}),
    "admin": ("", "", {**SERVER, "client_ca_file": "ca"}),
    "upstream": ("", ".tls", {**IDENTITY, "ca_file": "ca"}),
    "origin": ('[[origin]]\nuri = "https://a.test"\n', ".upstream.tls", {**IDENTITY, "ca_file": "ca"}),
}


def written(folder, table, files):
    """Writes a configuration with a table that names the files."""
    before, below, _ = TABLES[table]
    head = before if not below or not before else before + "[%s%s]\n" % (table, below)
    lines = (head or "[%s%s]\n" % (table, below)) + "".join('%s = "%s"\n' % named for named in files.items())
    rest = ("" if table == "listen" else '[[listen]]\naddress = "127.0.0.1:0"\n') + (
        "" if table == "admin" else "[admin]\nenabled = false\n")
    config = folder / "c.toml"
    config.write_text((lines if table != "admin" else lines + 'address = "127.0.0.1:0"\n') + rest)
    return config


def ran(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=20)


def refused(config, key):
    """Returns what --check says of `key`, at its line; the start says it too."""
    done = ran("--config", config, "--check")
    row = next(n for n, text in enumerate(config.read_text().splitlines(), 1) if text.startswith(key.rsplit(".", 1)[1] + " "))
    said = re.search(r"^%s:%d:\d+: %s: (.+)$" % (re.escape(str(config)), row, re.escape(key)), done.stdout + done.stderr, re.M)
    assert done.returncode == 1 and said, (done.stdout, done.stderr)
    assert (done.stdout + done.stderr).count("\n") == 1, "one error"
    started = ran("--config", config)
    assert started.returncode == 1 and said.group(1) in started.stderr, started.stderr
    return said.group(1)


@pytest.mark.parametrize("content", ["", "garbage", "-----BEGIN CERTIFICATE-----\nMIIB\n"], ids=["empty", "garbage", "cut"])
@pytest.mark.parametrize("table, key", [(table, key) for table, (_, _, files) in TABLES.items() for key in files])
def test_a_file_that_tls_cannot_use_is_an_error_of_its_line(tmp_path, pki, table, key, content):
    files = {name: getattr(pki, file) for name, file in TABLES[table][2].items()}
    assert ran("--config", written(tmp_path, table, files), "--check").stdout == "ok\n"
    bad = tmp_path / "bad.pem"
    bad.write_text(content)
    config = written(tmp_path, table, {**files, key: bad})
    said = refused(config, table + TABLES[table][1] + "." + key)
    assert said.startswith(str(bad) + ": ") and ", expected " in said and said.endswith(" in PEM"), said


@pytest.mark.parametrize("table", TABLES)
def test_the_key_of_another_certificate_is_an_error_of_the_key(tmp_path, pki, table):
    files = {name: getattr(pki, file) for name, file in TABLES[table][2].items()}
    config = written(tmp_path, table, {**files, "key_file": pki.wrong_name_key})
    assert "mismatch" in refused(config, table + TABLES[table][1] + ".key_file")


@pytest.mark.parametrize("table, key, rest", [
    ("[[listen]]", "listen.address", ""), ("[admin]", "admin.address", '[[listen]]\naddress = "127.0.0.1:0"\n'),
    ("[metrics]", "metrics.address", '[[listen]]\naddress = "127.0.0.1:0"\n'),
    ("[handover]", "handover.address", '[[listen]]\naddress = "127.0.0.1:0"\n')], ids=["listen", "admin", "metrics", "handover"])
def test_a_unix_socket_that_cannot_be_made_is_an_error_of_its_line(tmp_path, table, key, rest):
    def checked(path):
        config = tmp_path / "c.toml"
        config.write_text(rest + '%s\naddress = "unix:%s"\n' % (table, path) + ("" if table == "[admin]" else "[admin]\nenabled = false\n"))
        done = ran("--config", config, "--check")
        line = rest.count("\n") + 2
        said = re.search(r"^(warning: )?%s:%d:\d+: %s: (.+)$" % (re.escape(str(config)), line, re.escape(key)), done.stderr, re.M)
        return said and (said.group(1) or "") + said.group(2), done.returncode
    file = tmp_path / "file"
    file.write_text("precious")
    assert checked(tmp_path / "socket") == (None, 0)
    said, status = checked(tmp_path / "missing" / "socket")  # a service manager may make it
    assert said.startswith("warning: %s/missing cannot be written: No such file or directory, expected " % tmp_path) and status == 0
    for path, why in ((file / "socket", "%s is not a folder, expected " % file), (file, "%s exists and is not a socket, expected " % file)):
        said, status = checked(path)
        assert said.startswith(why) and status == 1
    assert file.read_text() == "precious" and sorted(one.name for one in tmp_path.iterdir()) == ["c.toml", "file"]


def test_files_that_no_connection_uses_are_not_read(tmp_path):
    bad = tmp_path / "bad.pem"
    bad.write_text("garbage")
    config = tmp_path / "c.toml"
    config.write_text('[[origin]]\nuri = "http://a.test"\n[origin.upstream.tls]\nca_file = "%s"\n'
                      '[admin]\nenabled = false\ncert_file = "%s"\nkey_file = "%s"\n' % (bad, bad, bad))
    assert ran("--config", config, "--check").stdout == "ok\n"


@pytest.mark.parametrize("table, key", [("[upstream]", "upstream"), ('[[origin]]\nuri = "http://a.test"\n[origin.upstream]', "origin.upstream")],
                         ids=["upstream", "origin"])
@pytest.mark.parametrize("content, why", [(None, "cannot be read"), ("a-b", "has no colon"), ("a:b\x01", "a control character")],
                         ids=["missing", "no-colon", "control"])
def test_credentials_of_a_proxy_that_cannot_be_sent_are_an_error_of_their_line(tmp_path, table, key, content, why):
    secret = tmp_path / "secret"
    if content is not None:
        secret.write_text(content)
    config = tmp_path / "c.toml"
    config.write_text('[[listen]]\naddress = "127.0.0.1:0"\n[admin]\nenabled = false\n%s\nproxy = "http://127.0.0.1:9"\n'
                      'proxy_credentials = { file = "%s" }\n' % (table, secret))
    said = refused(config, key + ".proxy_credentials")
    assert why in said and said.endswith(", expected user:password") and "a-b" not in said


@pytest.mark.parametrize("secret, why", [('"planted "', "white space around it"), ('"plan\\u0001ted"', "a control character"), (None, "a line end")],
                         ids=["space", "control", "lines"])
def test_a_client_secret_that_cannot_be_used_is_an_error_of_its_line(tmp_path, secret, why):
    file = tmp_path / "secret"
    file.write_text("planted\nsecond line\n")
    config = tmp_path / "c.toml"
    config.write_text('[[listen]]\naddress = "127.0.0.1:0"\n[admin]\nenabled = false\n[[origin]]\nuri = "http://127.0.0.1:9"\n'
                      '[origin.oauth2]\ntoken_url = "http://127.0.0.1:9/t"\nclient_id = "a"\nclient_secret = %s\n'
                      % (secret or '{ file = "%s" }' % file))
    said = refused(config, "origin.oauth2.client_secret")
    assert why in said and said.endswith(", expected the client's secret") and "planted" not in said, said


@pytest.mark.parametrize("content", ["", "\nsecret\n", "\r\nsecret\r\n"], ids=["empty", "second-line", "second-line-crlf"])
def test_a_token_file_without_a_token_is_an_error_of_its_line(tmp_path, pki, content):
    token = tmp_path / "token"
    token.write_text(content, newline="")
    config = tmp_path / "c.toml"
    config.write_text('[[listen]]\naddress = "127.0.0.1:0"\n[admin]\naddress = "0.0.0.0:0"\ntoken_file = "%s"\n'
                      'cert_file = "%s"\nkey_file = "%s"\n' % (token, pki.server, pki.server_key))
    assert refused(config, "admin.token_file") == "%s: the first line has no token, expected a token" % token
