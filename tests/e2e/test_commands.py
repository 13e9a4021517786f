"""The subcommands: tables and JSON of a running instance, pool commands, exit codes; and the files generated from their table."""
import json
import socket
import subprocess
import threading

import pytest
from harness.carpool import PROGRAM, ROOT
from harness.ports import free_port

NOT_RELOADED = "not reloaded: the instance keeps its configuration\n"


def run(*arguments, **more):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=20, **more)


@pytest.fixture
def used(origin, carpool):
    o, c = origin(), carpool()
    with c.client() as client:
        for _ in range(3):
            client.get(o.url + "/")
    c.admin_text = "%s:%d" % c.admin_address
    return o, c


def test_pools_are_a_table_or_json(used):
    o, c = used
    done = run("pools", "--admin", c.admin_text)
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and lines[0].split()[:4] == ["ORIGIN", "OPEN", "IDLE", "BUSY"]
    assert lines[1].split()[:4] == [o.url, "1", "1", "0"]
    for same in ("localhost:%d", "http://localhost:%d/"):
        assert run("pools", "--admin", same % c.admin_address[1]).stdout.splitlines()[0] == lines[0]
    silent = run("pools", "--admin", "nobody.invalid:9901")
    assert (silent.returncode, silent.stdout) == (2, "") and silent.stderr.startswith("carpool: no answer from nobody.invalid:9901: ")
    as_json = run("--admin", c.admin_text, "--json", "pools")
    assert json.loads(as_json.stdout)["pools"][0]["origin"] == o.url


def test_an_origin_that_is_unknown_is_refused_in_json_too(used):
    _, c = used
    done = run("connections", "nosuch", "--json", "--admin", c.admin_text)
    assert done.returncode == 3 and done.stderr == "" and "nosuch" in json.loads(done.stdout)["error"], done


def test_the_configuration_names_the_instance(used):
    o, c = used
    assert o.url in run("--config", c.config, "pools").stdout
    assert o.url in run("top", "--config=%s" % c.config, "--once").stdout


def test_a_part_of_the_uri_is_enough_where_only_one_pool_has_it(used, origin):
    o, c = used
    other = origin()
    with c.client() as client:
        client.get(other.url + "/")
    done = run("connections", o.port, "--admin", c.admin_text)
    assert done.returncode == 0 and done.stdout.splitlines()[1].split()[1] == "idle"
    assert run("connections", o.url, "--admin", c.admin_text).stdout == done.stdout or done.returncode == 0
    both = run("connections", "127.0.0.1", "--admin", c.admin_text)
    assert both.returncode == 1 and o.url in both.stderr and other.url in both.stderr
    none = run("connections", "nowhere", "--admin", c.admin_text)
    assert none.returncode == 3 and "nowhere" in none.stderr and "`carpool origins` lists them" in none.stderr
    assert run("connections", "--admin", c.admin_text).returncode == 1


def test_an_alias_names_its_origin_even_before_a_pool(origin, carpool):
    o = origin()
    c = carpool(origin=[{"uri": o.url, "alias": ["orders"]}, {"uri": "https://pay.test:8443", "alias": ["pay"]}])
    listed = run("origins", "--config", c.config)
    assert listed.stdout.split() == sorted([o.url, "https://pay.test:8443"]) + sorted(
        ["orders", "pay"], key=lambda alias: {"orders": o.url, "pay": "https://pay.test:8443"}[alias])
    told = json.loads(run("origins", "--json", "--config", c.config).stdout)["origins"]
    assert {"origin": o.url, "alias": ["orders"], "pool": False} in told
    warm = run("warm-up", "orders", "--size", 1, "--config", c.config)
    assert warm.returncode == 0, warm
    assert run("pool", "orders", "--config", c.config).stdout.splitlines()[0].split() == ["origin", o.url]
    assert run("pool", "pay", "--config", c.config).stdout.splitlines()[0].split() == ["origin", "https://pay.test:8443"]
    near = run("pool", "ordres", "--config", c.config)
    assert (near.returncode, near.stdout) == (3, "") and near.stderr.endswith("did you mean `orders`?\n")


