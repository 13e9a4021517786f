"""The program's flags and exit codes, without and with an instance running."""
import json
import os
import re
import socket
import subprocess
import tomllib

import pytest
from harness.carpool import PROGRAM, ROOT
from harness.h2_client import H2Client
from harness.ports import free_port, tcp_server

LOCATED = re.compile(r"^(.+):(\d+):(\d+): ([\w.\[\]\"-]+): .+")


def run(*arguments, cwd=None, env=None):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=20, cwd=cwd, env=env)


def check(tmp_path, text, env=None):
    file = tmp_path / "c.toml"
    file.write_text(text)
    return run("--config", file, "--check", env=env)


def test_version_and_help(tmp_path):
    first, *rest = run("--version").stdout.splitlines()
    assert re.fullmatch(r"carpool \d+\.\d+\.\d+( \([\w.-]+\))?", first)
    libraries = dict(line.rsplit(" ", 1) for line in rest if not line.startswith("compiler "))
    assert {"OpenSSL", "libuv", "nghttp2", "c-ares", "llhttp", "zlib", "libidn2", "spdlog", "fmt", "toml++", "nlohmann-json"} == set(libraries)
    assert all(re.fullmatch(r"\d+\.\d+(\.\d+)*", version) for version in libraries.values()), libraries
    shown = run("--help")
    assert shown.returncode == 0
    for flag in ("--config", "--check", "--print-config", "--demo", "--version", "--health", "--print-default-config", "--print-schema"):
        assert flag in shown.stdout, flag


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["--print-default-config"], ["--print-schema"], ["completion", "bash"],
                                   ["man", "carpool"], ["pause", "--help"], ["ca", "--help"]], ids=" ".join)
def test_an_output_that_cannot_be_written_is_an_error(words):
    with open("/dev/full", "w") as full:
        done = subprocess.run([PROGRAM, *words], stdout=full, stderr=subprocess.PIPE, text=True, timeout=20)
    assert (done.returncode, done.stderr) == (3, "carpool: the output could not be written\n")


def test_a_reader_that_left_gets_no_complaint():
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as pipe:
        done = subprocess.run([PROGRAM, "man", "carpool.toml"], stdout=pipe, stderr=subprocess.PIPE, text=True, timeout=20)
    assert (done.returncode, done.stderr) == (3, "")


def test_the_configuration_may_come_from_the_shell(tmp_path):
    text = "workers = 2\n"
    given = subprocess.run([PROGRAM, "--config", "/dev/stdin", "--print-config"], input=text, capture_output=True, text=True, timeout=20)
    assert "workers = 2" in given.stdout, given.stderr
    script = '"$0" --config <(printf "workers = 2\\n") --print-config'
    assert "workers = 2" in subprocess.run(["bash", "-c", script, PROGRAM], capture_output=True, text=True, timeout=20).stdout
    assert run("--config", "/dev/null", "--check").stdout == "ok\n"
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with subprocess.Popen([PROGRAM, "--config", fifo, "--print-config"], stdout=subprocess.PIPE, text=True) as waiting:
        fifo.write_text(text)  # waits for the reader
        assert "workers = 2" in waiting.communicate(timeout=20)[0]


def test_an_unknown_flag_is_a_configuration_error():
    done = run("--no-such-flag")
    assert done.returncode == 1 and "--no-such-flag" in done.stderr


def test_a_good_file_is_ok(tmp_path):
    done = check(tmp_path, "workers = 2\n[pool]\nsize = 8\n")
    assert (done.returncode, done.stdout.strip()) == (0, "ok")


