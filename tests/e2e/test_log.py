"""The log of the running program: its contents, what it must never contain, and that no request waits for its reader."""
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import threading
import types

import pytest
from harness.carpool import PROGRAM, ROOT
from harness.ports import free_port, tcp_server
from harness.wait import until

TABLE = (ROOT / "docs/log.md").read_text().split("## The access log", 1)[1].split("\n## ", 1)[0]
DOCUMENTED = {name for row in re.findall(r"^\| (.*?) \|", TABLE, re.M) for name in re.findall(r"`([a-z_]+)`", row)}
EVERY_LINE = {"level", "module"}  # of whatever event
ELSEWHERE = {"intercepted", "not_intercepted", "user", "grpc_status", "client_tls", "upstream_tls", "hedge"}  # other tests see them


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
        lost = client.request("POST", origin(second_dies).url + "/order")
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
        told = b""
        while b"carpool ready" not in told:
            more = os.read(reads, 65536)
            assert more, told
            told += more
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
        response = idle.get(o.url + "/mine")
        assert response.status == 200 and response.body == b"ok"
    c.stop()


# ---- the contents of docs/log.md ----

LOG = (ROOT / "docs/log.md").read_text()
SAMPLES = [json.loads(line) for line in re.findall(r'^(\{"(?:time|level)":.*\})$', LOG, re.M)]
VARIES = {"time", "pid", "version", "file", "client", "target", "origin", "address", "connection", "request", "user", "error",
          "wait_seconds", "upstream_seconds", "total_seconds", "memory_bytes", "descriptors", "connections", "trace_id", "fault", "bytes_in",
          "bytes_out", "from", "to", "key", "origins", "sockets", "uid", "age_seconds", "pools", "active", "idle", "borrows", "restores",
          "created", "closed"}


def shape(row):
    """A line without what differs from run to run: which fields it has, in their order, and the values that do not vary."""
    return [(name, type(value).__name__ if name in VARIES else value) for name, value in row.items() if name != "time"]


def rows(c):
    return [json.loads(line) for line in c.output if line.startswith("{")]


UNKNOWN = {"pid", "uid", "trace_id"}  # absent where they are not known


def documented(c, *messages):
    """Each of these messages was logged as docs/log.md shows it."""
    for message in messages:
        sample = [row for row in SAMPLES if row.get("message") == message]
        assert sample, "docs/log.md has no sample of %r" % message
        said = [row for row in rows(c) if row.get("message") == message]
        sample = [{name: value for name, value in row.items() if name not in UNKNOWN or any(name in one for one in said)} for row in sample]
        assert said and shape(said[0]) == shape(sample[0]), (message, said, sample)


def test_every_line_but_the_ready_one_is_json(origin, carpool):
    o, c = origin(), carpool(upstream={"tls": {"verify": False}})
    with c.client() as client:
        client.get(o.url + "/")
    c.signal(signal.SIGHUP)
    until(lambda: any(row.get("module") == "reload" for row in rows(c)), what="the reload")
    c.stop()
    plain = [line for line in c.output if not line.startswith("{")]
    assert len(plain) == 1 and plain[0].startswith("carpool ready "), plain
    assert all(json.loads(line) for line in c.output if line not in plain)
    assert any("upstream.tls.verify: is false" in row.get("message", "") for row in rows(c) if row["level"] == "warn")


def test_a_life_is_told_from_start_to_end_as_documented(origin, carpool, gate):
    def held(exchange):
        gate.enter()
        exchange.reply()
    o, c = origin(held), carpool(drain_delay="100ms")
    with c.client() as client:
        client.ask("GET", o.url + "/")
        gate.wait_for(1)
        c.signal(signal.SIGTERM)
        until(lambda: any("no new clients" in row.get("message", "") for row in rows(c)), what="the second stage")
        gate.open()
        assert client.response().status == 200
    assert c.wait() == 0
    told = [row["message"] for row in rows(c) if row["module"] == "server"]
    assert told == ["starting", "limits", "listening", "signal received", "draining: not ready, still accepting",
                    "draining: no new clients, running requests may finish", "drained: every client has left", "stopped"], told
    documented(c, *told)
    start = next(row for row in rows(c) if row["message"] == "starting")
    assert start["file"] == str(c.config) and start["pid"] == c.process.pid and re.match(r"\d+\.\d+\.\d+", start["version"])


