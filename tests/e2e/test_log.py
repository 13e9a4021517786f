"""The log of the running program: its contents, what it must never contain, and that no request waits for its reader."""
import json
import os
import re
import signal
import socket
import subprocess
import threading

import pytest
from harness.carpool import PROGRAM, ROOT
from harness.ports import free_port
from harness.wait import until

TABLE = (ROOT / "docs/log.md").read_text().split("## The access log", 1)[1].split("\n## ", 1)[0]
DOCUMENTED = {name for row in re.findall(r"^\| (.*?) \|", TABLE, re.M) for name in re.findall(r"`([a-z_]+)`", row)}
EVERY_LINE = {"level", "module"}  # of whatever event
ELSEWHERE = {"intercepted", "not_intercepted", "user", "grpc_status"}  # tests of intercepted origins, of credentials and of gRPC see them


def test_no_credential_of_a_request_reaches_the_log(origin, carpool):
    o, c = origin(), carpool(log={"level": "trace"})
    secret = "hunter2hunter2"
    with c.client() as client:
        client.request("GET", "http://alice:%s@%s/" % (secret, o.authority))
    with c.client() as client:
        for query in ("access_token=%s", "q=seen&api_key=%s", "Signature=%s", "code=%s&page=7", "access_key=%s", "AWSAccessKeyId=%s", "acc%%65ss_key=%s"):
            client.request("GET", o.url + "/find?" + query % secret)
        fields = [("Authorization", "Bearer " + secret), ("Cookie", "sid=" + secret), ("Proxy-Authorization", "Basic " + secret)]
        assert client.request("GET", o.url + "/last", fields).status == 200
    assert c.admin("GET", "/pools?token=" + secret, [("Authorization", "Bearer " + secret)]).status == 200
    until(lambda: any("/last" in r["target"] for r in c.access_log()), what="the last line")
    c.stop()
    assert not any(secret in line for line in c.output)
    targets = " ".join(r["target"] for r in c.access_log())
    assert "q=seen" in targets and "page=7" in targets and "***" in targets, "what one looks for stays"


def test_no_request_can_end_a_line_or_colour_a_terminal(origin, carpool):
    o, c = origin(), carpool(log={"format": "text"})
    with c.client() as client:
        client.request("GET", o.url + "/%0a%1b[31m", [("User-Agent", "x")])
        client.send(b"GET %s/\xff\x9b31m HTTP/1.1\r\nHost: a\r\n\r\n" % o.url.encode())
        client.response()
    c.stop()
    assert not any(re.search(r"[^\x20-\x7e]", line) for line in c.output), c.output


def test_every_field_of_the_access_log_is_documented_and_every_documented_one_comes(origin, carpool):
    def second_dies(exchange):
        if exchange.nth == 2 or exchange.request.method == "POST":
            return False
        return exchange.reply(body=b"x" * 10)
    o, c = origin(second_dies), carpool()
    with c.client() as client:
        trace = [("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")]
        assert client.request("GET", o.url + "/", trace).status == 200
        assert client.request("GET", o.url + "/again").status == 200
        assert client.request("GET", "http://127.0.0.1:%d/" % free_port()).status == 502
        lost = client.request("POST", o.url + "/order")
        assert lost.status == 502
        why = "the connection was new, so the origin may have processed the request"
        assert lost.get("proxy-status").endswith('; not repeated: %s"' % why)
    until(lambda: len(c.access_log()) == 4, what="four lines")
    seen = {name for row in c.access_log() for name in row}
    assert seen - EVERY_LINE == DOCUMENTED - ELSEWHERE, seen ^ DOCUMENTED
    assert [row.get("retries", 0) for row in c.access_log()] == [0, 1, 0, 0]
    assert c.access_log()[1]["retried"] == "idempotent_reused"
    assert c.access_log()[3]["not_repeated"] == why