@pytest.mark.parametrize("text, line, key, word", [
    ("[pool]\nsize = 8\nsizee = 9\n", 3, "pool.sizee", "pool.size|`?size"),
    ("workers = 0\n", 1, "workers", ""),
    ('[pool]\nwait_timeout = "soon"\n', 2, "pool.wait_timeout", "250ms|duration"),
    ('[pool]\nwait_timeout = "0s"\n', 2, "pool.wait_timeout", ""),
    ('[[listen]]\naddress = "0.0.0.0:3128"\n', 2, "listen", "open|loopback|deny"),
    ('[admin]\naddress = "0.0.0.0:9901"\n', 2, "admin", "token_file"),
    ('[[origin]]\nuri = "http://a"\n[[origin]]\nuri = "http://A.:80/"\n', 4, "origin", "twice|already|same"),
    ("[pool]\nsize = 2\nmin_idle = 3\n", 3, "pool.min_idle", "size"),
    ('[pool]\nstrategy = "sideways"\n', 2, "pool.strategy", "first"),
    ('[[listen]]\naddress = ":3128"\n', 2, "listen.address", 'write "127.0.0.1:3128"'),
    ("[pool]\nwait_timeout = 60s\n", 2, "syntax", 'write "60s"'),
    ('[egress]\nallow = [\n  "a.test",\n  "b.*",\n]\n', 4, "egress.allow", "item 2"),
    ("[pool]\nworkers = 2\n", 2, "pool.workers", r"at the top of the file, before the first \[table\]"),
    ('[egress]\ndeny = ["*.test"]\n[[listen]]\nconnect = false\norigin = "http://a.test"\n', 5, "listen.origin", "egress.deny, so each"),
    ('[egress]\ndefault = "deny"\nallow = ["b.test"]\n[[listen]]\norigin = "http://a.test"\n', 5, "listen.origin", "default is deny"),
    ('[egress]\ndeny = ["10.0.0.0/8"]\n[[origin]]\nuri = "http://a.test"\naddresses = ["10.1.2.3:80"]\n'
     '[[listen]]\norigin = "http://a.test"\n', 7, "listen.origin", "as 10.1.2.3"),
])
def test_a_mistake_is_named_with_its_place_and_what_was_expected(tmp_path, text, line, key, word):
    done = check(tmp_path, text)
    assert done.returncode == 1
    said = (done.stdout + done.stderr).splitlines()
    found = [m for m in map(LOCATED.match, said) if m and int(m.group(2)) == line and m.group(4).startswith(key)]
    assert any(m.group(1).endswith("c.toml") and re.search(word, m.group(0)) for m in found), said


@pytest.mark.parametrize("egress", [
    '[egress]\ndeny = ["*.test"]\nreport_only = true\n',
    '[egress]\ndefault = "deny"\nallow = ["a.test"]\n',
    '[egress]\ndefault = "deny"\nallow = ["10.0.0.0/8"]\n',  # the name may have such an address
])
def test_a_fixed_origin_that_egress_may_permit_is_fine(tmp_path, egress):
    done = check(tmp_path, egress + '[[listen]]\norigin = "http://a.test"\n')
    assert (done.returncode, done.stdout, done.stderr) == (0, "ok\n", "")


def test_a_warning_has_its_place_and_is_no_error(tmp_path):
    done = check(tmp_path, '[[origin]]\nuri = "https://a.test"\n[origin.upstream.tls]\nverify = false\n')
    assert (done.returncode, done.stdout) == (0, "ok\n")
    assert re.fullmatch(r"warning: \S+c\.toml:4:10: origin\.upstream\.tls\.verify: is false, .+\n", done.stderr)


def test_a_relative_path_begins_at_the_folder_of_its_file(tmp_path):
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/token").write_text("t")
    (tmp_path / "conf/c.toml").write_text('[admin]\ntoken_file = "token"\n')
    for cwd, name in ((tmp_path, "conf/c.toml"), (tmp_path / "conf", "c.toml"), ("/", tmp_path / "conf/c.toml")):
        printed = run("--config", name, "--print-config", cwd=cwd)
        assert tomllib.loads(printed.stdout)["admin"]["token_file"] == str(tmp_path / "conf/token"), printed.stderr


def test_every_mistake_is_reported_not_the_first_alone(tmp_path):
    done = check(tmp_path, "workers = -1\n[pool]\nsize = \"x\"\nnonsense = 1\n")
    assert len([line for line in (done.stdout + done.stderr).splitlines() if LOCATED.match(line)]) == 3


