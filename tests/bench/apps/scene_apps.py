#!/usr/bin/env python3
"""Measures what an application gains whose https calls go through carpool: real applications, a TLS origin behind a delay, and each
way from one to the other in turn.

    tests/bench/apps/scene_apps.py [--trips 0 10 30 80] [--calls 208] [--applications PHP] [--modes direct intercepted] [--json FILE]

Needs root for a network namespace, nginx, openssl's certificates by Python, and for the applications PHP 8.2, node and pip's index, which has
Envoy too; what is missing is left out and named. An application has eight workers, or one process with eight calls at a time; each call is one GET of
six bytes. Figures: milliseconds of a call inside the application, connections and full handshakes that the origin counted, CPU
milliseconds a call."""
import argparse
import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "foreign"), str(HERE.parent)]
import applications  # noqa: E402
import conditions  # noqa: E402
import modes  # noqa: E402
from fetch import Absent  # noqa: E402
from scene import free_port, program, wait  # noqa: E402
from harness.pki import Pki  # noqa: E402

AT_A_TIME = 8
ORIGIN = """daemon off; worker_processes 1; pid %(dir)s/origin.pid; error_log %(dir)s/origin.log; user root;
events { worker_connections 4096; }
http { log_format seen '$connection $ssl_session_reused'; access_log %(dir)s/seen seen; keepalive_requests 1000000; keepalive_timeout 300s;
  client_body_temp_path %(dir)s/b1; fastcgi_temp_path %(dir)s/f1; proxy_temp_path %(dir)s/p1; uwsgi_temp_path %(dir)s/u1; scgi_temp_path %(dir)s/s1;
  server { listen 127.0.0.1:%(port)d ssl backlog=1024; ssl_protocols TLSv1.2 TLSv1.3; ssl_certificate %(cert)s; ssl_certificate_key %(key)s;
    location = /hello { default_type text/plain; return 200 "hello\\n"; } } }
"""


def get(wanted, ways):
    """Fetches the applications and the peers, which needs the network."""
    for name, (getter, _) in wanted.items():
        try:
            getter()
        except Absent as reason:
            print("left out: %s: %s" % (name, reason))
    for name in ways:
        with contextlib.suppress(Absent):  # named by measure()
            modes.GETTERS.get(name, lambda: None)()


def alone():
    """Continues in a network of its own, where `modes.NAME` is this machine. The mounts are private: nothing remains."""
    hosts = tempfile.NamedTemporaryFile("w", suffix="-hosts", delete=False)
    hosts.write("127.0.0.1 localhost\n127.0.0.2 %s\n" % modes.NAME)
    hosts.close()
    script = 'ip link set lo up; mount --bind %s /etc/hosts; exec "$@"' % hosts.name
    os.execvpe("unshare", ["unshare", "--net", "--mount", "--propagation", "private", "sh", "-ec", script, "sh", sys.executable, "-B", *sys.argv],
               {**os.environ, "CARPOOL_SCENE": "alone"})


def call(port):
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    with contextlib.closing(client):
        client.request("GET", "/")
        response = client.getresponse()
        if response.status != 200:
            return "application-%d" % response.status, 0.0
        said, took = response.read().decode().split()
        return said, float(took)


def load(port, calls):
    with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as threads:
        return list(threads.map(lambda _: call(port), range(calls)))


def percentile(sorted_values, part):
    return sorted_values[min(len(sorted_values) - 1, int(len(sorted_values) * part))]


def origin_counts(seen):
    """Connections, and those of them with a full handshake."""
    lines = [line.split() for line in seen.read_text().splitlines()]
    return len({line[0] for line in lines}), len({line[0] for line in lines if line[1:] != ["r"]})


def measure(folder, ca, application, mode, calls):
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    environment.update(SSL_CERT_FILE=ca, REQUESTS_CA_BUNDLE=ca, NODE_EXTRA_CA_CERTS=ca)
    port, seen = free_port(), pathlib.Path(folder, "seen")
    own = tempfile.mkdtemp(dir=folder)
    with mode(own, ca) as (differs, between), application(own, port, {**environment, **differs}) as processes:
        load(port, AT_A_TIME)  # code is compiled, files are read
        seen.write_text("")
        before = applications.cpu_seconds(processes), applications.cpu_seconds(between)
        responses = load(port, calls)
        after = applications.cpu_seconds(processes), applications.cpu_seconds(between)
    good = sorted(took for said, took in responses if said == "ok")
    connections, full = origin_counts(seen)
    return {"calls": calls, "failed": calls - len(good), "why": sorted({said for said, _ in responses} - {"ok"}),
            "p50": round(percentile(good, 0.5), 1) if good else None, "p99": round(percentile(good, 0.99), 1) if good else None,
            "connections": connections, "handshakes": full, "application_ms": round((after[0] - before[0]) * 1000 / calls, 2),
            "between_ms": round((after[1] - before[1]) * 1000 / calls, 2)}


def row(at):
    print("| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |" % (
        at["trip"], at["application"], at["mode"], at["p50"], at["p99"], at["connections"], at["handshakes"], at["application_ms"], at["between_ms"],
        "%d %s" % (at["failed"], " ".join(at["why"])) if at["failed"] else 0), flush=True)


def chosen(table, words):
    return {name: value for name, value in table.items() if not words or any(word.lower() in name.lower() for word in words)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trips", type=int, nargs="+", default=[0, 10, 30, 80], help="round trips to the origin, in milliseconds")
    parser.add_argument("--calls", type=int, default=208)
    parser.add_argument("--applications", nargs="+", default=[])
    parser.add_argument("--modes", nargs="+", default=[])
    parser.add_argument("--json")
    options = parser.parse_args()
    wanted = chosen(applications.ALL, options.applications)
    if os.environ.get("CARPOOL_SCENE") != "alone":
        get(wanted, chosen(modes.ALL, options.modes))
        alone()
    began, rows, absent = conditions.begin(), [], {}
    print("| round trip, ms | application | way | p50, ms | p99, ms | connections | full handshakes | application's CPU, ms | proxy's CPU, ms | failed |\n"
          "|---|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        pki, port = Pki(folder), free_port()
        cert, key = pki.issue("api", [modes.NAME])
        pathlib.Path(folder, "origin.conf").write_text(ORIGIN % {"dir": folder, "port": port, "cert": cert, "key": key})
        with program("/usr/sbin/nginx", "-p", folder, "-c", pathlib.Path(folder, "origin.conf"), "-e", pathlib.Path(folder, "origin.log"), port=port):
            for trip in options.trips:
                with program(sys.executable, HERE / "relay.py", "127.0.0.2", 443, port, trip):
                    wait.until(lambda: subprocess.run(["sh", "-c", "ss -ltn | grep -q 127.0.0.2:443"]).returncode == 0, 20, "the relay")
                    for name, (getter, application) in wanted.items():
                        for way, mode in chosen(modes.ALL, options.modes).items():
                            if application is applications.node and mode is modes.alias:
                                absent[name + ", " + way] = "undici sends CONNECT for http as well"
                                continue
                            try:
                                getter()
                                rows.append({"trip": trip, "application": name, "mode": way, **measure(folder, pki.ca, application, mode, options.calls)})
                                row(rows[-1])
                            except Absent as reason:
                                absent[name + ", " + way] = str(reason)
    for what, reason in absent.items():
        print("left out: %s: %s" % (what, reason))
    if options.json:
        conditions.write(options.json, began, rows)
    return any(at["failed"] for at in rows)


if __name__ == "__main__":
    sys.exit(main())