def test_nobody_waits_for_who_does_not_read_the_log(origin, carpool):
    """stderr is a pipe without a reader: requests continue, dropped lines are counted, and a reader finds complete lines."""
    o, c = origin(), carpool(start=False)
    reads, writes = os.pipe()
    process = subprocess.Popen([PROGRAM, "--config", c.config], stderr=writes)
    os.close(writes)
    try:
        assert b"carpool ready" in os.read(reads, 65536)
        with c.client() as client:
            def served():
                for _ in range(500):
                    assert client.get(o.url + "/" + "x" * 900).status == 200
                return c.metric("carpool_log_dropped_total") > 0
            until(served, 60, "a full pipe and a full queue")
            assert client.get(o.url + "/").status == 200
        os.set_blocking(reads, False)
        text = os.read(reads, 1 << 20)
        lines = text.split(b"\n")[1:-1]
        assert len(lines) > 20 and all(json.loads(line) for line in lines)
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        os.close(reads)


@pytest.mark.parametrize("closed", ["2>&-", "0<&- 1>&- 2>&-"])
def test_a_closed_stderr_sends_nobody_the_log_and_the_end_is_clean(origin, carpool, closed):
    o, c = origin(), carpool(start=False)
    c.process = subprocess.Popen(["sh", "-c", 'exec "$@" ' + closed, "sh", str(PROGRAM), "--config", str(c.config)],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    c._reader = threading.Thread(target=lambda: None)
    c._reader.start()

    def accepts():
        with socket.socket() as probe:
            return probe.connect_ex(c.address) == 0
    until(accepts, what="a listener")
    with c.client() as idle:
        with c.client() as client:
            for i in range(5):
                assert client.get(o.url + "/secret-%d" % i).status == 200
        until(lambda: c.metric("carpool_log_dropped_total") >= 5, what="the lines that could not be written")
        links = [os.readlink("/proc/%d/fd/%d" % (c.process.pid, fd)) for fd in (0, 1, 2)]
        assert not any("socket" in link for link in links), links
        answer = idle.get(o.url + "/mine")
        assert answer.status == 200 and answer.body == b"ok"
    c.stop()


# ---- what docs/log.md says of values ----

def lines(c):
    return [json.loads(line) for line in c.output if line.startswith("{")]


def test_every_line_but_those_that_the_documentation_names_is_json(origin, carpool):
    o, c = origin(), carpool(upstream={"tls": {"verify": False}})
    with c.client() as client:
        client.get(o.url + "/")
    c.signal(signal.SIGHUP)
    until(lambda: any(row["module"] == "reload" for row in lines(c)), what="the reload")
    c.stop()
    plain = [line for line in c.output if not line.startswith("{")]
    assert len(plain) == 2 and re.match(r"warning: \S+:\d+:\d+: upstream\.tls\.verify: ", plain[0]) and plain[1].startswith("carpool ready "), plain
    assert {row["module"] for row in lines(c)} >= {"access", "reload"}


def test_a_status_and_bytes_are_those_of_the_documentation(origin, carpool):
    o, c = origin(), carpool()
    with c.client() as client:
        answer = client.get(o.url + "/")
        refused = client.get("http://127.0.0.1:%d/" % free_port())
        client.send(b"NONSENSE\r\n\r\n")
        bad = client.response()
    until(lambda: len(c.access_log()) == 3, what="three lines")
    good, failed, malformed = c.access_log()
    assert (good["status"], good["bytes_out"]) == (200, len(answer.body))
    assert (failed["status"], failed["bytes_out"]) == (refused.status, 0) and refused.body, "a text of carpool's own does not count"
    assert not {"connection", "reuse", "upstream_seconds"} & failed.keys() and failed["origin"]
    assert (malformed["status"], malformed["bytes_out"]) == (bad.status, 0)
    assert malformed["method"] == malformed["target"] == "" and "origin" not in malformed, "nothing was read"


def test_a_request_that_the_end_of_the_process_cuts_off_has_the_status_that_was_sent(origin, carpool, gate):
    def held(exchange):
        gate.enter()
        return False
    o, c = origin(held), carpool(shutdown_grace="200ms")
    with c.client() as client:
        client.ask("GET", o.url + "/")
        gate.wait_for(1)
        c.signal(signal.SIGTERM)
        answer = client.response()
        assert c.wait() == 0
        gate.open()
    assert answer.status == 503 and [row["status"] for row in c.access_log()] == [503]
