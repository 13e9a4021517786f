"""Certificates that are replaced while carpool runs: nothing continues under the old ones, nor in a successor."""
import pathlib

import pytest
from harness.h2_origin import H2Origin
from harness.origin import Gate
from harness.pki import Pki
from harness.wait import until


@pytest.fixture
def other(tmp_path):
    """Certificates of another authority."""
    folder = tmp_path / "other"
    folder.mkdir()
    return Pki(folder)


@pytest.fixture
def trust(tmp_path, pki):
    """A file with authorities, which holds the origin's first; write(*files) replaces what it holds."""
    class Trust:
        path = tmp_path / "trust.pem"

        def write(self, *files):
            fresh = self.path.with_suffix(".new")
            fresh.write_bytes(b"".join(pathlib.Path(f).read_bytes() for f in files))
            fresh.rename(self.path)
    made = Trust()
    made.write(pki.ca)
    return made


def reload(c):
    assert c.admin("POST", "/reload").status == 200


def closed(c, o):
    return c.metric("carpool_pool_closed_total", origin=o.url, cause="config_changed")


@pytest.mark.parametrize("workers", [1, 2])
def test_what_a_replaced_authority_verified_serves_no_further_request(origin, carpool, context, trust, other, workers):
    gate = Gate()

    def handler(exchange):
        if exchange.request.target == "/held":
            gate.enter()
        exchange.reply()
    o = origin(handler, tls=context)
    c = carpool(workers=workers, upstream={"tls": {"ca_file": str(trust.path)}})
    running = c.client()
    running.ask("GET", o.url + "/held")
    gate.wait_for(1)
    with c.client() as client:
        assert client.get(o.url + "/").status == 200
        trust.write(other.ca)
        reload(c)
        assert closed(c, o) == 1, "the idle one is gone when the reload is answered"
        assert client.get(o.url + "/").status in (502, 503), "503: it waits for the connection in use, which may serve"
    gate.open()
    assert running.response().status == 200, "a running request is completed"
    running.close()
    until(lambda: closed(c, o) == 2 and c.pool(o.url)["active"] == 0, what="the end of the other one")


def test_the_change_of_the_file_is_enough(origin, carpool, context, trust, other):
    o, c = origin(tls=context), carpool(upstream={"tls": {"ca_file": str(trust.path)}})
    with c.client() as client:
        assert client.get(o.url + "/").status == 200
        trust.write(other.ca)
        until(lambda: closed(c, o) == 1, what="the file watch")
        assert client.get(o.url + "/").status == 502


@pytest.fixture
def new_authorities_while_it_dials(origin, carpool, context, trust, gate):
    """(*files) -> carpool, the origin, and the status of a request for which carpool dialled when its authorities changed."""
    def change(*files):
        context.sni_callback = lambda sock, name, ctx: gate.enter() and None
        o = origin(tls=context)
        c = carpool(upstream={"tls": {"ca_file": str(trust.path)}})
        with c.client() as client:
            client.ask("GET", o.url + "/")
            gate.wait_for(1)
            trust.write(*files)
            reload(c)
            gate.open()
            return c, o, client.response().status
    return change


def test_a_dial_in_progress_begins_anew_under_the_new_authorities(new_authorities_while_it_dials, other, pki):
    c, o, status = new_authorities_while_it_dials(other.ca, pki.ca)
    assert status == 200
    assert (o.opened, len(o.seen)) == (2, 1)
    assert closed(c, o) == 0 and c.pool(o.url)["active"] == 1
    with c.client() as client:
        assert client.get(o.url + "/").status == 200
    assert o.opened == 2


def test_a_dial_in_progress_that_only_the_old_authority_believes_fails(new_authorities_while_it_dials, other):
    _, o, status = new_authorities_while_it_dials(other.ca)
    assert status == 502
    assert not o.seen


@pytest.mark.parametrize("workers", [1, 2])
def test_an_http2_connection_finishes_its_streams_and_takes_no_more(carpool, context, trust, other, pki, workers):
    gate = Gate()

    def handler(stream):
        if stream.pseudo[":path"] == "/held":
            gate.enter()
        stream.reply()
    context.set_alpn_protocols(["h2"])
    o = H2Origin(handler, tls=context)
    c = carpool(workers=workers, upstream={"tls": {"ca_file": str(trust.path)}})
    running = c.client()
    running.ask("GET", o.url + "/held")
    gate.wait_for(1)
    before = o.opened
    trust.write(other.ca, pki.ca)
    reload(c)
    with c.client() as client:
        assert client.get(o.url + "/").status == 200
    assert o.opened > before
    gate.open()
    assert running.response().status == 200
    running.close()
    until(lambda: closed(c, o) == before, what="the end of those before")
    o.stop()


def test_a_private_connection_is_not_used_again(origin, carpool, context, trust, other, pki):
    def handler(exchange):
        exchange.reply(body=b"%d" % exchange.connection)
    o = origin(handler, tls=context)
    c = carpool(workers=1, upstream={"tls": {"ca_file": str(trust.path)}})
    with c.client() as alice:
        for _ in range(2):
            assert alice.get(o.url + "/", ("Authorization", "NTLM alice")).body == b"1"
        trust.write(other.ca, pki.ca)
        reload(c)
        assert alice.get(o.url + "/").body == b"2"
    assert closed(c, o) == 1


def test_reloads_that_change_no_certificate_close_nothing(origin, carpool, context, trust, pki):
    o, c = origin(tls=context), carpool(upstream={"tls": {"ca_file": str(trust.path)}})
    with c.client() as client:
        assert client.get(o.url + "/").status == 200
        trust.write(pki.ca)
        reload(c)
        assert client.get(o.url + "/").status == 200
    assert o.opened == 1 and closed(c, o) == 0


def test_the_systems_authorities_are_read_again_at_a_reload(origin, carpool, context, trust, other, monkeypatch, tmp_path):
    monkeypatch.setenv("SSL_CERT_FILE", str(trust.path))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path / "none"))
    o, c = origin(tls=context), carpool()
    with c.client() as client:
        assert client.get(o.url + "/").status == 200
        trust.write(other.ca)
        reload(c)
        assert client.get(o.url + "/").status == 502
    assert closed(c, o) == 1


def test_what_waits_while_a_reload_asks_for_more_is_not_sent_on_a_connection_of_before(origin, carpool, context, other, pki):
    gate = Gate()

    def handler(exchange):
        if exchange.request.target == "/held":
            gate.enter()
        exchange.reply()
    o, c = origin(handler, tls=context), carpool(pool={"size": 1, "wait_timeout": "60s"}, upstream={"tls": {"verify": False}})
    running, waiting = c.client(), c.client()
    running.ask("GET", o.url + "/held")
    gate.wait_for(1)
    waiting.ask("GET", o.url + "/waits")
    until(lambda: c.metric("carpool_pool_waiting", origin=o.url) == 1, what="it waits")
    c.config.write_text(c.config.read_text().replace("verify = false", 'verify = true\nca_file = "%s"' % other.ca))
    reload(c)
    gate.open()
    assert running.response().status == 200, "what was sent already is finished"
    response = waiting.response()
    assert response.status == 502 and "tls_certificate" in response.get("proxy-status"), response
    assert "/waits" not in o.targets()
    c.config.write_text(c.config.read_text().replace(other.ca, pki.ca))
    reload(c)
    with c.client() as client:
        assert client.get(o.url + "/now").status == 200