def test_a_mistake_shows_control_characters_as_escapes(tmp_path):
    config = tmp_path / "a\x1b[1m.toml"
    config.write_text('[[origin]]\nuri = "http://a.test"\nalias = ["\\u001b[31m"]\n[log]\nfile = "/nowhere\\u001b[31m/x"\n')
    done = run("--check", "--config", str(config))
    assert done.returncode == 1 and "\x1b" not in done.stdout + done.stderr and done.stderr.count("\\u001B[31m") == 2, done.stderr


def test_toml_that_does_not_parse_names_its_place(tmp_path):
    done = check(tmp_path, "workers = \n")
    assert done.returncode == 1 and "c.toml:1:" in done.stdout + done.stderr


def test_the_origin_of_a_tunnel_may_be_configured(tmp_path):
    assert check(tmp_path, '[[origin]]\nuri = "tcp://db.test:5432"\n').returncode == 0


def test_the_environment_fills_in(tmp_path):
    text = '[[listen]]\naddress = "${PLACE:-127.0.0.1:1}"\n'
    file = tmp_path / "c.toml"
    file.write_text(text)
    for env, want in (({}, "127.0.0.1:1"), ({"PLACE": "127.0.0.1:2"}, "127.0.0.1:2")):
        printed = tomllib.loads(run("--config", file, "--print-config", env=env).stdout)
        assert printed["listen"][0]["address"] == want
    assert check(tmp_path, '[[listen]]\naddress = "${MISSING}"\n', env={}).returncode == 1
    assert check(tmp_path, 'workers = "${N}"\n[metrics]\nenabled = "${ON}"\n', env={"N": "2", "ON": "false"}).returncode == 0
    assert check(tmp_path, 'workers = "${N}"\n', env={"N": "none"}).returncode == 1


def test_a_variable_that_is_not_utf8_is_a_mistake_with_its_place(tmp_path):
    for text, key in (('[log]\nfile = "${X}"\n', "log.file"), ('[[origin]]\nuri = "https://a.test"\n[origin.request.headers]\nX-A = { file = "${X}" }\n', "X-A")):
        done = check(tmp_path, text, env={b"X": b"/a\xff"})
        assert done.returncode == 1 and "not UTF-8" in done.stderr and key in done.stderr, done


def test_the_effective_configuration_can_be_fed_back(tmp_path):
    file = tmp_path / "c.toml"
    file.write_text('workers = 2\n[pool]\nsize = 8\n[[origin]]\nuri = "https://a.test"\nalias = ["a"]\n[origin.pool]\nsize = 3\n'
                    '[[origin]]\nuri = "tcp://db.test:5432"\n')
    once = run("--config", file, "--print-config")
    assert once.returncode == 0, once.stderr
    again_file = tmp_path / "again.toml"
    again_file.write_text(once.stdout)
    assert run("--config", again_file, "--check").stdout.strip() == "ok"
    assert run("--config", again_file, "--print-config").stdout == once.stdout
    values = tomllib.loads(once.stdout)
    assert (values["pool"]["size"], values["origin"][0]["pool"]["size"], values["request"]["max_retries"]) == (8, 3, 1)


def test_the_commented_file_at_the_root_is_the_default(tmp_path):
    printed = run("--print-default-config").stdout
    assert printed == (ROOT / "config.toml").read_text()
    file = tmp_path / "c.toml"
    file.write_text(printed)
    assert run("--config", file, "--check").stdout.strip() == "ok"


def test_the_schema_is_json_and_knows_the_keys():
    schema = json.loads(run("--print-schema").stdout)
    assert {"workers", "listen", "pool", "request", "origin"} <= set(schema["properties"])


def test_a_taken_address_ends_with_two(carpool):
    taken = tcp_server()
    c = carpool(start=False)
    c.config.write_text(c.config.read_text().replace("%s:%d" % c.address, "127.0.0.1:%d" % taken.getsockname()[1]))
    done = run("--config", c.config)
    assert done.returncode == 2 and str(taken.getsockname()[1]) in done.stderr
    taken.close()


def test_a_missing_file_ends_with_one(tmp_path):
    assert run("--config", tmp_path / "nowhere.toml").returncode == 1


