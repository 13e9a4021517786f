"""A new configuration for the running program: by HUP, POST /reload and the file itself, under load, entirely or not at all."""
import hashlib
import json
import os
import pathlib
import re
import signal
import socket
import ssl
import threading

import pytest
from harness import toml
from harness.hanging_file import HangingFile
from harness.origin import Gate
from harness.pki import Pki
from harness.ports import free_port, tcp_server
from harness.wait import until
from harness.wire import Client


def post(c, path="/reload"):
    response = c.admin("POST", path)
    return response.status, json.loads(response.body)


def rewrite(c, old, new):
    text = c.config.read_text()
    assert old in text, text
    c.replace_config(text.replace(old, new))


def fds(c):
    return len(os.listdir("/proc/%d/fd" % c.process.pid))


def test_it_says_what_would_change_and_what_changed(origin, carpool):
    o, c = origin(), carpool(pool={"wait_timeout": "3s"}, workers=1)
    c.config.write_text(c.config.read_text().replace('"3s"', '"1s"').replace("workers = 1", "workers = 2"))
    want = [{"key": "workers", "from": "1", "to": "2", "applies": "restart"},
            {"key": "pool.wait_timeout", "from": '"3s"', "to": '"1s"', "applies": "now"}]
    status, dry = post(c, "/reload?dry_run=1")
    assert (status, dry["status"]) == (200, "dry run") and dry["changes"] in (want, want[:1])  # the file watch may be faster
    until(lambda: 'wait_timeout = "1s"' in c.admin("GET", "/config.toml").body.decode(), what="the file's own change, or POST")
    shown = c.admin("GET", "/config.toml").body.decode()
    assert "workers = 1" in shown, "what takes a restart is not said to be in force"
    status, again = post(c)
    assert status == 200 and [x["key"] for x in again["changes"]] == ["workers"]


def test_listeners_on_any_port_keep_their_own_settings(origin, carpool, tmp_path):
    o, other, users = origin(), origin(), tmp_path / "users"
    users.write_text("basic user %s\n" % hashlib.sha256(b"password").hexdigest())
    c = carpool(listeners=[{"address": "127.0.0.1:0", "credentials_file": str(users)}, {"address": "127.0.0.1:0", "origin": o.url},
                           {"address": "127.0.0.1:%d" % free_port()}])
    ready = next(line for line in c.output if "carpool ready" in line)
    ports = [int(port) for port in re.findall(r" listen=127\.0\.0\.1:(\d+)", ready)]

    def status(port):
        with Client(("127.0.0.1", port)) as client:
            return client.get(other.url + "/").status
    assert list(map(status, ports)) == [407, 421, 200]
    c.signal(signal.SIGHUP)
    until(lambda: any("the configuration is unchanged" in line for line in c.output), what="the reload by HUP")
    assert list(map(status, ports)) == [407, 421, 200]
    assert post(c)[1]["changes"] == []
    listeners = [{"address": "127.0.0.1:0", "credentials_file": str(users)}, {"address": "127.0.0.1:0", "origin": other.url}]
    c.replace_config(re.sub(r"\[\[listen\]\].*?(?=\n\[(?!\[listen))", toml.dumps({"listen": listeners}), c.config.read_text(), flags=re.S))
    post(c)
    with pytest.raises(ConnectionRefusedError):
        Client(("127.0.0.1", ports[2])).close()
    assert list(map(status, ports[:2])) == [407, 200]


@pytest.mark.parametrize("how", ["hup", "post", "rename", "in place", "configmap"])
def test_every_way_to_ask_for_it_works(origin, carpool, tmp_path, how):
    c = carpool(start=False, request={"max_retries": 1})
    if how == "configmap":
        text = c.config.read_text()
        (tmp_path / "..1").mkdir()
        (tmp_path / "..1/config.toml").write_text(text)
        (tmp_path / "..data").symlink_to("..1")
        (tmp_path / "config.toml").symlink_to("..data/config.toml")
        c.config = tmp_path / "config.toml"
    c.start()
    text = c.config.read_text().replace("max_retries = 1", "max_retries = 4")
    if how == "configmap":
        (tmp_path / "..2").mkdir()
        (tmp_path / "..2/config.toml").write_text(text)
        (tmp_path / "..data_tmp").symlink_to("..2")
        (tmp_path / "..data_tmp").rename(tmp_path / "..data")
    elif how == "in place":
        c.config.write_text(text)
    else:
        rewrite(c, "max_retries = 1", "max_retries = 4")
        if how == "hup":
            c.signal(signal.SIGHUP)
        if how == "post":
            assert post(c)[0] == 200
    until(lambda: "max_retries = 4" in c.admin("GET", "/config.toml").body.decode(), what="the new value")
    until(lambda: any("reloaded" in line for line in c.output), what="the log's word")


