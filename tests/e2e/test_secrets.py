"""Credentials of origins are shown nowhere: each kind is planted, used, and looked for in everything that carpool says."""
import base64
import json
import socket
import subprocess
import urllib.parse

import pytest
from harness.carpool import PROGRAM
from harness.wait import until

PLANTED = ["planted-text", "planted-file", "planted-environment", "planted-client-secret", "planted-token"]
BASIC = base64.b64encode(b"orders:planted-client-secret").decode()


def told(answer):
    return "%s %r %s" % (answer.first, answer.headers, answer.body.decode(errors="replace"))


def event(c):
    """Returns the first event of the live page's stream."""
    with socket.create_connection(c.admin_address, 10) as sock:
        sock.sendall(b"GET /events HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % c.admin_address[1])
        text = b""
        while b"\n\n" not in text.split(b"\r\n\r\n", 1)[-1]:
            got = sock.recv(65536)
            assert got, text
            text += got
        return text.decode(errors="replace")


@pytest.fixture
def scene(origin, carpool, tmp_path, monkeypatch):
    monkeypatch.setenv("PLANTED", "planted-environment")
    file = tmp_path / "key"
    file.write_text("planted-file\n")

    def token(exchange):
        exchange.read_body()
        exchange.reply(body=json.dumps({"access_token": "planted-token", "expires_in": 3600}).encode())
    endpoint, o = origin(token), origin()
    headers = {"X-Text": "planted-text", "X-Environment": "${PLANTED}", "X-File": {"file": str(file)}}
    oauth2 = {"token_url": endpoint.url + "/t", "client_id": "orders", "client_secret": "planted-client-secret"}
    c = carpool(log={"level": "trace"}, admin={}, origin=[{"uri": o.url, "alias": ["api"], "request": {"headers": headers}, "oauth2": oauth2}])
    return c, o, endpoint, file


def everything(c):
    """Every GET of the admin endpoint, with each parameter filled in."""
    for path, methods in c.get_json("/openapi.json")["paths"].items():
        if "get" not in methods or path == "/events":
            continue
        for uri in [row["origin"] for row in c.get_json("/pools")["pools"]]:
            query = "?size=3" if path.endswith("what-if") else ""
            yield path, told(c.admin("GET", path.replace("{origin}", urllib.parse.quote(uri, safe="")) + query))


def test_nothing_shows_a_credential(scene):
    c, o, endpoint, file = scene
    with c.client() as client:
        assert client.get("http://api/x", host="api").status == 200
        seen = o.seen[-1].message
        sent = [seen.get(n) for n in ("x-text", "x-file", "x-environment", "authorization")]
        assert sent == ["planted-text", "planted-file", "planted-environment", "Bearer planted-token"]
        assert endpoint.seen[-1].message.get("authorization") == "Basic " + BASIC
        file.write_text("planted-file, but\nno value of a field")
        until(lambda: any("the last good value stays" in line for line in c.output), what="the warning")
        o.stop()
        texts = {"a reply": told(client.get("http://api/y", host="api"))}
    texts.update(everything(c))
    texts["/events"] = event(c)
    texts["--check"] = c.check()
    file.write_text("planted-file")
    texts["--print-config"] = subprocess.run([PROGRAM, "--config", c.config, "--print-config"], capture_output=True, text=True, timeout=20).stdout
    assert "hidden = true" in texts["--print-config"]
    c.config.write_text(c.config.read_text().replace("planted-text", "planted-text-2").replace("planted-client-secret", "planted-client-secret-2"))
    texts["the dry run of a reload"] = told(c.admin("POST", "/reload?dry_run=1"))
    texts["a reload"] = told(c.admin("POST", "/reload"))
    c.config.write_text(c.config.read_text().replace("planted-text-2", "planted-text\\n"))
    texts["a refused reload"] = told(c.admin("POST", "/reload"))
    assert "line end" in texts["a refused reload"]
    c.stop()
    texts["the log"] = "\n".join(c.output)
    for where, text in texts.items():
        for secret in (*PLANTED, BASIC):
            assert secret not in text, "%s shows %s:\n%s" % (where, secret, text)
    assert len(texts) > 20 and "x-text" in texts["/config"].lower()
