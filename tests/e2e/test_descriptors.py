"""The process runs out of descriptors: idle connections are closed for new ones."""
import concurrent.futures
import json
import signal
import subprocess
import sys

import pytest
from harness.carpool import PROGRAM
from harness.origin import Gate
from harness.wait import until
from harness.wire import Client


def test_idle_connections_give_their_descriptors_to_clients_who_come(origin, carpool):
    gate = Gate()

    def held(exchange):
        gate.enter()
        exchange.reply()
    o = origin(held)
    c = carpool(inside=["prlimit", "--nofile=72:72"], pool={"size": 16},
                overload={"stop_keep_alive": 0, "refuse_clients": 0, "close_idle": 0})
    until(lambda: sum("too few file descriptors" in line for line in list(c.output)) == 1, what="the warning")

    def one(_):
        with c.client() as client:
            return client.get(o.url + "/").status
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        responses = [pool.submit(one, i) for i in range(16)]
        gate.wait_for(16)
        gate.open()
        assert [a.result(20) for a in responses] == [200] * 16
    assert c.pool(o.url)["borrowable"] == 16
    clients = []
    try:
        for _ in range(60):  # more than there are descriptors left
            clients.append(c.client())
            clients[-1].ask("GET", o.url + "/")
            if len(clients) <= 30:
                assert clients[-1].response().status == 200
        until(lambda: any("cannot accept clients" in line for line in list(c.output)), what="the complaint")
        for client in clients[30:]:
            clients.pop(0).close()
            assert client.response().status in (200, 503)  # 503: it was accepted with the last descriptor
        assert c.metric("carpool_pool_closed_total", origin=o.url, cause="budget") >= 1
    finally:
        for client in clients:
            client.close()


def test_clients_who_come_at_once_leave_descriptors_to_those_who_are_there(origin, carpool):
    o = origin()
    c = carpool(inside=["prlimit", "--nofile=400:400"], pool={"reuse": "never"},
                overload={"stop_keep_alive": 0, "refuse_clients": 0, "close_idle": 0})
    crowd = []
    with c.client() as client:
        assert client.get(o.url + "/").status == 200
        try:
            for _ in range(600):  # all of them idle: more than there are descriptors, faster than any sweep
                crowd.append(c.client())
            until(lambda: c.metric("carpool_overload_shed_total", what="accepts") >= 1, what="a pause of the listener")
            for _ in range(10):
                assert client.get(o.url + "/").status == 200  # each needs a connection to the origin
        finally:
            for one in crowd:
                one.close()
    with c.client() as late:
        assert late.get(o.url + "/").status == 200


@pytest.mark.parametrize("most", range(4, 30))
def test_a_start_with_few_descriptors_serves_or_says_why_not(carpool, most):
    c = carpool(start=False, workers=1)
    with subprocess.Popen(["prlimit", "--nofile=%d:%d" % (most, most), PROGRAM, "--config", c.config], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True) as process:
        lines = []
        for line in process.stdout:
            lines.append(line)
            if "carpool ready" in line:
                process.send_signal(signal.SIGTERM)
    if any("carpool ready" in line for line in lines):
        assert process.returncode == 0, lines
    else:
        assert process.returncode in (2, 3) and "Too many open files" in lines[-1], (process.returncode, lines)


# The two sockets stay open in the program that it executes.
HOLD_THE_PORT = """
import os, socket, sys
server = socket.create_server(("127.0.0.1", 8000))
client = socket.create_connection(("127.0.0.1", 8000))
for one in (server, client):
    one.set_inheritable(True)
os.execvp(sys.argv[1], sys.argv[1:])
"""


def test_a_machine_without_a_free_port_is_no_failure_of_the_origin(carpool, tmp_path):
    """The network namespace has a single local port, which another connection to the origin holds."""
    prepare = 'ip link set lo up && echo 40000 40000 > /proc/sys/net/ipv4/ip_local_port_range && exec "$@"'
    inside = ["unshare", "-n", "sh", "-c", prepare, "sh"]
    if subprocess.run([*inside, "true"], capture_output=True).returncode:
        pytest.skip("a network namespace needs root and iproute2")
    proxy, admin = str(tmp_path / "proxy.sock"), str(tmp_path / "admin.sock")
    c = carpool(inside=[*inside, sys.executable, "-c", HOLD_THE_PORT], listeners=[{"address": "unix:" + proxy}], admin={"address": "unix:" + admin},
                origin=[{"uri": "http://origin.test", "addresses": ["127.0.0.1:8000"], "pool": {"addresses": {"eject_after": 1}}}])
    with Client(proxy) as client:
        for _ in range(3):
            response = client.get("http://origin.test/")
            assert response.status == 503 and "no local port is left" in response.get("proxy-status"), response
    with Client(admin) as client:
        pool = json.loads(client.get("/pools/http%3A%2F%2Forigin.test", host="localhost").body)
    assert [(a["state"], a["failures"]) for a in pool["addresses"]] == [("usable", 0)]
    assert c.process.poll() is None