def test_a_dry_run_that_is_badly_written_is_refused_and_reloads_nothing(origin, carpool):
    c = carpool()
    for query in ("dry_run=1%00", "dry_run=%zz", "dry_run=yes", "dry_run="):
        assert c.admin("POST", "/reload?" + query).status == 400, query
    assert c.admin("POST", "/reload").status == 200

    def said():
        return sum("the configuration is unchanged" in line for line in list(c.output))
    until(said, what="the one that was meant")
    assert said() == 1


def test_a_bad_file_changes_nothing_and_says_why(origin, carpool):
    o, c = origin(), carpool(pool={"size": 7})
    c.config.write_text(c.config.read_text().replace("size = 7", "size = 0\nsizee = 3"))
    status, said = post(c)
    assert status == 400 and len(said["mistakes"]) == 2
    assert all(re.search(r"config.toml:\d+:\d+: pool\.size", m) for m in said["mistakes"]), said
    until(lambda: any("configuration in force stays" in line for line in c.output), what="the log's word")
    assert "size = 7" in c.admin("GET", "/config.toml").body.decode()
    with c.client() as client:
        assert client.get(o.url + "/").status == 200


def test_a_file_that_is_being_written_is_not_taken_for_an_empty_configuration(origin, carpool):
    o, c = origin(), carpool()
    text = c.config.read_text()
    with c.client() as client:
        c.config.write_text("")
        status, said = post(c)
        assert status == 400 and "empty" in said["error"]
        c.config.write_text(text)
        assert client.get(o.url + "/").status == 200


def test_a_certificate_that_cannot_be_loaded_refuses_the_whole_reload(carpool, pki, tmp_path):
    ca = tmp_path / "ca.pem"
    ca.write_text("not a certificate\n")
    c = carpool(request={"max_retries": 1})
    c.config.write_text(c.config.read_text().replace("max_retries = 1", "max_retries = 3")
                        + '\n[upstream.tls]\nca_file = "%s"\n' % ca)
    status, said = post(c)
    assert status == 400 and str(ca) in said["error"]
    assert "max_retries = 1" in c.admin("GET", "/config.toml").body.decode()


@pytest.mark.parametrize("table, key", [("admin", "address"), ("metrics", "address"), ("handover", "address"), ("admin", "cert_file")])
def test_what_check_refuses_is_refused_although_it_needs_a_restart(carpool, tmp_path, table, key):
    file = tmp_path / "file"
    file.write_text("neither a socket nor a certificate\n")
    c = carpool(request={"max_retries": 1})
    lines = {"address": 'address = "unix:%s"\n' % file,
             "cert_file": 'address = "127.0.0.1:%d"\ncert_file = "%s"\nkey_file = "%s"\n' % (free_port(), file, file)}[key]
    text = c.config.read_text().replace("max_retries = 1", "max_retries = 3")
    if table == "admin":
        text = text.replace('address = "%s:%d"\n' % c.admin_address, lines)
    else:
        text += "\n[%s]\n%s" % (table, lines)
    c.config.write_text(text)
    for path in ("/reload?dry_run=1", "/reload"):
        response = c.admin("POST", path)
        [mistake] = json.loads(response.body)["mistakes"]
        assert response.status == 400 and re.search(r"config.toml:\d+:\d+: %s\.%s: %s" % (table, key, file), mistake), mistake
    assert "max_retries = 1" in c.admin("GET", "/config.toml").body.decode()


def test_other_pools_are_not_touched(origin, carpool):
    one, two = origin(), origin()
    c = carpool(origin=[{"uri": one.url, "request": {"max_retries": 1}}])
    with c.client() as client:
        for o in (one, two):
            assert client.get(o.url + "/").status == 200
        rewrite(c, "max_retries = 1", "max_retries = 0")
        status, said = post(c)
        # None, if the file watch was faster.
        assert status == 200 and [x["key"] for x in said["changes"]] in ([], ["origin %s: request.max_retries" % one.url])
        assert "max_retries = 0" in c.admin("GET", "/config.toml").body.decode()
        for o in (one, two):
            assert client.get(o.url + "/").status == 200
    assert (one.opened, two.opened) == (1, 1), "both pools kept their connection"


