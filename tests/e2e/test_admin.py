"""The admin endpoint of the running program: its listeners, its document, its log levels, its events, and how it stops."""
import json
import os
import re
import signal
import socket
import subprocess
import time
import tomllib

import pytest
from harness.carpool import PROGRAM, SANITIZED
from harness.ports import free_port
from harness.wait import until
from harness.wire import Client


def get(c, path, method="GET", headers=(), body=None):
    with Client(c.admin_address) as client:
        return client.request(method, path, headers, body=body or b"", host="127.0.0.1:%d" % c.admin_address[1])


class Events:
    """A listener of /events."""

    def __init__(self, address):
        self.sock = socket.create_connection(address, 10)
        self.sock.settimeout(10)
        self.sock.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.file = self.sock.makefile("rb")
        self.status = int(self.file.readline().split()[1])
        self.head = {}
        while (line := self.file.readline().strip()):
            name, _, value = line.decode().partition(": ")
            self.head[name.lower()] = value

    def next(self):
        name = self.file.readline().decode().strip()
        data = self.file.readline().decode()
        assert self.file.readline() == b"\n"
        return name.removeprefix("event: "), json.loads(data.removeprefix("data: "))

    def close(self):
        self.file.close()
        self.sock.close()


def schema_errors(schema, value, schemas, where="$"):
    """Returns the violation of the schema, for the part of JSON Schema that the document uses."""
    if "$ref" in schema:
        schema = schemas[schema["$ref"].rsplit("/", 1)[1]]
    if value is None:
        return [] if schema.get("nullable") else ["%s is null" % where]
    kinds = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool}
    if not isinstance(value, kinds[schema["type"]]) or (isinstance(value, bool) and schema["type"] != "boolean"):
        return ["%s is no %s: %r" % (where, schema["type"], value)]
    errors = ["%s lacks %s" % (where, key) for key in schema.get("required", ()) if key not in value]
    if value == value and "minimum" in schema and value < schema["minimum"]:
        errors.append("%s is %r" % (where, value))
    if schema["type"] == "object":
        known, rest = schema.get("properties", {}), schema.get("additionalProperties")
        for key, part in value.items():
            if key in known or rest:
                errors += schema_errors(known.get(key, rest), part, schemas, "%s.%s" % (where, key))
    if schema["type"] == "array":
        for i, part in enumerate(value):
            errors += schema_errors(schema["items"], part, schemas, "%s[%d]" % (where, i))
    return errors


def problem(response):
    """Returns the detail of a problem (RFC 9457), which must be complete."""
    assert response.get("content-type") == "application/problem+json", response
    said = json.loads(response.body)
    assert said["status"] == response.status and said["type"] == "about:blank" and said["title"], said
    assert said["detail"] == said["error"] != "", said
    return said["detail"]