@pytest.mark.parametrize("again", ["a second signal", "the end of shutdown_grace"])
def test_what_is_cut_off_at_the_end_is_told(origin, carpool, gate, again):
    def held(exchange):
        gate.enter()
        return False
    o, c = origin(held), carpool(shutdown_grace="5s" if again == "a second signal" else "200ms")
    with c.client() as client:
        client.ask("GET", o.url + "/")
        gate.wait_for(1)
        c.signal(signal.SIGTERM)
        if again == "a second signal":
            until(lambda: any("no new clients" in row.get("message", "") for row in rows(c)), what="the drain")
            c.signal(signal.SIGTERM)
        assert c.wait() == 0
        gate.open()
    documented(c, "draining: running requests are cut off now" if again == "a second signal"
               else "draining: shutdown_grace is over, running requests are cut off")
    line = c.access_log()[-1]
    assert line["status"] == 503 and "method" in line, "status 0 is never logged"


def test_a_failed_start_is_one_line_of_json(carpool):
    with tcp_server() as taken:
        c = carpool(start=False)
        c.config.write_text(c.config.read_text().replace("%s:%d" % c.address, "127.0.0.1:%d" % taken.getsockname()[1]))
        done = subprocess.run([PROGRAM, "--config", c.config], capture_output=True, text=True, timeout=20)
    said = [json.loads(line) for line in done.stderr.splitlines()]
    assert done.returncode == 2 and [row["level"] for row in said] == ["info", "error"] and "Address already in use" in said[1]["message"]


def test_a_failed_start_whose_log_is_a_file_tells_the_reason_on_stderr_too(carpool, tmp_path):
    with tcp_server() as taken:
        c = carpool(start=False, log={"file": str(tmp_path / "log")})
        c.config.write_text(c.config.read_text().replace("%s:%d" % c.address, "127.0.0.1:%d" % taken.getsockname()[1]))
        done = subprocess.run([PROGRAM, "--config", c.config], capture_output=True, text=True, timeout=20)
    reason = json.loads((tmp_path / "log").read_text().splitlines()[-1])["message"]
    assert "Address already in use" in reason and (done.returncode, done.stderr) == (2, "carpool: %s\n" % reason)


@pytest.mark.parametrize("name", ["/dev/stderr", "/dev/stdout", "/proc/self/fd/2", "its own name", "another file"])
def test_a_failed_start_tells_the_reason_once_where_the_log_is_stderr(carpool, tmp_path, name):
    path = tmp_path / "redirected"
    file = {"its own name": str(path), "another file": "/dev/fd/1"}.get(name, name)
    with tcp_server() as taken, path.open("wb") as stderr, (tmp_path / "stdout").open("wb") as stdout:
        c = carpool(start=False, log={"file": file})
        c.config.write_text(c.config.read_text().replace("%s:%d" % c.address, "127.0.0.1:%d" % taken.getsockname()[1]))
        out = stdout if name == "another file" else stderr
        assert subprocess.run([PROGRAM, "--config", c.config], stdout=out, stderr=stderr, timeout=20).returncode == 2
    shown = [line for line in path.read_text().splitlines() if "Address already in use" in line]
    assert len(shown) == 1, shown
    assert ("Address already in use" in (tmp_path / "stdout").read_text()) == (name == "another file")