def test_aliases_and_egress_follow(origin, carpool):
    o, c = origin(), carpool()
    with c.client() as client:
        assert client.get(o.url + "/").status == 200
        c.config.write_text(c.config.read_text() + '\n[egress]\ndeny = ["127.0.0.1:%d"]\n' % o.port)
        assert post(c)[0] == 200
        assert client.get(o.url + "/").status == 403
        rewrite(c, 'deny = ["127.0.0.1:%d"]' % o.port, '[[origin]]\nuri = "%s"\nalias = ["the-alias"]' % o.url)
        assert post(c)[0] == 200
        assert client.get("http://the-alias/x").status == 200
    assert o.targets()[-1] == "/x"


def test_a_request_in_progress_finishes_by_the_old_rules(origin, carpool):
    gate = Gate()

    def slow(exchange):
        exchange.read_body()
        gate.enter()
        exchange.reply()
    o, c = origin(slow), carpool(request={"response_header_timeout": "60s"})
    with c.client() as client:
        client.ask("GET", o.url + "/")
        gate.wait_for(1)
        rewrite(c, '"60s"', '"50ms"')
        assert post(c)[0] == 200
        with c.client() as other:  # the new rule is in force: it ends this one, and not that one
            assert other.get(o.url + "/other").status == 504
        gate.open()
        assert client.response().status == 200


def test_listeners_come_change_and_go(origin, carpool):
    o, c = origin(), carpool()
    extra = ("127.0.0.1", free_port())
    before = c.config.read_text()
    c.config.write_text(before + '\n[[listen]]\naddress = "%s:%d"\norigin = "%s"\n' % (*extra, o.url))
    status, said = post(c)
    # None, if the file watch was faster.
    assert status == 200 and said["changes"] in ([], [{"key": "listen %s:%d" % extra, "from": None, "to": "open", "applies": "now"}])
    with Client(extra) as client:
        assert client.get("/fixed").status == 200
        with c.client() as other:
            assert other.get("http://%s:%d/loop" % extra).status == 508, "the new listener is one of our own"
        c.config.write_text(before)
        assert post(c)[0] == 200
        assert client.sock.recv(1) == b"", "who came by it is let go"
    with pytest.raises(OSError):
        socket.create_connection(extra, 2)
    for _ in range(3):  # and it can come back
        c.config.write_text(before + '\n[[listen]]\naddress = "%s:%d"\norigin = "%s"\n' % (*extra, o.url))
        assert post(c)[0] == 200
        with Client(extra) as client:
            assert client.get("/again").status == 200
        c.config.write_text(before)
        assert post(c)[0] == 200


def test_clients_beyond_the_limit_are_accepted_when_it_is_raised(origin, carpool):
    o, c = origin(), carpool(listen={"max_connections": 2})
    with c.client() as one, c.client() as two:
        assert one.get(o.url + "/1").status == two.get(o.url + "/2").status == 200
        with c.client() as three:
            three.ask("GET", o.url + "/3")
            assert one.get(o.url + "/1").status == 200 and "/3" not in o.targets()
            rewrite(c, "max_connections = 2", "max_connections = 3")
            assert post(c)[0] == 200
            assert three.response().status == 200


def test_a_client_of_a_listener_that_goes_is_told_with_its_answer(origin, carpool, gate):
    def slow(exchange):
        gate.enter()
        exchange.reply()
    o, c = origin(slow), carpool()
    extra = ("127.0.0.1", free_port())
    before = c.config.read_text()
    c.config.write_text(before + '\n[[listen]]\naddress = "%s:%d"\n' % extra)
    assert post(c)[0] == 200
    with Client(extra) as client:
        client.ask("GET", o.url + "/")
        gate.wait_for(1)
        c.config.write_text(before)
        assert post(c)[0] == 200
        gate.open()
        response = client.response()
        assert (response.status, response.keeps_alive()) == (200, False)
        assert client.at_end()


def test_a_listener_that_cannot_open_refuses_the_whole_reload_and_leaves_no_file_of_another(carpool, tmp_path):
    taken = tcp_server()
    c = carpool(request={"max_retries": 1})
    new = ("unix:%s/new.sock" % tmp_path, "127.0.0.1:%d" % taken.getsockname()[1])
    c.config.write_text(c.config.read_text().replace("max_retries = 1", "max_retries = 2") +
                        "".join('\n[[listen]]\naddress = "%s"\n' % address for address in new))
    status, said = post(c)
    assert status == 400 and str(taken.getsockname()[1]) in said["error"]
    assert not (tmp_path / "new.sock").exists()
    assert "max_retries = 1" in c.admin("GET", "/config.toml").body.decode()
    until(lambda: sum("configuration in force stays" in line for line in c.output) > 1, what="the file watch's own attempt")
    taken.close()
    until(lambda: "max_retries = 2" in c.admin("GET", "/config.toml").body.decode(), 30, "another try, without another change of the file")