def test_a_file_with_errors_still_names_the_instance_that_runs_without_them(used):
    o, c = used
    text = c.config.read_text()
    c.config.write_text(text + "\n[request]\nmax_retries = 99\n")
    done = run("pools", "--config", c.config)
    assert done.returncode == 0 and o.url in done.stdout and done.stderr.startswith("warning: %s:" % c.config), done
    assert "request.max_retries" in done.stderr
    assert run("--health", "--config", c.config).returncode == 0, "an instance is ready whatever becomes of its file"
    refused = run("reload", "--config", c.config)
    assert refused.returncode == 1 and "request.max_retries" in refused.stderr
    c.config.write_text(text + "\n[pool\n")
    for arguments in (("pools",), ("--health",)):
        assert run(*arguments, "--config", c.config).returncode == 1, "the address may be behind the error"


def test_nobody_answers_at_the_address_of_a_file(tmp_path):
    file = tmp_path / "a.toml"
    file.write_text('[admin]\naddress = "127.0.0.1:%d"\n' % (port := free_port()))
    done = run("ready", "--config", file)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "carpool: no answer from 127.0.0.1:%d ([admin] address of %s): Connection refused\n" % (port, file)
    as_json = run("ready", "--json", "--config", file)
    assert (as_json.returncode, as_json.stderr) == (2, "") and "no answer from" in json.loads(as_json.stdout)["error"], "errors once"


@pytest.mark.parametrize("line, told", [
    (["my.toml"], "`my.toml` is not a command; did you mean `--config my.toml`?"),
    (["--port", "3128"], "`--port` is not known; see carpool --help"),
    (["pols"], "`pols` is not a command; did you mean `pools`?")])
def test_a_wrong_line_is_told_what_was_meant(line, told):
    done = run(*line)
    assert (done.returncode, done.stderr) == (1, "carpool: %s\n" % told)


def test_the_help_of_a_command_fits_a_terminal_and_names_every_operand():
    commands = [line.split()[0] for line in run("--help").stdout.split("except the last five")[1].splitlines() if line.startswith("  ") and line[2] != " "]
    assert len(commands) > 25
    for command in commands:
        text = run(command, "--help").stdout
        assert text.startswith("carpool " + command) and max(map(len, text.splitlines())) <= 100, text
    assert run("credential", "--help").stdout.startswith("carpool credential SCHEME NAME\n")
    assert run("ca", "--help").stdout.startswith("carpool ca ACTION DIR [--host NAME...]")
    advice = run("advice", "--help").stdout
    assert "[--client-cert FILE [--client-key FILE]]" in advice.split("\n\n")[0] and run("help", "advice").stdout == advice
    assert run("help").stdout == run("--help").stdout


def test_reload_says_what_changed_and_why_not(used):
    o, c = used
    text = c.config.read_text()
    c.config.write_text(text.replace("workers = 2", "workers = 3"))  # a change that the file watch cannot apply first
    dry = run("reload", "--dry-run", "--config", c.config)
    assert dry.returncode == 0 and "workers" in dry.stdout and "dry run" in dry.stdout, dry
    c.config.write_text(text + "\n[request]\nmax_retries = 99\n")
    bad = run("reload", "--admin", c.admin_text)
    assert bad.returncode == 3 and bad.stderr.count("request.max_retries") == 1
    assert bad.stderr.endswith("\n" + NOT_RELOADED)
    assert run("reload", "--config", c.config).stderr.endswith("\n" + NOT_RELOADED)
    c.config.write_text("")
    empty = run("reload", "--admin", c.admin_text)
    assert empty.stderr == "carpool: reload refused: %s: is empty, probably still being written\n%s" % (c.config, NOT_RELOADED)