def test_health_asks_the_running_instance(carpool):
    c = carpool()
    assert run("--config", c.config, "--health").returncode == 0
    c.stop()
    assert run("--config", c.config, "--health").returncode != 0


def test_health_asks_at_the_address_of_metrics_where_there_is_no_admin_endpoint(carpool):
    c = carpool(admin={"enabled": False}, metrics={"address": "127.0.0.1:%d" % free_port()})
    assert run("--config", c.config, "--health").returncode == 0
    c.stop()
    assert run("--config", c.config, "--health").returncode == 1
    c.config.write_text("[admin]\nenabled = false\n")
    nowhere = run("--config", c.config, "--health")
    assert nowhere.returncode == 1 and "or a [metrics] address" in nowhere.stderr, nowhere


def test_ready_names_the_addresses_that_port_zero_became(origin, carpool):
    o = origin()
    c = carpool(listeners=[{"address": "127.0.0.1:0"}])
    ready = next(line for line in c.output if "carpool ready" in line)
    ports = [int(p) for p in re.findall(r"127\.0\.0\.1:(\d+)", ready)]
    c.address = ("127.0.0.1", next(p for p in ports if p != c.admin_address[1]))
    with c.client() as client:
        assert client.get(o.url + "/").status == 200


def test_the_manager_is_notified(carpool, tmp_path, monkeypatch):
    path = str(tmp_path / "notify.sock")
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind(path)
    manager.settimeout(10)
    monkeypatch.setenv("NOTIFY_SOCKET", path)
    carpool()
    assert b"READY=1" in manager.recv(1000)
    manager.close()


def test_a_manager_that_does_not_read_does_not_stop_the_start(carpool, tmp_path, monkeypatch):
    path = str(tmp_path / "notify.sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as others:
        manager.bind(path)
        others.setblocking(False)
        with pytest.raises(BlockingIOError):
            while True:
                others.sendto(b"WATCHDOG=1", path)
        monkeypatch.setenv("NOTIFY_SOCKET", path)
        proxy = carpool()
        proxy.stop()
        assert proxy.process.returncode == 0


def every_path_of_the_demo(address):
    """Requests to its HTTP/2 origin, by an HTTP/2 client."""
    with H2Client(address) as client:
        def get(path, **more):
            return client.get(path, authority="demo-h2", **more)
        first, again = get("/"), get("/")
        assert int(again.get("demo-request")) > int(first.get("demo-request")) or first.get("demo-connection") != again.get("demo-connection")
        assert len(get("/bytes/700000").body) == 700_000
        assert get("/delay/30").body == b"waited 30 ms\n"
        assert get("/bytes/10", method="HEAD").get("content-length") == "10"
        echo = client.ask("/echo", "POST", "demo-h2", end=False)
        client.send(echo, b"x" * 300_000, end=True)
        assert client.response(echo).body == b"x" * 300_000
        assert get("/nothing").status == 404
        assert get("/close").status == 200 and get("/").status == 200


def test_the_demo_serves_and_prints_what_to_try(tmp_path):
    demo = subprocess.Popen([PROGRAM, "--demo"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=tmp_path)
    try:
        said = []
        while len([s for s in said if "curl " in s]) < 3 or not re.search(r"reus", " ".join(said)):
            line = demo.stdout.readline()
            assert line, said
            said.append(line)
        for command in [s.strip() for s in said if "curl " in s]:
            done = subprocess.run(["sh", "-c", command + " -sS"], capture_output=True, text=True, timeout=20)
            assert done.returncode == 0, (command, done.stderr)
            assert "demo-h2" not in command or "protocol    HTTP/2 over TLSv1.3" in done.stdout
        for protocol in ("HTTP/1.1, at", "HTTP/1.1 over TLS, at", "HTTP/2 over TLS, at"):
            assert any("  origin    http" in s and protocol in s for s in said), said
        host, port = re.search(r"listener  http://(\S+):(\d+)", "".join(said)).groups()
        every_path_of_the_demo((host, int(port)))
    finally:
        demo.terminate()
        assert demo.wait(20) == 0
