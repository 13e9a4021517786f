"""Routing of a request: absolute-form, Host, aliases, a listener with a fixed origin, a Unix socket."""
import grp
import os
import shutil
import ssl
import subprocess
import threading

import pytest
from harness.ports import free_port
from harness.wait import until
from harness.wire import Client


def server_tls(pki):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pki.server, pki.server_key)
    return context


def test_host_names_the_origin_where_the_target_does_not(origin, carpool):
    o, c = origin(), carpool()
    with c.client() as client:
        assert client.get("/path", host=o.authority).status == 200
    assert o.targets() == ["/path"]


def test_routing_by_host_can_be_switched_off(origin, carpool):
    o, c = origin(), carpool(listen={"route_by_host": False})
    with c.client() as client:
        assert 400 <= client.get("/path", host=o.authority).status < 500
    assert not o.seen


def test_an_alias_in_plain_text_reaches_its_tls_origin(origin, carpool, pki):
    o = origin(tls=server_tls(pki))
    c = carpool(upstream={"tls": {"ca_file": pki.ca}},
                origin=[{"uri": "https://origin.test:%d" % o.port, "alias": ["api"], "addresses": [o.authority]}])
    with c.client() as client:
        assert client.get("/by-host", host="api").body == b"ok"
        assert client.get("http://api/by-target").body == b"ok"
        assert client.get("https://origin.test:%d/direct" % o.port).body == b"ok"
    assert o.targets() == ["/by-host", "/by-target", "/direct"]
    assert {s.message.get("host") for s in o.seen} == {"origin.test:%d" % o.port}
    assert o.opened == 1


def test_a_listener_with_an_origin_sends_everything_there(origin, carpool):
    o = origin()
    c = carpool(listen={"origin": o.url})
    with c.client() as client:
        assert client.get("/x", host="whatever.test").status == 200
    assert o.seen[0].message.all("host") == [o.authority]


def test_preserve_host_leaves_host_alone(origin, carpool):
    o = origin()
    c = carpool(listen={"origin": o.url, "preserve_host": True})
    with c.client() as client:
        assert client.get("/x", host="whatever.test").status == 200
    assert o.seen[0].message.all("host") == ["whatever.test"]


def test_a_unix_socket_listens_like_any_other(origin, carpool, tmp_path):
    o, path = origin(), str(tmp_path / "proxy.sock")
    carpool(listeners=[{"address": "unix:" + path}])
    with Client(path) as client:
        assert client.get(o.url + "/raw").status == 200
    if shutil.which("curl"):
        done = subprocess.run(["curl", "-sS", "--noproxy", "*", "--unix-socket", path, "http://%s/curl" % o.authority],
                              capture_output=True, text=True, timeout=20)
        assert (done.returncode, done.stdout) == (0, "ok"), done.stderr
    assert o.opened == 1


def test_the_socket_file_of_a_dead_run_is_no_obstacle_and_goes_at_the_end(carpool, tmp_path):
    path = tmp_path / "proxy.sock"
    first = carpool(listeners=[{"address": "unix:%s" % path}])
    first.process.kill()
    first.process.wait()
    first.process = None
    second = carpool(listeners=[{"address": "unix:%s" % path}])
    Client(str(path)).close()
    second.stop()
    assert not path.exists()


def access_of(path):
    facts = os.stat(path)
    return facts.st_mode & 0o777, facts.st_gid


def test_a_unix_socket_has_the_mode_and_the_group_of_its_listener_and_a_reload_changes_both(carpool, tmp_path):
    path, group = tmp_path / "proxy.sock", os.getgid()
    c = carpool(listeners=[{"address": "unix:%s" % path, "mode": "0660", "group": str(group)}])
    assert access_of(path) == (0o660, group)
    c.config.write_text(c.config.read_text().replace("0660", "600"))
    assert c.admin("POST", "/reload").status == 200
    until(lambda: access_of(path) == (0o600, group), what="the new mode")
    Client(str(path)).close()


def test_a_group_alone_admits_its_members(carpool, tmp_path):
    path = tmp_path / "proxy.sock"
    carpool(listeners=[{"address": "unix:%s" % path, "group": grp.getgrgid(os.getgid()).gr_name}])
    assert access_of(path) == (0o660, os.getgid())


@pytest.mark.parametrize("settings, error", [
    ({"address": "127.0.0.1:0", "mode": "0660"}, 'is set beside the address "127.0.0.1:0"'),
    ({"address": "unix:/tmp/x.sock", "mode": "0668"}, "is not a file mode"),
    ({"address": "unix:/tmp/x.sock", "mode": "4755"}, "is not a file mode"),
    ({"address": "unix:/tmp/x.sock", "group": "no-such-group"}, "the system has no group `no-such-group`"),
])
def test_a_file_mode_that_cannot_be_is_refused(carpool, settings, error):
    assert error in carpool(start=False, listeners=[settings]).check()


def test_several_listeners_serve_side_by_side(origin, carpool):
    o, ports = origin(), [free_port(), free_port()]
    carpool(listeners=[{"address": "127.0.0.1:%d" % p} for p in ports] + [{"address": "[::1]:%d" % ports[0]}])
    for address in (("127.0.0.1", ports[0]), ("127.0.0.1", ports[1]), ("::1", ports[0])):
        with Client(address) as client:
            assert client.get(o.url + "/").status == 200


def test_a_client_certificate_is_shown_to_the_origin_it_belongs_to(nginx, carpool, pki):
    uri = "https://origin.test:%d" % nginx.tls_port
    c = carpool(upstream={"tls": {"ca_file": pki.ca}},
                origin=[{"uri": uri, "addresses": ["127.0.0.1:%d" % nginx.tls_port],
                         "upstream": {"tls": {"cert_file": pki.client, "key_file": pki.client_key}}}])
    with c.client() as client:
        response = client.get(uri + "/whoami")
    assert response.body == b"origin.test CN=client.test origin.test"


def test_clients_that_come_and_go_at_once_leave_the_listener_alone(origin, carpool):
    o, c = origin(), carpool(listen={"max_connections": 6})

    def churn():
        for _ in range(150):
            c.client().reset()
    threads = [threading.Thread(target=churn) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    with c.client() as client:
        assert client.get(o.url + "/").status == 200


def test_clients_that_found_no_descriptor_are_accepted_when_others_go(origin, carpool):
    # Without the stage that refuses new clients: this test is about connections that wait to be accepted.
    o, c = origin(), carpool(inside=["prlimit", "--nofile=40:40"], overload={"refuse_clients": 0, "close_idle": 0})
    clients = [c.client() for _ in range(60)]
    early, late = clients[:-5], clients[-5:]
    for client in late:
        client.ask("GET", o.url + "/")
    for client in early:
        client.close()
    for client in late:
        assert client.response().status == 200
        client.close()