def test_a_renewed_ca_is_believed(origin, carpool, pki, tmp_path):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pki.server, pki.server_key)
    o = origin(tls=context)
    stranger = tmp_path / "stranger"
    stranger.mkdir()
    ca = tmp_path / "trusted.pem"
    ca.write_bytes(pathlib.Path(Pki(stranger).ca).read_bytes())
    c = carpool(upstream={"tls": {"ca_file": str(ca)}})
    with c.client() as client:
        assert client.get(o.url + "/").status == 502
        ca.write_bytes(pathlib.Path(pki.ca).read_bytes())
        status, said = post(c)
        assert status == 200, said
        assert client.get(o.url + "/").status == 200


def test_a_renewed_client_certificate_is_shown_by_the_next_request(origin, carpool, pki, tmp_path):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pki.server, pki.server_key)
    context.load_verify_locations(pki.ca)
    context.verify_mode = ssl.CERT_REQUIRED
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_TICKET
    o = origin(lambda e: e.reply(body=str(e.stream.sock.getpeercert()["subject"]).encode()) and None, tls=context)
    shown = {"cert_file": tmp_path / "mine.pem", "key_file": tmp_path / "mine.key"}

    def wear(certificate, key):  # as a mounted Secret changes
        shown["cert_file"].write_bytes(pathlib.Path(certificate).read_bytes())
        shown["key_file"].write_bytes(pathlib.Path(key).read_bytes())
    wear(pki.client, pki.client_key)
    c = carpool(upstream={"tls": {"ca_file": pki.ca, **{k: str(v) for k, v in shown.items()}}})
    with c.client() as client:
        assert b"client.test" in client.get(o.url + "/").body
        wear(pki.wrong_name, pki.wrong_name_key)
        until(lambda: any("configuration reloaded" in line for line in c.output), what="the file watch")
        assert b"other.test" in client.get(o.url + "/").body
    assert c.metric("carpool_pool_closed_total", origin=o.url, cause="config_changed") == 1, "the connection of before"
    assert c.metric("carpool_reloads_total", result="applied") == 1


def test_a_renewed_admin_token_is_demanded(carpool, tmp_path):
    token, port = tmp_path / "token", free_port()
    token.write_text("old-secret\n")
    c = carpool(admin={"address": "0.0.0.0:%d" % port, "token_file": str(token)})
    c.admin_address = ("127.0.0.1", port)

    def status(secret):
        return c.admin("GET", "/pools", [("Authorization", "Bearer " + secret)]).status
    assert (status("old-secret"), status("new-secret")) == (200, 401)
    token.write_text("new-secret\n")
    until(lambda: status("new-secret") == 200, what="the file watch")
    assert status("old-secret") == 401
    until(lambda: any("configuration reloaded" in line for line in c.output), what="a report of the new token")
    assert not any("new-secret" in line for line in c.output)


def test_an_admin_address_that_needs_a_restart_keeps_its_token(carpool, tmp_path):
    token, port = tmp_path / "token", free_port()
    token.write_text("secret\n")
    c = carpool(admin={"address": "0.0.0.0:%d" % port, "token_file": str(token)})
    c.admin_address = ("127.0.0.1", port)
    bearer = [("Authorization", "Bearer secret")]
    text = re.sub(r"(?m)^token_file = .*$", "", c.config.read_text())
    c.replace_config(text.replace("0.0.0.0:%d" % port, "127.0.0.1:%d" % port))
    said = c.admin("POST", "/reload", bearer)
    assert said.status == 200, said
    assert {x["key"]: x["applies"] for x in json.loads(said.body)["changes"]} == {
        "admin.address": "restart", "admin.token_file": "restart"}
    assert (c.admin("GET", "/pools").status, c.admin("GET", "/pools", bearer).status) == (401, 200)


class Load(threading.Thread):
    """Sends requests continuously; an incomplete response is an error."""

    def __init__(self, address, url):
        super().__init__(daemon=True)
        self.address, self.url, self.done, self.errors, self.over = address, url, 0, [], False

    def run(self):
        try:
            with Client(self.address) as client:
                while not self.over:
                    response = client.get(self.url + "/")
                    if response.status != 200 or response.body != b"ok":
                        self.errors.append(response)
                    self.done += 1
        except Exception as error:  # noqa: BLE001: every end but ours is an error
            self.errors.append(error)