def test_an_access_line_has_the_documented_fields_and_values(origin, carpool):
    o, c = origin(), carpool()
    with c.client() as client:
        response = client.request("GET", o.url + "/a?x=1")
        refused = client.request("GET", "http://127.0.0.1:%d/" % free_port())
        head = client.request("HEAD", "http://127.0.0.1:%d/" % free_port())
    until(lambda: len(c.access_log()) == 3, what="three lines")  # another loop's line may overtake them
    with c.client() as client:
        name = "%s:%d" % client.sock.getsockname()
        client.send(b"NONSENSE\r\n\r\n")
        bad = client.response()
    until(lambda: len(c.access_log()) == 4, what="four lines")
    good, failed, headless, malformed = c.access_log()
    sample = next(row for row in SAMPLES if row["module"] == "access" and row["status"] == 200)
    assert shape(good) == shape(sample), (good, sample)
    assert good["bytes_out"] == len(response.body)
    assert (failed["status"], failed["bytes_out"]) == (refused.status, 0) and refused.body, "a body of carpool's own does not count"
    assert (headless["status"], headless["bytes_out"]) == (head.status, 0)
    assert (malformed["status"], malformed["bytes_out"]) == (bad.status, 0)
    assert malformed["client"] == name
    assert malformed["method"] == malformed["target"] == "" and "origin" not in malformed, "nothing was read"
    assert "connection" not in failed and "upstream_seconds" not in failed


def test_a_hand_over_is_told_by_both_processes(carpool, tmp_path):
    c = carpool(handover={"address": "unix:%s" % (tmp_path / "h.sock")})
    after = subprocess.Popen([PROGRAM, "--config", c.config], stderr=subprocess.PIPE, text=True)
    try:
        assert c.wait() == 0
        first = []
        while not ("the old process has stopped accepting" in "".join(first) and any(line.startswith("carpool ready") for line in first)):
            first.append(after.stderr.readline())
            assert first[-1], first
    finally:
        after.send_signal(signal.SIGTERM)
        rest = after.communicate(timeout=20)[1]
    assert after.returncode == 0
    documented(c, "sockets sent to the new process", "draining: the successor accepts, clients may finish",
               "the new process took over; completing running requests")
    documented(types.SimpleNamespace(output=first + rest.splitlines()), "sockets received from the old process",
               "ready: the old process is asked to stop accepting", "the old process has stopped accepting")


def test_a_command_to_a_pool_a_denial_and_a_held_connection_are_told_as_documented(origin, carpool, gate):
    def held(exchange):
        gate.enter()
        exchange.reply()
    o, c = origin(held), carpool(egress={"deny": ["10.0.0.0/8"]}, pool={"leak_timeout": "200ms"})
    with c.client() as client, c.client() as other:
        client.ask("GET", o.url + "/slow")
        until(lambda: c.get_json("/leaks")["leaks"], what="the report")
        assert other.get("http://10.0.0.1/").status == 403
        path = "/pools/%s" % o.url.replace("/", "%2F")
        assert c.admin("POST", path + "/pause?for=10m").status == 200
        until(lambda: any(row.get("message") == "command to a pool" for row in rows(c)), what="the line of the command")
        assert c.admin("POST", path + "/resume").status == 200
        gate.open()
        assert client.response().status == 200
    until(lambda: any(row.get("message") == "denied" for row in rows(c)), what="the line of the denial")
    documented(c, "command to a pool", "denied", "a connection is held longer than leak_timeout")
    leak, = [row for row in rows(c) if "leak_timeout" in row.get("message", "")]
    assert leak["uid"] == os.getuid() and leak.get("pid", os.getpid()) == os.getpid() and "trace_id" not in leak, leak


def test_a_summary_is_told_as_documented(origin, carpool):
    def of(row):
        return {**row, "busiest": re.sub(r"=\d+", "=0", row["busiest"].partition(" ")[2])}
    o, c = origin(), carpool(metrics={"summary_interval": "100ms"})
    with c.client() as client:
        assert client.get(o.url + "/").status == 200
    until(lambda: any(row.get("message") == "pools" and row["pools"] for row in rows(c)), what="a summary")
    said, = [row for row in rows(c) if row.get("message") == "pools" and row["pools"]][:1]
    sample, = [row for row in SAMPLES if row.get("message") == "pools"]
    assert shape(of(said)) == shape(of(sample))


# ---- every line of the source ----