def test_threads_and_every_other_question_have_an_answer(used):
    o, c = used
    assert "threads" in run("threads", "--admin", c.admin_text).stdout
    for name, *rest in (("explain", o.url), ("leaks",), ("advice", o.url), ("pause", o.url), ("resume", o.url)):
        done = run(name, *rest, "--admin", c.admin_text)
        assert done.returncode in (0, 3) and (done.stdout or done.stderr), done


def test_what_if_shows_the_simulated_settings_beside_the_current_ones(used):
    o, c = used
    done = run("what-if", o.url, "--size", 3, "--min-idle", 1, "--max-waiting", 7, "--max-usage", 9, "--idle-timeout", "1s", "--expire-time", "2m",
               "--wait-timeout=250ms", "--admin", c.admin_text)
    assert done.returncode == 0, done
    rows = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()}
    assert rows["CURRENT"] == ["SIMULATED"] and rows["size"] == ["64", "3"] and rows["served"] == ["3", "3"]
    assert [rows[name][1] for name in ("min_idle", "max_waiting", "max_usage")] == ["1", "7", "9"]
    assert [rows[name][-2:] for name in ("idle_timeout", "expire_time", "wait_timeout")] == [["1", "s"], ["2", "min"], ["250", "ms"]]
    wrong = run("what-if", o.url, "--idle-timeout", "soon", "--admin", c.admin_text)
    assert wrong.returncode == 1 and "`--idle-timeout`: `soon` is not a time such as" in wrong.stderr
    wrong = run("what-if", o.url, "--min-idle", "3", "--size", "2", "--admin", c.admin_text)
    assert (wrong.returncode, wrong.stdout) == (1, "") and "min_idle: 3 is more than size, 2" in wrong.stderr, wrong
    wrong = run("what-if", o.url, "--min-idle", "65", "--json", "--admin", c.admin_text)
    assert (wrong.returncode, wrong.stderr) == (1, "") and "is more than size" in json.loads(wrong.stdout)["detail"], wrong


def test_what_if_of_an_origin_without_a_request_has_its_settings_and_no_outcome(carpool):
    c = carpool(origin=[{"uri": "http://orders.test", "alias": ["orders"], "pool": {"size": 7, "idle_timeout": "40s", "wait_timeout": "2s"}}])
    shown = run("what-if", "orders", "--size", 9, "--config", c.config).stdout
    rows = {line.split()[0]: line.split()[1:] for line in shown.splitlines()}
    assert rows["size"] == ["7", "9"] and rows["idle_timeout"] == ["40", "s"] * 2 and rows["wait_timeout"] == ["2", "s"] * 2
    assert "there is no load to simulate" in shown


def test_log_levels_are_shown_and_set(used):
    _, c = used
    assert run("log-level", "--admin", c.admin_text).stdout == "MODULE  LEVEL\nall     info\n"
    assert run("log-level", "debug", "--module", "tls", "--admin", c.admin_text).stdout.splitlines()[1:] == ["others  info", "tls     debug"]
    assert c.get_json("/log-level") == {"level": "info", "modules": {"tls": "debug"}}
    assert json.loads(run("log-level", "warn", "--json", "--admin", c.admin_text).stdout) == {"level": "warn", "modules": {}}
    loud = run("log-level", "loud", "--admin", c.admin_text)
    assert loud.returncode == 1 and "trace, debug, info, warn, error or off" in loud.stderr
    nobody = run("log-level", "info", "--module", "nobody", "--admin", c.admin_text)
    assert nobody.returncode == 1 and "`nobody` is not access" in nobody.stderr


def test_what_it_runs_with_is_shown(used):
    o, c = used
    assert "descriptors" in run("overload", "--admin", c.admin_text).stdout
    config = run("config", "--admin", c.admin_text)
    assert config.returncode == 0 and config.stdout == c.admin("GET", "/config.toml").body.decode()
    assert json.loads(run("config", "--json", "--admin", c.admin_text).stdout) == c.get_json("/config")
    pool = run("pool", o.url, "--admin", c.admin_text).stdout
    assert pool.split()[:2] == ["origin", o.url] and "addresses" in pool


