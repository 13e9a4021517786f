"""/openapi.json against the server: schemathesis sends everything that the document allows, and invalid requests."""
import os
import re
import subprocess
import sys

import pytest

from harness.carpool import ROOT

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed: deploy/setup --tests")

# All its checks except those that need several requests (a created resource, a second user): the endpoint has neither.
CHECKS = ("not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,"
          "response_schema_conformance,negative_data_rejection,positive_data_acceptance,unsupported_method,allow_header_conformance")


def examine(c, o, folder, *more, cases):
    """Coverage of each parameter's bounds, then `cases` drawn for each operation, the same ones each time."""
    config = folder / "schemathesis.toml"
    config.write_text('hooks = "schemathesis_hooks"\nmax-stream-events = 1\n')
    command = [sys.executable, "-m", "schemathesis.cli", "--no-color", "--config-file", config, "run", "--checks", CHECKS,
               "--phases", "examples,coverage,fuzzing", "--max-examples", cases, "--generation-deterministic", "--continue-on-failure",
               "--request-timeout", 20, *more, "http://127.0.0.1:%d/openapi.json" % c.admin_address[1]]
    done = subprocess.run([str(word) for word in command], cwd=folder, capture_output=True, text=True, timeout=280,
                          env={**os.environ, "CARPOOL_ORIGIN": o.url, "PYTHONPATH": str(ROOT / "tests/e2e/harness")})
    assert done.returncode == 0, done.stdout[-12000:] + done.stderr[-2000:]
    tested, = re.findall(r"^\s+Tested: (\d+)$", done.stdout, re.M)
    made, = re.findall(r"^\s+(\d+) generated", done.stdout, re.M)
    return int(tested), int(made)


def test_every_operation_does_what_the_document_says(origin, carpool, tmp_path, full):
    """Pauses, drains and reconnects go to a pool that no other test uses, levels to this instance's log, reloads to a file that
    stays as it is; egress lets warm-ups reach that one origin. /quit has an instance to itself, below."""
    o = origin()
    c = carpool(egress={"default": "deny", "allow": [o.authority]})
    with c.client() as client:
        for _ in range(30):
            assert client.get(o.url + "/").status == 200
    operations = sum(len(methods) for methods in c.get_json("/openapi.json")["paths"].values())
    tested, made = examine(c, o, tmp_path, "--exclude-path", "/quit", cases=200 if full else 10)
    assert tested == operations - 2 >= 25 and made > 10 * tested, "all but /quit and the document itself, which was read"
    assert c.admin("GET", "/readyz").status == 200


def test_quit_does_what_the_document_says_however_often(origin, carpool, tmp_path):
    o, c = origin(), carpool(drain_delay="60s")
    tested, made = examine(c, o, tmp_path, "--include-path", "/quit", cases=10)
    assert tested == 1 and made > 1
    c.signal(15)  # the second order to end: at once
    assert c.wait() == 0