CALL = re.compile(r'log::(info|warn|error)\(\s*"([a-z0-9]+)",\s*((?:"(?:[^"\\]|\\.)*"\s*)+)(?:,\s*(\{.*?\}|fields)\s*)?\);', re.S)
FIELD = re.compile(r'\{"([a-z_0-9]+)",')


def lines_of_the_source():
    """(level, module, message, its fields) of each call with a constant message, but those of `carpool webhook`."""
    for file in sorted((ROOT / "proxy").rglob("*.cc")):
        text = file.read_text() if "webhook" not in file.parts else ""
        for level, module, literals, fields in CALL.findall(text):
            if fields == "fields":
                fields = re.search(r"const log::Fields fields(\{.*?\});", text, re.S)[1]
            message = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', literals))
            yield level, module, message, FIELD.findall(fields)


def test_the_documentation_has_a_sample_of_each_line_with_its_fields():
    shown = {(row["level"], row["module"], row["message"], tuple(row)) for row in SAMPLES if "message" in row}
    shown = {(level, module, message, tuple(k for k in keys if k not in ("time", "level", "module", "message"))) for level, module, message, keys in shown}
    said = {(level, module, message, tuple(fields)) for level, module, message, fields in lines_of_the_source()}
    assert len(said) > 50, "the pattern no longer finds the calls"
    assert not said - shown, said - shown
    source = re.sub(r'"\s*"', "", "".join(file.read_text() for file in (ROOT / "proxy").rglob("*.cc")))
    gone = [message for _, _, message, _ in shown if '"%s"' % message not in source]
    assert not gone, gone


# ---- formats and targets ----

TEXT_SAMPLE = re.search(r"^2026-\S+ info  access .*$", LOG, re.M)[0]
COMBINED_SAMPLE = re.search(r'^127\.0\.0\.1 - - \[.*$', LOG, re.M)[0]
COMBINED = re.compile(r'(\S+) - (\S+) \[(\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d) \+0000\] "([A-Z]+ \S+ HTTP/[0-9.]+)" (\d{3}) (\d+) "([^"]*)" "([^"]*)"')


def test_an_access_line_in_text_has_the_documented_fields(origin, carpool):
    o, c = origin(), carpool(log={"format": "text"})
    with c.client() as client:
        client.get(o.url + "/a?x=1")
    until(lambda: any(" access " in line for line in c.output), what="the line")
    line = next(line for line in c.output if " access " in line)
    names = [re.findall(r" ([a-z_]+)=", text) for text in (line, TEXT_SAMPLE)]
    assert names[0] == names[1] and re.match(r"\S+Z info  access request=[0-9a-z]{4}-0-1 ", line)


def test_an_access_line_in_the_combined_format_is_the_documented_one(origin, carpool, tmp_path):
    file = tmp_path / "access.log"
    o, c = origin(), carpool(log={"access_format": "combined", "access_file": str(file)})
    with c.client() as client:
        fields = [("Referer", "http://shop.example/?token=hunter2"), ("User-Agent", "curl/8.0"), ("Cookie", "sid=hunter2")]
        client.request("GET", o.url + "/a?x=1&sig=hunter2", fields)
        client.get(o.url + "/b")
    until(lambda: file.exists() and file.read_text().count("\n") == 2, what="two lines")
    first, second = file.read_text().splitlines()
    sample, said, bare = (COMBINED.fullmatch(line).groups() for line in (COMBINED_SAMPLE, first, second))
    assert "hunter2" not in first
    assert said[3] == "GET %s/a?x=1&sig=*** HTTP/1.1" % o.url
    assert (said[0], said[1], said[4], said[5], said[6], said[7]) == (sample[0], sample[1], sample[4], sample[5], sample[6], sample[7])
    assert bare[6:] == ("-", "-")
    c.stop()  # writes all lines
    assert not any('"access"' in line for line in c.output), "the other lines are on stderr, these are not"