def test_ready_says_why_not(origin, carpool, gate):
    def held(exchange):
        gate.enter()
        exchange.reply()
    o, c = origin(held), carpool()
    ready = run("ready", "--config", c.config)
    assert json.loads(run("ready", "--json", "--config", c.config).stdout) == {"status": "ready"}
    assert (ready.returncode, ready.stdout) == (0, "status  ready\n")
    with c.client() as client:
        client.ask("GET", o.url + "/")
        gate.wait_for(1)
        assert run("quit", "--config", c.config).returncode == 0
        done = run("ready", "--config", c.config)
        assert (done.returncode, done.stdout, done.stderr) == (3, "", "carpool: not ready\n  draining\n")
        as_json = run("ready", "--json", "--config", c.config)
        assert (as_json.returncode, as_json.stderr) == (3, "")
        assert json.loads(as_json.stdout) == {"status": "not ready", "reasons": ["draining"]}
        gate.open()
        assert client.response().status == 200
    assert c.wait() == 0


def test_quit_ends_it(used):
    _, c = used
    assert run("quit", "--admin", c.admin_text).returncode == 0
    assert c.wait() == 0


def test_a_unix_socket_and_a_token_are_used(carpool, tmp_path):
    c = carpool(admin={"address": "unix:%s" % (tmp_path / "admin.sock")})
    assert run("pools", "--config", c.config).stdout == "none\n"
    token = tmp_path / "token"
    token.write_text("secret\n")
    other = carpool(admin={"address": "0.0.0.0:%d" % free_port(), "token_file": str(token)})
    assert run("pools", "--config", other.config).returncode == 0
    address = other.config.read_text().split('[admin]\naddress = "')[1].split('"')[0] if "[admin]\naddress" in other.config.read_text() else None
    if address:
        assert run("pools", "--admin", address).returncode == 3
        assert run("pools", "--admin", address, "--token-file", token).stdout == "none\n"
        assert "no token" in run("pools", "--admin", address, "--token-file", "/dev/null").stderr


def test_nobody_there_is_exit_code_two():
    done = run("pools", "--admin", "127.0.0.1:%d" % free_port())
    assert done.returncode == 2 and "no answer" in done.stderr
    for command in ("pools", "top", "ready"):
        as_json = run(command, "--json", "--admin", "127.0.0.1:%d" % free_port())
        assert as_json.returncode == 2 and "no answer" in json.loads(as_json.stdout)["error"] and as_json.stderr == "", "an error once"


def test_wrong_use_is_exit_code_one(used):
    _, c = used
    for address in ("nonsense", ":9901", "127.0.0.1", "127.0.0.1:99999", "localhost:http", "localhost:0", "localhost:"):
        done = run("pools", "--admin", address)
        assert (done.returncode, done.stdout) == (1, "") and "is not an address" in done.stderr and done.stderr.count("\n") == 1, done
    for wrong in (["pools", "--nonsense"], ["pools", "a", "b"], ["pools", "--size", "3"], ["warm-up", "a", "--size"], ["completion", "tcsh"], ["man", "nothing"]):
        assert run(*wrong, "--admin", c.admin_text).returncode == 1, wrong
    nobody = "127.0.0.1:%d" % free_port()
    for wrong in (["warm-up", "a", "--size", "0"], ["what-if", "a", "--max-usage", "-1"], ["advice", "a", "--wait", "0s"], ["pause", "a", "--for", "later"],
                  ["drain", "a", "--for", "0s"], ["log-level", "loud"], ["log-level", "info", "--module", "nobody"]):
        done = run(*wrong, "--admin", nobody)
        assert (done.returncode, done.stdout) == (1, "") and "`%s` is not " % wrong[-1] in done.stderr, "no instance is asked: %s" % done
    for wrong in (["nonsense"], ["help", "nonsense"], ["help", "pools", "top"]):
        assert (run(*wrong).returncode, run(*wrong).stdout) == (1, ""), wrong
    assert run("help").stdout == run("--help").stdout and run("help", "top").stdout == run("top", "--help").stdout
    for wrong, meant in ((["pols"], "`pools`"), (["relaod"], "`reload`"), (["pools", "--jsn"], "`--json`"), (["ca", "init", "--hots", "a"], "`--host`"),
                         (["webhook", "--lisen", "a"], "`--listen`"), (["--chek"], "`--check`"), (["check"], "`--check`"), (["version"], "`--version`"), (["health"], "`--health`")):
        done = run(*wrong)
        assert (done.returncode, done.stdout) == (1, "") and done.stderr.endswith("did you mean %s?\n" % meant), done
        assert done.stderr.count("\n") == 1
    shown = run("warm-up", "--help")
    assert shown.returncode == 0 and "--size" in shown.stdout and "ORIGIN" in shown.stdout


