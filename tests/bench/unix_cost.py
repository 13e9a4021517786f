#!/usr/bin/env python3
"""Measures carpool's CPU time per request with Unix sockets in place of TCP: on the clients' side, on the origin's, on both. The load is that of
scenario S1 at saturation: plain HTTP/1.1, 64 kept-alive clients (h2load), responses of 1 KiB, one nginx worker.

    tests/bench/unix_cost.py [PROGRAM] [--rounds 7] [--requests 100000] [--json FILE]

One carpool has a listener for each form, and the forms run in turns (A B C D A B ...), so that a disturbance affects all of them. Needs nginx and h2load."""
import argparse
import contextlib
import pathlib
import re
import subprocess
import tempfile

import conditions
import nginx_scene
import report_unix
from p99_scene import free_port

CLIENTS, WORKERS = 64, (1, 2)
WARM = 10  # a warm-up has a tenth of a round's requests
NGINX = """daemon off; worker_processes 1; pid %(dir)s/pid; error_log %(dir)s/error;
events { worker_connections 4096; }
http { access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000000; keepalive_timeout 1h; client_body_temp_path %(dir)s/body;
  fastcgi_temp_path %(dir)s/f; proxy_temp_path %(dir)s/p; uwsgi_temp_path %(dir)s/u; scgi_temp_path %(dir)s/s; open_file_cache max=10 inactive=1h;
  server { listen 127.0.0.1:%(origin)d backlog=1024; listen unix:%(dir)s/origin.sock backlog=1024; root %(dir)s/www; } }
"""
CONFIG = """workers = %(workers)d
[[listen]]
address = "127.0.0.1:%(tcp)d"
origin = "http://127.0.0.1:%(origin)d"
[[listen]]
address = "unix:%(dir)s/client.sock"
origin = "http://127.0.0.1:%(origin)d"
[[listen]]
address = "127.0.0.1:%(to_unix)d"
origin = "http://app"
[[listen]]
address = "unix:%(dir)s/both.sock"
origin = "http://app"
[[origin]]
uri = "http://app"
addresses = ["unix:%(dir)s/origin.sock"]
[admin]
address = "unix:%(dir)s/admin.sock"
[pool]
size = 4096
[log]
level = "info"
access = false
"""


class Form:
    """h2load's clients of one listener."""

    def __init__(self, where):
        port, path = (where, None) if isinstance(where, int) else (80, where)
        self.words = (["--base-uri=unix:%s" % path] if path else []) + ["http://127.0.0.1:%d/kib" % port]

    def ask(self, count):
        done = subprocess.run(["h2load", "--h1", "-t1", "-c%d" % CLIENTS, "-n%d" % count, *self.words], text=True, capture_output=True, check=True)
        succeeded = re.search(r"(\d+) succeeded", done.stdout)
        assert succeeded and int(succeeded.group(1)) == count, done.stdout
        return done.stdout

    def cost(self, process, count):
        """Microseconds of CPU time for each request."""
        before = process.cpu()
        self.ask(count)
        return (process.cpu() - before) / count * 1e6


@contextlib.contextmanager
def scene(program, workers):
    """Yields carpool's process and {form: Form}."""
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as ends:
        folder = pathlib.Path(name)
        values = {"dir": folder, "workers": workers, **{what: free_port() for what in ("origin", "tcp", "to_unix")}}
        process = nginx_scene.start(ends, folder, program, NGINX, CONFIG, values)
        yield process, {"tcp": Form(values["tcp"]), "client": Form(folder / "client.sock"), "origin": Form(values["to_unix"]),
                                     "both": Form(folder / "both.sock")}


def measure(program, workers, wanted):
    rounds = []
    with scene(program, workers) as (process, forms):
        for form in forms.values():
            form.ask(wanted.requests // WARM)
        for _ in range(wanted.rounds):
            rounds.append({name: round(form.cost(process, wanted.requests), 2) for name, form in forms.items()})
            print("%d workers: " % workers + "  ".join("%s %.1f us" % of for of in rounds[-1].items()), flush=True)
    return rounds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", default=conditions.ROOT / "build/release/carpool")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--requests", type=int, default=100000, help="of each form and round")
    parser.add_argument("--json", help="stores the figures")
    wanted = parser.parse_args()
    about = conditions.begin(nginx=conditions.version("nginx", "-v"), h2load=conditions.version("h2load", "--version"))
    about["rounds"] = wanted.rounds
    rows = [{"workers": workers, "rounds": measure(wanted.program, workers, wanted)} for workers in WORKERS]
    stored = {"conditions": about, "requests": wanted.requests, "rows": rows}
    print(report_unix.section(report_unix.Unix(stored)))
    if wanted.json:
        conditions.write(wanted.json, about, rows, requests=wanted.requests)


if __name__ == "__main__":
    main()