def test_usr1_reopens_both_files(origin, carpool, tmp_path):
    events, access = tmp_path / "carpool.log", tmp_path / "access.log"
    o, c = origin(), carpool(log={"file": str(events), "access_file": str(access)})
    with c.client() as client:
        client.get(o.url + "/before")
        until(lambda: "/before" in access.read_text(), what="the first line")
        for file in (events, access):
            file.rename(file.with_suffix(".1"))
        c.signal(signal.SIGUSR1)
        until(lambda: events.exists() and "log reopened" in events.read_text(), what="the new file")
        client.get(o.url + "/after")
    until(lambda: access.exists() and "/after" in access.read_text(), what="the line in the new file")
    assert "/before" in access.with_suffix(".1").read_text() and "/before" not in access.read_text()
    said = [json.loads(line) for line in (events.with_suffix(".1").read_text() + events.read_text()).splitlines()]
    assert [row["message"] for row in said][:2] == ["starting", "limits"] and all("message" in row for row in said)
    c.output[:] = [json.dumps(row) for row in said]
    documented(c, "log reopened")


def test_syslog_gets_each_line_with_its_priority(origin, carpool, tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as daemon:
        daemon.bind(str(tmp_path / "log"))
        daemon.settimeout(10)
        o, c = origin(), carpool(log={"syslog": "unix:%s" % (tmp_path / "log")}, upstream={"tls": {"verify": False}})
        with c.client() as client:
            client.get(o.url + "/seen")
        said = []
        while not any("/seen" in line for line in said):
            said.append(daemon.recv(65536).decode())
    rows = [re.fullmatch(r"<(\d+)>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d carpool\[(\d+)\]: (\{.*\})", line).groups() for line in said]
    assert {pid for _, pid, _ in rows} == {str(c.process.pid)}
    levels = {json.loads(line)["level"]: number for number, _, line in rows}
    assert levels == {"info": "30", "warn": "28"}, levels
    c.stop()


def test_lines_for_the_journal_have_their_priority(origin, carpool):
    """As systemd does it, the descriptor of stderr is named in JOURNAL_STREAM."""
    c = carpool(start=False)
    reads, writes = os.pipe()
    about = os.fstat(writes)
    process = subprocess.Popen([PROGRAM, "--config", c.config], stderr=writes, env={**os.environ, "JOURNAL_STREAM": "%d:%d" % (about.st_dev, about.st_ino)})
    os.close(writes)
    with os.fdopen(reads) as lines:
        said = []
        while not any("carpool ready" in line for line in said):
            said.append(lines.readline())
        process.send_signal(signal.SIGTERM)
        said += lines.readlines()
    assert process.wait(20) == 0
    logged = [line for line in said if "carpool ready" not in line]
    assert len(logged) > 3 and all(re.match(r'<6>\{"time":.*\}$', line) for line in logged), said


@pytest.mark.parametrize("key", ["file", "access_file"])
def test_a_file_that_cannot_be_written_is_told_with_its_line(carpool, tmp_path, key):
    c = carpool(log={key: str(tmp_path / "no" / "such.log")}, start=False)
    done = subprocess.run([PROGRAM, "--config", c.config], capture_output=True, text=True, timeout=20)
    assert done.returncode == 1 and re.search(r":\d+:\d+: log.%s: .*such.log cannot be created: No such file or directory" % key, done.stderr), done.stderr


def test_the_protocols_and_tls_versions_of_both_sides_are_logged(origin, carpool, pki):
    own = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    own.load_cert_chain(pki.server, pki.server_key)
    o = origin(tls=own)
    c = carpool(listen={"cert_file": str(pki.server), "key_file": str(pki.server_key)}, upstream={"tls": {"ca_file": str(pki.ca)}})
    context = ssl.create_default_context(cafile=pki.ca)
    with socket.create_connection(c.address) as plain, context.wrap_socket(plain, server_hostname="localhost") as client:
        client.sendall(b"GET https://localhost:%d/ HTTP/1.0\r\n\r\n" % o.port)
        assert b" 200 " in client.recv(4096)
    until(c.access_log, what="the line")
    row = c.access_log()[0]
    assert (row["client_protocol"], row["client_tls"], row["upstream_protocol"], row["upstream_tls"]) == ("HTTP/1.0", "TLSv1.3", "HTTP/1.1", "TLSv1.3"), row