@pytest.mark.parametrize("arguments, path", [
    (["completion", "bash"], "deploy/completions/carpool.bash"), (["completion", "zsh"], "deploy/completions/_carpool"),
    (["completion", "fish"], "deploy/completions/carpool.fish"), (["man", "carpool"], "docs/man/carpool.1"),
    (["man", "carpool.toml"], "docs/man/carpool.toml.5")])
def test_the_shipped_pages_are_what_the_program_prints(arguments, path):
    """carpool ARGUMENTS > PATH renews it."""
    assert run(*arguments).stdout == (ROOT / path).read_text(), "build/release/carpool %s > %s" % (" ".join(arguments), path)


def run_against(response, *command):
    """Runs a command against a server that sends the bytes `response`."""
    port = free_port()
    with socket.create_server(("127.0.0.1", port)) as server:
        def respond():
            client, _ = server.accept()
            with client:
                client.recv(65536)
                client.sendall(response)
        thread = threading.Thread(target=respond)
        thread.start()
        done = subprocess.run([PROGRAM, *command, "--admin", "127.0.0.1:%d" % port], capture_output=True, text=True, timeout=30)
        thread.join()
    return done


def with_body(status, body):
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)


def test_an_answer_that_breaks_off_is_not_taken_for_a_whole_one():
    done = run_against(b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nd\r\n{"pools": []}\r\n', "pools")
    assert done.returncode != 0 and "the response is incomplete" in done.stderr, done


@pytest.mark.parametrize("command", ["config", "pools", "ready"])
def test_a_redirection_is_no_success(command):
    done = run_against(b"HTTP/1.1 302 Found\r\nLocation: http://elsewhere/\r\nContent-Length: 0\r\n\r\n", command)
    assert (done.returncode, done.stdout, done.stderr) == (3, "", "carpool: status 302\n")


def test_no_response_can_control_the_terminal():
    evil = "\x1b]0;x\x07\x9b2J\r\n"
    refused = with_body(b"502 Bad Gateway", json.dumps({"error": evil, "mistakes": [evil]}).encode())
    for command in ("pools", "reload", "top"):
        done = run_against(refused, command)
        assert done.returncode == 3 and done.stderr.startswith("carpool: ?]0;x??2J??\n  ?]0;x??2J??\n") and done.stdout == "", done
    origins = with_body(b"200 OK", json.dumps({"origins": [{"origin": "http://" + evil, "alias": [evil], "pool": True}]}).encode())
    done = run_against(origins, "origins")
    assert (done.returncode, done.stdout) == (0, "http://?]0;x??2J??\n?]0;x??2J??\n"), done
    done = run_against(origins, "explain", "nobody")
    assert done.returncode == 3 and "\x1b" not in done.stderr, done
