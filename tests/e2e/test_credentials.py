"""Fields that carpool sets in the requests of an origin: [origin.request.headers]."""
import itertools
import json
import os
import pathlib
import re
import ssl
import urllib.parse

import pytest
from harness.h2_client import H2Client
from harness.h2_origin import H2Origin
from harness.wait import until
from harness.wire import Client
from test_log import SAMPLES, documented, rows

FILES = "carpool_credential_files_total"
STALE = "carpool_credential_files_stale"
BEARER = {"Authorization": "Bearer planted-text"}


@pytest.fixture
def mounted(tmp_path):
    """A file as Kubernetes mounts a secret: FILE -> ..data/FILE, ..data -> a folder that is exchanged as a whole."""
    class Mounted:
        folder, count = tmp_path / "secret", itertools.count()
        file = folder / "token"

        def write(self, value):
            fresh = self.folder / ("..%d" % next(self.count))
            fresh.mkdir()
            (fresh / "token").write_text(value)
            link = self.folder / "..data_tmp"
            link.symlink_to(fresh.name)
            os.rename(link, self.folder / "..data")
    made = Mounted()
    made.folder.mkdir()
    made.write("first\n")
    made.file.symlink_to("..data/token")
    return made


def origin_with(o, headers, **more):
    return {"uri": o.url, "alias": ["api"], "request": {"headers": headers}, **more}


def fields_of(o, name):
    return [s.message.all(name) for s in o.seen]


def test_the_field_is_added_and_replaces_the_clients_own(origin, carpool):
    o = origin()
    c = carpool(origin=[origin_with(o, {**BEARER, "X-Api-Key": "k"})])
    with c.client() as client:
        assert client.get("http://api/a", host="api").status == 200
        own = [("authorization", "Basic mine"), ("AUTHORIZATION", "Basic again"), ("x-api-key", "mine")]
        assert client.request("GET", "http://api/b", own, host="api").status == 200
    assert fields_of(o, "authorization") == [["Bearer planted-text"]] * 2
    assert fields_of(o, "x-api-key") == [["k"]] * 2


