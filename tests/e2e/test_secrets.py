"""Credentials of origins appear nowhere: each kind is planted, used, and searched for in all of carpool's output."""
import base64
import json
import re
import socket
import subprocess
import urllib.parse

import pytest
from harness.carpool import PROGRAM
from harness.collector import Collector
from harness.wait import until

PLANTED = ["planted-text", "planted-file", "planted-environment", "planted-client-secret", "planted-token", "planted-query"]
BASIC = base64.b64encode(b"orders:planted-client-secret").decode()


def told(response):
    return "%s %r %s" % (response.first, response.headers, response.body.decode(errors="replace"))


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
    oauth2 = {"token_url": endpoint.url + "/t?tenant=a&subscription-key=planted-query", "client_id": "orders", "client_secret": "planted-client-secret"}
    c = carpool(log={"level": "trace"}, admin={}, origin=[{"uri": o.url, "alias": ["api"], "request": {"headers": headers}, "oauth2": oauth2}],
                pool={"health_check": {"probe": "GET /health?seen=1&access_key=planted-query"}})
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
    assert "hidden = true" in texts["--print-config"] and "/t?tenant=a&subscription-key=***" in texts["--print-config"]
    printed = c.config.with_name("printed.toml")
    printed.write_text(texts["--print-config"])
    texts["--check of it"] = subprocess.run([PROGRAM, "--config", printed, "--check"], capture_output=True, text=True, timeout=20).stderr
    for key in ("oauth2.token_url", "pool.health_check.probe", "request.headers.x-text"):
        assert re.search(r"%s: (has a value that )?is hidden, as in a printed configuration" % re.escape(key), texts["--check of it"], re.I), texts
    c.config.write_text(c.config.read_text().replace("planted-text", "planted-text-2").replace("planted-client-secret", "planted-client-secret-2")
                        .replace("planted-query", "planted-query-2"))
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


@pytest.mark.parametrize("form", ["json", "text", "combined"])
def test_nothing_shows_a_secret_of_a_query(origin, carpool, gate, tmp_path, form):
    def handler(exchange):
        exchange.read_body()
        if "held" in exchange.request.target:
            gate.enter()
        return False if "dies" in exchange.request.target else exchange.reply()
    collector, o = Collector(), origin(handler)
    log = {"level": "trace", "access_file": str(tmp_path / "access"), **({"access_format": form} if form == "combined" else {"format": form})}
    c = carpool(log=log, otlp={"endpoint": collector.url, "interval": "100ms"}, pool={"leak_timeout": "100ms"})
    secret = "planted-query"
    queries = ["%s=%s" % (name, secret) for name in ("access_key", "AWSAccessKeyId", "X-Amz-Signature", "sig", "api-key", "client_secret", "id_token", "acc%65ss_key")]
    fields = [("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"), ("Referer", "http://a/?token=" + secret)]
    texts = {}
    with c.client() as client, c.client() as waiting:
        waiting.send(b"GET %s/held?seen=1&%s HTTP/1.1\r\nHost: x\r\n\r\n" % (o.url.encode(), "&".join(queries).encode()))
        gate.wait_for(1)
        until(lambda: c.get_json("/leaks")["leaks"], what="the report of a long lease")
        for query in queries:
            assert client.request("GET", o.url + "/x?seen=1&" + query, fields).status == 200
            texts["a 502 for " + query] = told(client.request("POST", o.url + "/dies?seen=1&" + query, fields))
        texts["a 400"] = told(c.admin("GET", "/pools?access_key=" + secret))
        texts.update(everything(c))
        texts["/events"] = event(c)
        gate.open()
        assert waiting.response().status == 200
    until(lambda: len(collector.spans) >= 2 * len(queries), what="the spans")
    c.stop()
    collector.stop()
    texts["the log"], texts["the access log"] = "\n".join(c.output), (tmp_path / "access").read_text()
    texts["the spans"] = repr(collector.spans)
    for where, text in texts.items():
        assert secret not in text, "%s shows it:\n%s" % (where, text)
    assert "/held" in texts["/leaks"] and "seen=1" in texts["the access log"] and "***" in texts["the access log"]
    assert texts["the access log"].count("seen=1") == 2 * len(queries) + 1, "one line each"
