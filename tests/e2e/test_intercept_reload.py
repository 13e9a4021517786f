"""Reloads of intercepted origins: clients inside a CONNECT close gracefully when their interception, or its authority, is no longer in force."""
import json
import re

import pytest
from harness.authority import Authority
from harness.h2_client import H2Client
from harness.intercept import CONNECTS, NAME, authority, connected, inside, scene, trusting  # noqa: F401
from harness.wait import until
from harness.wire import Client


def without_intercept(c, authority):
    c.config.write_text(c.config.read_text().replace("intercept = true", "intercept = false"))


def without_origin(c, authority):
    tables = re.split(r"(?m)^(?=\[)", c.config.read_text())
    c.config.write_text("".join(table for table in tables if not re.match(r"\[+origin", table)))


def with_another_authority(c, authority):
    Authority(authority.folder, [NAME])


CHANGES = [without_intercept, without_origin, with_another_authority]


def reloaded(c, change, authority):
    change(c, authority)
    response = c.admin("POST", "/reload")
    assert response.status == 200, response.body


@pytest.mark.parametrize("change", CHANGES)
def test_an_idle_client_is_closed_in_order(scene, authority, change):
    o, c = scene()
    with inside(c, trusting(authority.ca)) as client:
        assert client.get("/", host=c.authority).keeps_alive()
        reloaded(c, change, authority)
        assert client.at_end(), "close_notify, not a reset"


@pytest.mark.parametrize("change", CHANGES)
def test_a_response_in_progress_is_the_last(scene, authority, gate, change):
    def held(exchange):
        gate.enter()
        exchange.reply()
    _, c = scene(held)
    with inside(c, trusting(authority.ca)) as client:
        client.ask("GET", "/held", host=c.authority)
        gate.wait_for(1)
        reloaded(c, change, authority)
        gate.open()
        response = client.response()
        assert response.status == 200 and not response.keeps_alive(), response
        assert client.at_end()


@pytest.mark.parametrize("change", CHANGES)
def test_an_http2_client_gets_goaway(scene, authority, gate, change):
    def held(exchange):
        gate.enter()
        exchange.reply()
    _, c = scene(held)
    sock = trusting(authority.ca, ("h2",)).wrap_socket(connected(c), server_hostname=NAME)
    with H2Client(None, sock) as client:
        stream = client.ask("/held", authority=c.authority, scheme="https")
        gate.wait_for(1)
        reloaded(c, change, authority)
        assert client.until(lambda: client.goaways), "announced while the request runs"
        gate.open()
        assert client.response(stream).status == 200
        client.until(lambda: client.closed)
        assert client.closed and [code for _, code in client.goaways] == [0, 0]


@pytest.mark.parametrize("change, certificate", [(without_intercept, "origin"), (with_another_authority, "authority")])
def test_the_next_connect_follows_the_new_configuration(scene, authority, pki, change, certificate):
    _, c = scene()
    with inside(c, trusting(authority.ca)) as client:
        assert client.get("/", host=c.authority).status == 200
        reloaded(c, change, authority)
        trusted = pki.ca if certificate == "origin" else authority.ca
        with inside(c, trusting(trusted)) as next_one:
            assert next_one.get("/", host=c.authority).status == 200


def test_a_handshake_that_a_reload_overtakes_is_good_for_one_response(scene, authority):
    _, c = scene()
    before = trusting(authority.ca)
    sock = connected(c)
    reloaded(c, with_another_authority, authority)
    with Client(sock=before.wrap_socket(sock, server_hostname=NAME)) as client:
        response = client.get("/", host=c.authority)
        assert response.status == 200 and not response.keeps_alive(), response
        assert client.at_end()


def test_a_reload_of_other_settings_closes_no_client(scene, authority):
    o, c = scene()
    with inside(c, trusting(authority.ca)) as client:
        assert client.get("/", host=c.authority).status == 200
        c.config.write_text(c.config.read_text() + "\n[request]\nretry_budget = 30\n")
        reloaded(c, lambda *_: None, authority)
        assert client.get("/again", host=c.authority).keeps_alive()
        assert client.get("/again", host=c.authority).status == 200
    until(lambda: c.metric(CONNECTS, origin=c.label, result="intercepted") == 1, what="one client")


def test_a_replaced_authority_is_a_change_in_the_report_and_the_log(scene, authority):
    """Whichever reload finds it: the one that the watch of the file causes, or the one that is asked for."""
    _, c = scene()
    Authority(authority.folder, [NAME])
    report = json.loads(c.admin("POST", "/reload").body)
    if report["status"] != "unchanged":
        assert (report["status"], report["renewed"]) == ("reloaded", [str(authority.ca)])
    until(lambda: any('"configuration reloaded","changes":0,"files":1' in line for line in c.output), what="the line")
    assert json.loads(c.admin("POST", "/reload").body)["status"] == "unchanged", "it is in force already"