def test_the_field_replaces_those_that_carpool_adds(origin, carpool):
    o, collector = origin(), origin()
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    fields = {"Traceparent": parent, "X-Forwarded-For": "192.0.2.1"}
    c = carpool(origin=[{"uri": o.url, "alias": ["api"], "request": {"headers": fields, "client_field": "x_forwarded_for"}}], otlp={"endpoint": collector.url})
    with c.client() as client:
        traced = ("traceparent", "00-1af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
        assert client.get("http://api/a", traced, ("x-forwarded-for", "198.51.100.1"), host="api").status == 200
    assert (fields_of(o, "traceparent"), fields_of(o, "x-forwarded-for")) == ([[parent]], [["192.0.2.1"]])


TRICKS = {
    "named-in-connection": b"Connection: authorization, x-api-key\r\n\r\n",
    "trailers": b"Transfer-Encoding: chunked\r\nTrailer: X-Api-Key\r\n\r\n0\r\nAuthorization: mine\r\nX-Api-Key: mine\r\n\r\n",
    "trailers-named-in-connection": b"Connection: x-api-key\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Api-Key: mine\r\n\r\n",
}


@pytest.mark.parametrize("trick", TRICKS.values(), ids=TRICKS)
def test_a_client_can_neither_remove_the_field_nor_add_another_one(origin, carpool, trick):
    o = origin()
    c = carpool(origin=[origin_with(o, {**BEARER, "X-Api-Key": "k"})])
    with c.client() as client:
        client.send(b"POST %s/ HTTP/1.1\r\nHost: a\r\n" % o.url.encode() + trick)
        assert client.response().status == 200
    assert (fields_of(o, "authorization"), fields_of(o, "x-api-key")) == ([["Bearer planted-text"]], [["k"]])
    assert o.seen[0].message.trailers == []


def test_other_origins_and_trace_get_nothing(origin, carpool):
    o, other = origin(), origin()
    c = carpool(origin=[origin_with(o, BEARER)])
    with c.client() as client:
        assert client.get(other.url + "/").status == 200
        assert client.request("TRACE", o.url + "/").status == 200
    assert fields_of(other, "authorization") == [[]] and fields_of(o, "authorization") == [[]]


def test_a_variable_is_expanded(origin, carpool, monkeypatch):
    monkeypatch.setenv("API_TOKEN", "from-the-environment")
    o = origin()
    c = carpool(origin=[origin_with(o, {"Authorization": "Bearer ${API_TOKEN}"})])
    with c.client() as client:
        assert client.get(o.url + "/").status == 200
    assert fields_of(o, "authorization") == [["Bearer from-the-environment"]]


def test_http2_origins_and_http2_clients_have_it_too(h2_tls, carpool, pki):
    o = h2_tls
    c = carpool(origin=[{"uri": o.url, "alias": ["api"], "request": {"headers": BEARER}, "upstream": {"tls": {"ca_file": pki.ca}}}])
    with H2Client(c.address) as client:
        assert client.get("/x", authority="api").status == 200
    with c.client() as client:
        assert client.request("GET", "http://api/y", [("Authorization", "Basic mine")], host="api").status == 200
    assert [s.field("authorization") for s in o.requests] == [["Bearer planted-text"]] * 2


@pytest.fixture
def h2_tls(context):
    context.set_alpn_protocols(["h2"])
    o = H2Origin(lambda stream: (o.requests.append(stream), stream.reply()), tls=context)
    o.requests, o.url = [], "https://localhost:%d" % o.port
    yield o
    o.stop()


def test_tunnels_stay_untouched(origin, carpool, context, pki):
    o = origin(tls=context)
    url = "https://localhost:%d" % o.port
    c = carpool(origin=[{"uri": url, "request": {"headers": BEARER}, "upstream": {"tls": {"ca_file": pki.ca}}}])
    with c.client() as client:
        client.send(b"CONNECT localhost:%d HTTP/1.1\r\nHost: localhost:%d\r\n\r\n" % (o.port, o.port))
        assert client.head().status == 200
        trusting = ssl.create_default_context(cafile=pki.ca)
        with Client(sock=trusting.wrap_socket(client.sock, server_hostname="localhost")) as inside:
            assert inside.get("/", host="localhost").status == 200
    assert fields_of(o, "authorization") == [[]]


def test_a_file_is_followed_through_the_exchange_of_its_folder(origin, carpool, mounted):
    o = origin()
    c = carpool(origin=[origin_with(o, {"Authorization": {"file": str(mounted.file), "prefix": "Bearer "}})])

    def sent():
        with c.client() as client:
            assert client.get(o.url + "/").status == 200
        return fields_of(o, "authorization")[-1]
    assert sent() == ["Bearer first"]
    mounted.write("second")
    until(lambda: sent() == ["Bearer second"], what="the new value, without a reload")
    until(lambda: c.metric(FILES, result="renewed") == 1, what="the count")
    (mounted.folder / "..data").unlink()
    until(lambda: c.metric(STALE) == 1 and c.metric(FILES, result="failed") == 1, what="the metric of the vanished file")
    until(lambda: any("the last good value stays" in line and str(mounted.file) in line for line in c.output), what="the line of the log")
    unusable = "a file cannot be used; the last good value stays"
    reason, shown = ([row["error"] for row in found if row.get("message") == unusable][0] for found in (rows(c), SAMPLES))
    assert reason.rpartition(":")[0] == str(mounted.file) + " cannot be read" and " cannot be read: " in shown
    documented(c, "a file has a new value", "a file cannot be used; the last good value stays")
    assert sent() == ["Bearer second"]
    mounted.write("third\nwith a line end")
    until(lambda: c.metric(FILES, result="failed") == 2, what="the refusal of a value that is no field value")
    assert sent() == ["Bearer second"]
    mounted.write("fourth")
    until(lambda: sent() == ["Bearer fourth"] and c.metric(STALE) == 0, what="the value of the file that came back")


def test_a_file_that_a_reload_removes_is_not_stale(origin, carpool, tmp_path):
    file = tmp_path / "key"
    file.write_text("one")
    o = origin()
    c = carpool(origin=[origin_with(o, {"X-Api-Key": {"file": str(file)}})])
    file.unlink()
    until(lambda: c.metric(STALE) == 1, what="the metric of the vanished file")
    c.config.write_text(re.sub(r"\[origin\.request\.headers\.X-Api-Key\]\nfile = .*\n", "", c.config.read_text()))
    assert c.admin("POST", "/reload").status == 200
    until(lambda: c.metric(STALE) == 0, what="no file that is stale")


def test_the_admin_endpoint_shows_the_files_of_an_origin_without_a_pool(origin, carpool, tmp_path):
    file = tmp_path / "key"
    file.write_text("planted")
    o = origin()
    c = carpool(origin=[origin_with(o, {"X-Api-Key": {"file": str(file)}})])
    place = "/pools/" + urllib.parse.quote(o.url, safe="")

    assert c.get_json(place)["credentials"]["stale_files"] == 0
    file.unlink()
    until(lambda: c.get_json(place)["credentials"]["stale_files"] == 1, what="the file that vanished")
    assert "1 file with credentials cannot be used; the last good value stays." in c.get_json(place + "/explain")["explanation"]


def test_a_probe_carries_no_field(origin, carpool):
    o = origin()
    c = carpool(origin=[origin_with(o, BEARER, pool={"health_check": {"probe": "HEAD /probe", "interval": "100ms"}})])
    with c.client() as client:
        assert client.get(o.url + "/").status == 200
    until(lambda: "/probe" in o.targets(), what="the probe")
    assert [s.message.all("authorization") for s in o.seen if s.message.target == "/probe"][0] == []


def test_a_rewritten_file_is_seen_too(origin, carpool, tmp_path):
    file = tmp_path / "key"
    file.write_text("one")
    o = origin()
    c = carpool(origin=[origin_with(o, {"X-Api-Key": {"file": str(file)}})])
    file.write_text("two")

    def sent():
        with c.client() as client:
            assert client.get(o.url + "/").status == 200
        return fields_of(o, "x-api-key")[-1]
    until(lambda: sent() == ["two"], what="the new value")


def test_no_field_travels_on_a_connection_that_did_not_verify_the_origin(origin, carpool, context, pki, gate):
    def handler(exchange):
        exchange.read_body()
        if exchange.request.target == "/held":
            gate.enter()
        exchange.reply()
    o = origin(handler, tls=context)
    url = "https://localhost:%d" % o.port
    c = carpool(origin=[{"uri": url, "alias": ["api"], "upstream": {"tls": {"ca_file": pki.ca, "verify": False}}}])
    with c.client() as held, c.client() as client:
        assert client.get("http://api/before", host="api").status == 200
        held.ask("GET", "http://api/held", host="api")
        gate.wait_for(1)
        text = c.config.read_text().replace("verify = false", "verify = true")
        c.config.write_text(text + '\n[origin.request.headers]\nAuthorization = "Bearer planted-text"\n')
        assert c.admin("POST", "/reload").status == 200

        def carries():
            assert client.get("http://api/after", host="api").status == 200
            return o.seen[-1].message.all("authorization") == ["Bearer planted-text"]
        until(carries, what="the field")
        gate.open()
        assert held.response().status == 200
        assert client.get("http://api/after", host="api").status == 200
    unverified = {s.connection for s in o.seen if s.message.target in ("/before", "/held")}
    for seen in o.seen:
        assert not (seen.connection in unverified and seen.message.all("authorization")), seen




def check(carpool, headers, uri="https://a.test", **more):
    return carpool(start=False, origin=[{"uri": uri, "request": {"headers": headers}, **more}]).check()


@pytest.mark.parametrize("name", ["Host", "Content-Length", "Connection", "Transfer-Encoding", "Proxy-Authorization", "Proxy-Status", "TE", "Upgrade", "Via", "Expect"])
def test_a_field_that_carpool_writes_may_not_be_set(carpool, name):
    said = check(carpool, {name: "planted"})
    assert "origin.request.headers.%s: may not be set" % name in said and "planted" not in said, said


@pytest.mark.parametrize("headers, error", [
    ({"X-A": "planted\r\nX-B: c"}, "has a value with a line end"), ({"X-A": ""}, "is empty"), ({"X-A": 7}, "is not text"),
    ({"X-A": {"file": "/nonexistent"}}, "/nonexistent cannot be read"), ({"X-A": {"file": "/"}}, "/ cannot be read: is a directory"), ({"X-A": {"path": "/x"}}, "has the key"),
    ({"X-A": "planted", "x-a": "planted"}, "is set twice"), ({"X-A": "${CARPOOL_TEST_UNSET}"}, "is not set"),
    ({"X-A": "planted" * 2000}, "is longer than 8192 bytes"), ({"X-%d" % i: "planted" for i in range(33)}, "has 33 fields"),
    ({"X-%d" % i: "planted" * 300 for i in range(5)}, "more than 8KiB together")])
def test_a_value_that_cannot_be_is_a_mistake_with_its_place(carpool, headers, error):
    said = check(carpool, headers)
    assert error in said and "origin.request.headers" in said and "planted" not in said, said


def test_only_verified_and_loopback_origins_may_have_fields(carpool):
    assert "verify = false, expected only one of them" in check(carpool, BEARER, upstream={"tls": {"verify": False}})
    assert "expected https, a loopback address or a Unix socket" in check(carpool, BEARER, "http://a.test")
    assert "does not apply to a tcp origin" in check(carpool, BEARER, "tcp://a.test:1")
    for uri in ("http://localhost:1", "http://127.0.0.1:1", "http://[::1]:1"):
        assert "request.headers" not in check(carpool, BEARER, uri), uri
    assert "request.headers" not in check(carpool, BEARER, "http://a.test", addresses=["127.0.0.1:80"])


def test_a_file_that_cannot_be_read_at_the_start_is_an_error(carpool):
    with pytest.raises(AssertionError, match="/nonexistent cannot be read"):
        carpool(origin=[{"uri": "https://a.test", "request": {"headers": {"X-A": {"file": "/nonexistent"}}}}])


def test_the_printed_configuration_hides_values(origin, carpool, mounted):
    c = carpool(origin=[origin_with(origin(), {**BEARER, "X-B": {"file": str(mounted.file)}})])
    shown = c.admin("GET", "/config.toml").body.decode()
    assert '"Authorization" = { hidden = true }' in shown and "planted" not in shown and str(mounted.file) in shown, shown
    headers = c.get_json("/config")["origin"][0]["request"]["headers"]
    assert headers["Authorization"] == {"hidden": True} and str(mounted.file) in json.dumps(headers) and "planted" not in json.dumps(headers)


def test_a_process_with_credentials_writes_no_core(origin, carpool):
    c = carpool(origin=[origin_with(origin(), BEARER)])
    limits = pathlib.Path("/proc/%d/limits" % c.process.pid).read_text()
    assert re.search(r"Max core file size +0 +0 ", limits), limits
