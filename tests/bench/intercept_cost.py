#!/usr/bin/env python3
"""Measures what interception costs carpool: CPU time of a kept-alive request inside an intercepted CONNECT against one in plain text to the
same TLS origin (the form of scenario S2), of a full and of a resumed TLS handshake of a client, and memory of an idle client.

    tests/bench/intercept_cost.py [PROGRAM] [--rounds 5] [--seconds 2] [--clients 1000] [--json FILE]

The forms run in turns, in rounds whose order rotates; figures are medians. A handshake is the difference between a connection with CONNECT
and TLS and one with CONNECT alone, so it includes the reading of the client's messages and the ticket. Needs nginx."""
import argparse
import contextlib
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import threading

import conditions
from intercept_clients import Clients, busy, leave
from p99_scene import end_with, free_port, until_open

sys.path.insert(0, str(conditions.ROOT / "tests/e2e"))
from harness.pki import Pki  # noqa: E402

SIZE, TARGET = 1024, b"/kib"
NGINX = """daemon off; worker_processes 1; pid %(dir)s/pid; error_log %(dir)s/error;
events { worker_connections 4096; }
http { access_log off; keepalive_requests 100000000; keepalive_timeout 300s; client_body_temp_path %(dir)s/body;
  fastcgi_temp_path %(dir)s/f; proxy_temp_path %(dir)s/p; uwsgi_temp_path %(dir)s/u; scgi_temp_path %(dir)s/s;
  server { listen 127.0.0.1:%(origin)d ssl backlog=1024; ssl_certificate %(cert)s; ssl_certificate_key %(key)s; root %(dir)s/www; } }
"""
CONFIG = """workers = 1
[[listen]]
address = "127.0.0.1:%(proxy)d"
[[listen]]
address = "127.0.0.1:%(plain)d"
origin = "https://localhost:%(origin)d"
[admin]
address = "127.0.0.1:%(admin)d"
[upstream]
protocols = ["h1"]
[upstream.tls]
ca_file = "%(ca)s"
[intercept]
ca_dir = "%(dir)s/ca"
[[origin]]
uri = "https://localhost:%(origin)d"
intercept = true
[log]
access = false
"""


class Process:
    def __init__(self, pid):
        self.pid = pid

    def cpu(self):
        """Seconds of all its threads, to the nanosecond."""
        return sum(int((task / "schedstat").read_text().split()[0]) for task in pathlib.Path("/proc/%d/task" % self.pid).iterdir()) / 1e9

    def kib(self):
        status = pathlib.Path("/proc/%d/status" % self.pid).read_text()
        return int(status.split("VmRSS:")[1].split()[0])


@contextlib.contextmanager
def scene(program):
    """Yields carpool's process, the clients of its intercepting listener, and those of the one in plain text."""
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as ends:
        folder = pathlib.Path(name)
        (folder / "www").mkdir()
        (folder / "www/kib").write_bytes(b"x" * SIZE)
        folder.chmod(0o755)
        pki = Pki(folder)
        values = {"dir": folder, "cert": pki.server, "key": pki.server_key, "ca": pki.ca,
                  **{what: free_port() for what in ("origin", "proxy", "plain", "admin")}}
        subprocess.run([program, "ca", "init", folder / "ca", "--host", "localhost"], check=True, stdout=subprocess.DEVNULL)
        (folder / "nginx.conf").write_text(NGINX % values)
        (folder / "carpool.toml").write_text(CONFIG % values)
        end_with(ends, subprocess.Popen(["nginx", "-c", folder / "nginx.conf", "-p", folder], stderr=subprocess.DEVNULL))
        until_open(values["origin"])
        process = subprocess.Popen([program, "--config", folder / "carpool.toml"], stderr=subprocess.PIPE, text=True)
        end_with(ends, process)
        assert any("carpool ready" in line for line in process.stderr)
        threading.Thread(target=process.stderr.read, daemon=True).start()
        authority = "localhost:%d" % values["origin"]
        yield (Process(process.pid), Clients(("127.0.0.1", values["proxy"]), authority, folder / "ca/ca.pem"),
               Clients(("127.0.0.1", values["plain"]), authority, folder / "ca/ca.pem"))


def forms(inside, plain):
    """name -> (what a thread begins with, what it repeats)."""
    context = inside.context()
    session = inside.session(context, TARGET, SIZE)

    def resume(_):
        sock = inside.secured(context, session)
        assert sock.session_reused
        leave(sock)
    return {"request": (plain.connect, lambda sock: plain.get(sock, TARGET, SIZE)),
            "intercepted": (lambda: inside.secured(context), lambda sock: inside.get(sock, TARGET, SIZE)),
            "connect": (lambda: None, lambda _: leave(inside.tunnel())),
            "full": (lambda: None, lambda _: leave(inside.secured(context))),
            "resumed": (lambda: None, resume)}


def memory(process, inside, count):
    """KiB of resident memory of one idle client that has received a response."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    context, idle = inside.context(), []

    def some(number):
        for _ in range(number):
            idle.append(inside.secured(context))
            inside.get(idle[-1], TARGET, SIZE)
    some(50)
    before = process.kib()
    some(count)
    grown = process.kib() - before
    for sock in idle:
        leave(sock)
    return grown / count


def measure(program, wanted):
    with scene(program) as (process, inside, plain):
        kib, rounds = memory(process, inside, wanted.clients), []
        of = forms(inside, plain)
        for turn in range(wanted.rounds):
            names = list(of)[turn % len(of):] + list(of)[:turn % len(of)]
            took = {name: busy(*of[name], wanted.seconds, process.cpu) for name in names}
            rounds.append({name: us for name, (us, _) in took.items()})
            print("  ".join("%s %.1f us (%d/s)" % (name, *took[name]) for name in of), flush=True)
        return kib, rounds


def figures(kib, rounds):
    """(what, value, bound) of each row of the table."""
    def median(of):
        return statistics.median(of(row) for row in rounds)
    return [("CPU time of a request, intercepted against plain text", median(lambda r: r["intercepted"] / r["request"]), 1.25),
            ("CPU time of a full handshake, µs", median(lambda r: r["full"] - r["connect"]), 450),
            ("CPU time of a resumed handshake, µs", median(lambda r: r["resumed"] - r["connect"]), 150),
            ("resident memory of an idle client, KiB", kib, 16)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", default=conditions.ROOT / "build/release/carpool")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--clients", type=int, default=1000, help="idle ones, for their memory")
    parser.add_argument("--json", help="stores the figures")
    wanted = parser.parse_args()
    about = conditions.begin(nginx=conditions.version("nginx", "-v"), OpenSSL=conditions.version("openssl", "version"))
    about.update(rounds=wanted.rounds, seconds=wanted.seconds)
    kib, rounds = measure(wanted.program, wanted)
    for what, value, bound in figures(kib, rounds):
        print("%-56s %8.2f  at most %g" % (what, value, bound))
    if wanted.json:
        conditions.write(wanted.json, about, [{name: round(us, 1) for name, us in row.items()} for row in rounds], kib=round(kib, 1))


if __name__ == "__main__":
    main()