def check_operation(c, path, method, operation, schemas):
    response = get(c, path, method.upper())
    if response.status >= 400:
        kind = operation["responses"]["%dXX" % (response.status // 100)]
        if response.status < 500 or response.get("content-type") == "application/problem+json":
            assert problem(response), (path, response)
        return kind
    content = operation["responses"][str(response.status)]["content"]
    kind = response.get("content-type").split(";")[0]
    assert list(content) == [kind], (path, kind)
    if kind == "application/json":
        errors = schema_errors(content[kind]["schema"], json.loads(response.body), schemas)
        assert not errors, (path, errors)
    return response


def test_it_speaks_http_as_the_standard_demands(carpool):
    """RFC 9110 10.1.1, RFC 9112 3.2 and 3.2.2."""
    c = carpool()
    authority = b"127.0.0.1:%d" % c.admin_address[1]
    with Client(c.admin_address) as client:
        client.send(b"GET http://%s/livez HTTP/1.1\r\nHost: other.test\r\n\r\n" % authority)
        assert client.response().status == 200
        client.send(b"PUT http://%s/log-level?level=debug HTTP/1.1\r\nHost: %s\r\n\r\n" % (authority, authority))
        assert client.response().status == 200
        client.send(b"PUT /log-level HTTP/1.1\r\nHost: %s\r\nExpect: 100-continue\r\nContent-Length: 16\r\n\r\n" % authority)
        assert client.head().status == 100
        client.send(b'{"level":"info"}')
        assert client.response().status == 200
        client.send(b"GET /livez HTTP/1.1\r\n\r\n")
        assert client.response().status == 400 and client.at_end()


def test_the_document_describes_what_the_server_does(origin, carpool):
    o, c = origin(), carpool()
    with c.client() as client:
        client.get(o.url + "/")
    document = c.get_json("/openapi.json")
    assert document["openapi"].startswith("3.0") and len(document["paths"]) >= 20
    name = o.url.replace(":", "%3A").replace("/", "%2F")
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if path in ("/events", "/quit"):
                continue
            check_operation(c, path.replace("{origin}", name), method, operation, document["components"]["schemas"])
        for method in {"get", "put", "post", "delete", "patch"} - methods.keys():
            refused = get(c, path.replace("{origin}", name), method.upper())
            assert refused.status == 405 and problem(refused), (path, method, refused)
            assert {m.upper() for m in methods} <= set(refused.get("allow").split(", ")), (path, method)


def test_unknown_and_broken_paths_are_errors_of_the_client(carpool):
    c = carpool()
    for path in ("/no-such", "/pools/%zz", "/pools/nonsense", "/pools/http%3A%2F%2Fnobody.test", "/metrics/x", "/%2e%2e/etc/passwd"):
        response = get(c, path)
        assert 400 <= response.status < 500 and problem(response), (path, response)


@pytest.mark.parametrize("sent, status", [
    (b"nonsense\r\n\r\n", 400), (b"GET /pools HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
    (b"GET /pools HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n", 400),
    (b"GET /%s HTTP/1.1\r\nHost: localhost\r\n\r\n" % (b"x" * 9000), 414),
    (b"GET / HTTP/1.1\r\nHost: localhost\r\nA: %s\r\n\r\n" % (b"x" * 20000), 431)])
def test_what_is_no_request_is_a_problem_too(carpool, sent, status):
    c = carpool()
    with socket.create_connection(c.admin_address, 10) as sock:
        sock.sendall(sent)
        response = b"".join(iter(lambda: sock.recv(65536), b""))
    head, _, body = response.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status) and b"\r\nConnection: close" in head, head
    assert b"\r\nContent-Type: application/problem+json" in head
    said = json.loads(body)
    assert said["status"] == status and said["detail"] == said["error"] != ""


def test_log_levels_change_while_it_runs(origin, carpool):
    o, c = origin(), carpool()
    put = get(c, "/log-level?level=off&module=access", "PUT")
    assert put.status == 200 and json.loads(put.body) == {"level": "info", "modules": {"access": "off"}}
    with c.client() as client:
        client.get(o.url + "/silent")
        client.get(o.url + "/between")  # by now the previous request has its line, or none
        assert get(c, "/log-level", "PUT", body=b'{"level": "debug"}').status == 200
        client.get(o.url + "/told")
    until(lambda: any("/told" in r["target"] for r in c.access_log()), what="the line of /told")
    assert not any("/silent" in r["target"] for r in c.access_log())
    assert c.get_json("/log-level") == {"level": "debug", "modules": {}}
    for body in (b"", b"{", b'{"level": "loud"}', b'{"level": "info", "module": "nobody"}', b'{"module": "tls"}', b'{"level": 3}',
                 b'{"level": "info", "modul": "tls"}'):
        assert problem(get(c, "/log-level", "PUT", body=body)), body
    for body in (b"{", b'{"level": "info", "module": "nobody"}', b"[]"):
        assert problem(get(c, "/log-level?level=info", "PUT", body=body)), "a wrong body is refused beside a query, too"
    assert get(c, "/log-level", "PUT", body=b"x" * 20000).status == 413


def test_a_renamed_log_is_opened_anew(origin, carpool, tmp_path):
    log = tmp_path / "carpool.log"
    o, c = origin(), carpool(start=False)
    with open(log, "ab") as out:
        process = subprocess.Popen([PROGRAM, "--config", c.config], stderr=out)
    try:
        until(lambda: "carpool ready" in log.read_text(), 20, "the ready line")
        log.rename(tmp_path / "carpool.log.1")
        process.send_signal(signal.SIGUSR1)
        until(lambda: log.exists() and "reopened" in log.read_text(), what="the new file")
        with c.client() as client:
            client.get(o.url + "/after")
        until(lambda: "/after" in log.read_text(), what="the line of /after")
        assert "/after" not in (tmp_path / "carpool.log.1").read_text()
    finally:
        process.terminate()
        assert process.wait(20) == 0


def test_events_tell_the_state_and_then_what_changes(origin, carpool):
    o, c = origin(), carpool()
    with c.client() as client:
        client.get(o.url + "/")
        events = Events(c.admin_address)
        assert events.status == 200 and events.head["content-type"] == "text/event-stream"
        kind, state = events.next()
        pool = next(p for p in state["pools"] if p["origin"] == o.url)
        assert kind == "state" and pool["borrowable"] == len(pool["cells"]) == 1
        assert pool["cells"][0][1] == "idle" and pool["cells"][0][4] == 1 and state["not_ready"] == []
        client.get(o.url + "/")
        changed = []
        while not changed:
            kind, change = events.next()
            assert kind == "change"
            changed = [p for p in change["pools"] if p["borrows"] == 2]
        assert changed[0]["cells"][0][4] == 2
        events.close()


def test_a_new_listener_takes_no_change_from_the_others(origin, carpool):
    c = carpool()
    first = Events(c.admin_address)
    assert first.next()[0] == "state"
    with c.client() as client:
        for _ in range(3):
            o = origin()
            first.next()  # most of a second is left until the next one
            client.get(o.url + "/")
            second = Events(c.admin_address)
            kinds, told = [], False
            while not told:  # in the last rendering, or in the change after it
                kind, state = second.next()
                kinds.append(kind)
                told = o.url in [p["origin"] for p in state["pools"]]
            assert kinds in (["state"], ["state", "change"]), kinds
            for _ in range(3):  # the first one may be of before the request
                kind, change = first.next()
                assert kind == "change"
                if o.url in [p["origin"] for p in change["pools"]]:
                    break
            else:
                raise AssertionError(change)
            second.close()


def test_the_state_is_rendered_once_a_second_whatever_number_listens(origin, carpool):
    o, c = origin(), carpool()
    renderings = "carpool_admin_event_renderings_total"
    with c.client() as client:
        assert client.get(o.url + "/").status == 200
    assert (c.metric(renderings), c.metric("carpool_admin_event_listeners")) == (0, 0)
    begun = time.monotonic()
    for _ in range(100):
        events = Events(c.admin_address)
        assert events.next()[0] == "state"
        events.close()
    until(lambda: c.metric("carpool_admin_event_listeners") == 0, what="their end")
    everyone = [Events(c.admin_address) for _ in range(16)]
    states = [events.next() for events in everyone]
    assert all(kind == "state" and o.url in [p["origin"] for p in state["pools"]] for kind, state in states)
    assert c.metric("carpool_admin_event_listeners") == 16
    assert Events(c.admin_address).status == 503
    assert c.metric("carpool_admin_shed_total", door="admin", what="busy") == 1
    assert 1 <= c.metric(renderings) <= time.monotonic() - begun + 1
    for events in everyone:
        assert events.next()[0] == "change"
        events.close()
    until(lambda: c.metric("carpool_admin_event_listeners") == 0, what="their end")


@pytest.mark.skipif(SANITIZED, reason="a sanitizer keeps what was freed")
def test_a_listener_that_does_not_read_costs_one_message(origin, carpool):
    origins = [origin() for _ in range(3)]
    c = carpool()
    lazy = Events(c.admin_address)
    before = c.rss()
    with c.client() as client:
        deadline = time.monotonic() + 4
        while time.monotonic() < deadline:
            for o in origins:
                client.get(o.url + "/")
    assert c.rss() - before < 8 << 20
    lazy.close()


def test_listeners_are_bounded(carpool):
    c = carpool()
    listeners = [Events(c.admin_address) for _ in range(16)]
    refused = Events(c.admin_address)
    assert refused.status == 503 and refused.head["retry-after"]
    assert [e.status for e in listeners] == [200] * 16
    for one in listeners + [refused]:
        one.close()
    until(lambda: Events(c.admin_address).status == 200, what="room for another")


def test_clients_are_bounded_and_the_one_that_waited_longest_ends(carpool):
    c = carpool()
    held = [socket.create_connection(c.admin_address, 10) for _ in range(128)]
    until(lambda: c.metric("carpool_admin_connections") == 128, what="all of them")
    held[0].settimeout(10)
    assert held[0].recv(1) == b"", "the scrapes came for it"
    for sock in held:
        sock.close()
    until(lambda: c.admin("GET", "/livez").status == 200, what="an answer")


def test_quit_drains_and_ends(origin, carpool):
    o, c = origin(), carpool(drain_delay="3s")
    response = get(c, "/quit", "POST")
    assert response.status == 202 and json.loads(response.body)["status"] == "draining"
    until(lambda: get(c, "/readyz").status == 503, what="not ready")
    with c.client() as client:
        assert client.get(o.url + "/").status == 200
    assert c.wait() == 0


def test_a_unix_socket_lets_in_its_owner_alone(carpool, tmp_path):
    path = tmp_path / "admin.sock"
    c = carpool(admin={"address": "unix:%s" % path})
    assert os.stat(path).st_mode & 0o777 == 0o600

    def ask(uid=None):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                if uid is not None:
                    os.chmod(path, 0o777)
                    os.chmod(tmp_path, 0o755)
                    os.setuid(uid)
                sock = socket.socket(socket.AF_UNIX)
                sock.connect(str(path))
                sock.sendall(b"GET /livez HTTP/1.1\r\nHost: any.name\r\nConnection: close\r\n\r\n")
                os.write(write, sock.recv(100) or b"closed")
            except OSError as error:
                os.write(write, str(error).encode())
            finally:
                os._exit(0)
        os.close(write)
        said = os.read(read, 100)
        os.close(read)
        os.waitpid(child, 0)
        return said
    assert ask().startswith(b"HTTP/1.1 200")
    if os.geteuid() == 0:
        said = ask(65534)
        assert not said.startswith(b"HTTP/1.1"), said
    c.stop()
    assert not path.exists()


def test_the_metrics_door_shows_metrics_and_health_and_nothing_else(origin, carpool):
    port = free_port()
    o, c = origin(), carpool(metrics={"address": "0.0.0.0:%d" % port})
    with c.client() as client:
        client.get(o.url + "/")
    with Client(("127.0.0.1", port)) as client:
        for path, status in (("/metrics", 200), ("/livez", 200), ("/readyz", 200), ("/", 404), ("/pools", 404), ("/config", 404), ("/events", 404)):
            assert client.request("GET", path, host="carpool.monitoring.svc:%d" % port).status == status, path
        assert client.request("POST", "/quit", host="127.0.0.1").status == 404
    with c.client() as client:
        assert client.get("http://127.0.0.1:%d/metrics" % port).status == 403
    ready = next(line for line in c.output if "carpool ready" in line)
    assert "metrics=0.0.0.0:%d" % port in ready


def test_a_foreign_address_demands_the_token(carpool, tmp_path):
    token = tmp_path / "token"
    token.write_text("s3cret-of-the-server\n")
    port = free_port()
    c = carpool(admin={"address": "0.0.0.0:%d" % port, "token_file": str(token)})
    c.admin_address = ("127.0.0.1", port)
    assert get(c, "/livez").status == get(c, "/metrics").status == 200
    refused = get(c, "/pools")
    assert refused.status == 401 and "Bearer" in refused.get("www-authenticate")
    assert get(c, "/pools", headers=[("Authorization", "Bearer wrong")]).status == 401
    assert get(c, "/pools", headers=[("Authorization", "Bearer s3cret-of-the-server")]).status == 200
    shown = get(c, "/config", headers=[("Authorization", "Bearer s3cret-of-the-server")]).body.decode()
    assert "s3cret" not in shown and str(token) in shown


def differences(one, other, path=""):
    """Returns the paths at which two configurations differ. null is an absent key."""
    if isinstance(one, dict) and isinstance(other, dict):
        return [d for key in sorted({*one, *other}) for d in differences(one.get(key), other.get(key), path + "." + key)]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [d for i, pair in enumerate(zip(one, other)) for d in differences(*pair, path + "[%d]" % i)]
    return [] if one == other else [path]


def test_the_configuration_is_json_and_its_toml_says_the_same(carpool, tmp_path):
    key = tmp_path / "key"
    key.write_text("planted-key\n")
    listeners = [{"address": "127.0.0.1:%d" % free_port()}, {"address": "127.0.0.1:%d" % free_port(), "proxy_protocol": True, "trusted": ["127.0.0.0/8"]}]
    c = carpool(listeners=listeners, pool={"strategy": "random"}, origin=[
        {"uri": "https://api.test", "alias": ["api"], "pool": {"size": 7, "warm_up": {"enabled": False}},
         "request": {"headers": {"X-Api-Key": {"file": str(key), "prefix": "Bearer "}, "X-Text": "planted-text"}},
         "oauth2": {"token_url": "https://id.test/token?code=planted-code", "client_id": "me", "client_secret": {"file": str(key)}}},
        {"uri": "tcp://database.test:5432"}])
    response = get(c, "/config")
    assert response.get("content-type") == "application/json"
    as_json, as_toml = json.loads(response.body), tomllib.loads(get(c, "/config.toml").body.decode())
    assert differences(as_json, as_toml) == [".origin[1].request.headers"], "a table without keys, which the TOML omits"
    assert as_json["pool"]["size"] == 64
    api, database = as_json["origin"]
    assert api["pool"]["size"] == 7 and api["pool"]["strategy"] == "random" and api["request"]["idle_timeout"] == "60s"
    assert api["request"]["headers"] == {"X-Api-Key": {"file": str(key), "prefix": "Bearer "}, "X-Text": {"hidden": True}}
    assert api["oauth2"]["token_url"] == "https://id.test/token?code=***" and "planted" not in response.body.decode()
    assert "alias" not in database, "a key that a tcp origin may not have"


def test_the_configuration_of_a_thousand_origins_is_json(carpool):
    c = carpool(origin=[{"uri": "http://o%d.test" % i} for i in range(1000)])
    assert [one["uri"] for one in c.get_json("/config")["origin"]] == ["http://o%d.test" % i for i in range(1000)]


@pytest.mark.parametrize("header", [("Origin", "http://evil.test"), ("Sec-Fetch-Site", "cross-site")])
def test_another_sites_page_changes_nothing(carpool, header):
    c = carpool()
    assert get(c, "/quit", "POST", headers=[header]).status == 403
    assert get(c, "/log-level?level=off", "PUT", headers=[header]).status == 403
    assert c.get_json("/log-level")["level"] == "info"
    assert re.match("ready", c.get_json("/readyz")["status"])
