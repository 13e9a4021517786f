#!/usr/bin/env python3
"""Measures how evenly HTTP/2 requests are spread over an origin with three addresses, each an nginx of its own: at a hundred requests a second, at
saturation, and after times without requests. Prints the shares of the addresses and how far the worst of them is from a third.

    tests/bench/address_shares.py [PROGRAM] [--seconds 5] [--idle 1 20 120]

Needs root for a network namespace and a hosts file of its own, nginx and h2load.
"""
import argparse
import contextlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading

from p99_scene import ask, end_with, free_port, until_open

NAME, HOSTS = "service.test", ["127.0.2.1", "127.0.2.2", "127.0.2.3"]
NGINX = """daemon off; worker_processes 1; pid %(dir)s/pid; error_log %(dir)s/error;
events { worker_connections 4096; }
http { access_log off; keepalive_requests 100000000; client_body_temp_path %(dir)s/b; proxy_temp_path %(dir)s/p; fastcgi_temp_path %(dir)s/f;
  uwsgi_temp_path %(dir)s/u; scgi_temp_path %(dir)s/s;
  server { listen %(host)s:%(port)d http2 backlog=1024; location / { return 200 "hello"; } } }
"""
CONFIG = """workers = 1
[[listen]]
address = "127.0.0.1:%(listen)d"
origin = "http://%(name)s:%(port)d"
[admin]
address = "127.0.0.1:%(admin)d"
[upstream]
protocols = ["h2"]
[pool]
size = 8
idle_timeout = "5m"
[pool.addresses]
slow_start = "0s"
[log]
access = false
"""


def alone():
    """Continues in namespaces of its own, in which the name has the three addresses."""
    hosts = tempfile.NamedTemporaryFile("w", suffix="-hosts", delete=False)
    hosts.write("127.0.0.1 localhost\n" + "".join("%s %s\n" % (host, NAME) for host in HOSTS))
    hosts.close()
    script = 'ip link set lo up; mount --bind %s /etc/hosts; exec "$@"' % hosts.name
    os.execvpe("unshare", ["unshare", "--net", "--mount", "--propagation", "private", "sh", "-ec", script, "sh", sys.executable, "-B", *sys.argv],
               {**os.environ, "CARPOOL_SCENE": "alone"})


def served(admin):
    """Returns the requests of each address."""
    text = ask(admin, "/metrics").decode()
    return [int(n) for _, n in sorted(re.findall(r'^carpool_address_requests_total\{.*address="([^"]+)".*\} (\d+)', text, re.M))]


def load(port, *how):
    subprocess.run(["h2load", *map(str, how), "http://127.0.0.1:%d/" % port], check=True, stdout=subprocess.DEVNULL)


def tell(what, admin, run):
    before = served(admin) or [0] * len(HOSTS)
    run()
    got = [now - was for now, was in zip(served(admin), before)]
    shares = [100 * one / sum(got) for one in got]
    worst = max(abs(one - 100 / len(HOSTS)) for one in shares)
    print("%-28s %8d requests   %s   worst %.2f points" % (what, sum(got), "  ".join("%5.2f %%" % one for one in shares), worst), flush=True)


def measure(args, folder, ends):
    port, listen, admin = free_port(), free_port(), free_port()
    for n, host in enumerate(HOSTS):
        own = folder / str(n)
        own.mkdir()
        (own / "nginx.conf").write_text(NGINX % {"dir": own, "host": host, "port": port})
        end_with(ends, subprocess.Popen(["nginx", "-c", own / "nginx.conf", "-p", own], stderr=subprocess.DEVNULL))
    (folder / "carpool.toml").write_text(CONFIG % {"listen": listen, "admin": admin, "name": NAME, "port": port})
    end_with(ends, subprocess.Popen([args.program, "--config", folder / "carpool.toml"], stderr=subprocess.DEVNULL))
    until_open(admin)
    until_open(listen)
    load(listen, "-n", 300, "-c", 1, "-m", 8)
    at_rate = ("-c", 1, "-m", 1, "--rps", 100, "-D", args.seconds)
    tell("100 a second", admin, lambda: load(listen, *at_rate))
    tell("saturation, 8 clients of 8", admin, lambda: load(listen, "-c", 8, "-m", 8, "-D", args.seconds))
    tell("100 a second, after that", admin, lambda: load(listen, *at_rate))
    for idle in args.idle:
        threading.Event().wait(idle)
        tell("100 a second, idle for %d s" % idle, admin, lambda: load(listen, *at_rate))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", nargs="?", default="build/release/carpool")
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--idle", type=int, nargs="*", default=[1, 20, 120])
    args = parser.parse_args()
    if os.environ.get("CARPOOL_SCENE") != "alone":
        alone()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as ends:
        measure(args, pathlib.Path(folder), ends)


if __name__ == "__main__":
    main()