def test_reloads_under_load_lose_no_request_and_no_descriptor(origin, carpool, full):
    reloads = 1000 if full else 100
    origins = [origin() for _ in range(3)]
    c = carpool(pool={"size": 8, "wait_timeout": "3s"}, log={"access": False},
                origin=[{"uri": origins[0].url, "pool": {"max_waiting": 64}}])
    load = [Load(c.address, o.url) for o in origins for _ in range(2)]
    for one in load:
        one.start()
    until(lambda: all(one.done > 10 for one in load), what="load")
    text = c.config.read_text()
    variants = [text, text.replace('"3s"', '"4s"'), text.replace("size = 8", "size = 9"), text.replace("max_waiting = 64", "max_waiting = 32")]
    before, rss = None, None
    for i in range(reloads):
        c.replace_config(variants[i % len(variants)])
        status, said = post(c)
        assert status == 200, said
        if i == 20:
            before, rss = fds(c), c.rss()
    until(lambda: abs(fds(c) - before) <= 2, what="as many descriptors as before")
    for one in load:
        one.over = True
    for one in load:
        one.join(10)
    assert [one.errors for one in load] == [[]] * len(load)
    assert sum(one.done for one in load) > reloads
    assert c.rss() - rss < 8 << 20
    assert [o.opened for o in origins] == [o.peak for o in origins], "no connection was closed for a reload"


def test_reading_files_that_hang_holds_up_neither_admin_nor_requests(origin, carpool):
    o, c, slow = origin(), carpool(), HangingFile()
    config = c.config.read_text()
    c.config.write_text(config + '\n[[origin]]\nuri = "https://other.test"\n[origin.upstream.tls]\nca_file = "%s"\n' % slow.path)
    responses = []
    asking = threading.Thread(target=lambda: responses.append(post(c)))
    asking.start()
    slow.wait_for_reader()
    until(lambda: any(thread.get("doing") == "reload" for thread in c.get_json("/threads")["threads"]), what="the task")
    assert c.admin("GET", "/livez").status == 200
    assert Client(c.address).get("http://%s/" % o.authority).status == 200
    assert not responses
    slow.end()
    asking.join(10)
    status, said = responses[0]
    assert status == 400 and slow.path in json.dumps(said), "no certificate is in it"


def test_a_stop_while_a_reload_reads_ends_in_order(carpool, pki, tmp_path):
    socket_file = tmp_path / "admin.sock"
    c, slow = carpool(admin={"address": "unix:%s" % socket_file}), HangingFile()
    c.replace_config(c.config.read_text() + '\n[[origin]]\nuri = "https://other.test"\n[origin.upstream.tls]\nca_file = "%s"\n' % slow.path)
    slow.wait_for_reader()
    c.signal(signal.SIGTERM)
    until(lambda: any("drained" in line for line in c.output), what="the end of the loops")
    slow.end(pathlib.Path(pki.ca).read_bytes()[1:])
    assert c.wait() == 0
    assert not socket_file.exists() and not any("a task does not end" in line for line in c.output), c.tail()


def test_a_fifo_without_a_writer_is_refused_at_once_wherever_a_file_is_named(carpool, tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    c = carpool()
    config = c.config.read_text()
    c.config.write_text(config + '\n[upstream.tls]\nca_file = "%s"\n' % fifo)
    status, said = post(c)
    assert status == 400 and "%s cannot be read: is not a regular file" % fifo in json.dumps(said), said
    c.config.unlink()
    os.mkfifo(c.config)
    status, said = post(c)
    assert status == 400 and "%s: cannot be read: is not a regular file" % c.config in said["error"], said
    c.config.unlink()
    c.config.write_text(config)
    assert post(c)[0] == 200


def test_a_configuration_from_a_pipe_cannot_be_reloaded(carpool):
    c = carpool(inside=["bash", "-c", 'exec "$0" "$1" <(cat "$2")'])
    status, said = post(c)
    assert status == 400 and "is a pipe, which was read at the start: a reload needs a file" in said["error"], said


def test_a_configuration_over_a_limit_is_refused_and_counted(carpool):
    c = carpool()
    good = c.config.read_text()
    over = {"file": good + "#" * (16 << 20),
            "depth": "wrong = " + "[" * 200 + "]" * 200,
            "variables": '[log]\nlevel = "%s"' % ("${PATH}" * 65536),
            "mistakes": "".join("wrong%d = 1\n" % i for i in range(101))}
    for limit, text in over.items():
        assert c.metric("carpool_reload_limits_total", limit=limit) == 0
        c.replace_config(text)
        assert post(c)[0] == 400
        assert c.metric("carpool_reload_limits_total", limit=limit) >= 1  # the file's own change may be one more
