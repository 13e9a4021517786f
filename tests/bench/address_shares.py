#!/usr/bin/env python3
"""Measures how evenly HTTP/2 requests are spread over an origin with three addresses, each an nginx of its own: at a hundred requests a second and at
saturation, before and after an address is added, removed or made ten times slower, and after times without requests. Prints the shares of the addresses
and how many points the worst is off an even share; a slow address may get less, the others are compared with each other.

    tests/bench/address_shares.py [PROGRAM] [--grpc] [--seconds 5] [--idle 1 20 120]

With --grpc the requests are those of gRPC: POST with a message, and responses with trailers.
Exit status: 1 if a share is more than two points off. Needs root for a network namespace and a hosts file of its own, nginx and h2load.
"""
import argparse
import contextlib
import http.server
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading

from p99_scene import ask, end_with, free_port, until_open

NAME, HOSTS, NEW = "service.test", ["127.0.2.1", "127.0.2.2", "127.0.2.3"], "127.0.2.4"
ALLOWED = 2.0  # points
SLOW = 0.05  # seconds of a response; the others take less than a tenth, also at saturation
NGINX = """user root; daemon off; worker_processes 1; pid %(dir)s/pid; error_log %(dir)s/error;
events { worker_connections 4096; }
http { access_log off; keepalive_requests 100000000; client_body_temp_path %(dir)s/b; proxy_temp_path %(dir)s/p; fastcgi_temp_path %(dir)s/f;
  uwsgi_temp_path %(dir)s/u; scgi_temp_path %(dir)s/s;
  upstream slow { server 127.0.0.1:%(slow)d; keepalive 100; }
  server { listen %(host)s:%(port)d http2 backlog=1024;
    location / { if (-f %(dir)s/is-slow) { rewrite ^ /slow last; } return 200 "hello"; }
    default_type application/grpc; add_trailer grpc-status 0;
    location /slow { proxy_http_version 1.1; proxy_set_header Connection ""; proxy_pass http://slow; } } }
"""
CONFIG = """workers = 1
[[listen]]
address = "127.0.0.1:%(listen)d"
origin = "http://%(name)s:%(port)d"
[admin]
address = "127.0.0.1:%(admin)d"
[upstream]
protocols = ["h2"]
[dns]
min_ttl = "1s"
max_ttl = "1s"
[pool]
size = 8
idle_timeout = "5m"
[pool.addresses]
slow_start = "0s"
gone_after = "2s"
[log]
access = false
"""


def alone():
    """Continues in namespaces of its own, in which the name has the addresses of a file."""
    hosts = tempfile.NamedTemporaryFile("w", suffix="-hosts", delete=False)
    hosts.close()
    name_has(hosts.name, HOSTS)
    script = 'ip link set lo up; mount --bind %s /etc/hosts; exec "$@"' % hosts.name
    os.execvpe("unshare", ["unshare", "--net", "--mount", "--propagation", "private", "sh", "-ec", script, "sh", sys.executable, "-B", *sys.argv],
               {**os.environ, "CARPOOL_SCENE": "alone"})


def name_has(path, hosts):
    pathlib.Path(path).write_text("127.0.0.1 localhost\n" + "".join("%s %s\n" % (host, NAME) for host in hosts))


class Slow(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        threading.Event().wait(SLOW)
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")

    do_POST = do_GET

    def log_message(self, *_):
        pass


class Scene:
    def __init__(self, args, folder, ends):
        self.args, self.folder, self.ends, self.worst, self.nginx = args, folder, ends, 0.0, {}
        self.port, self.listen, self.admin = free_port(), free_port(), free_port()
        slow = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slow)
        slow.daemon_threads = True
        threading.Thread(target=slow.serve_forever, daemon=True).start()
        (folder / "message").write_bytes(bytes(5))
        self.kind = ["-d", folder / "message", "-H", "content-type: application/grpc", "-H", "te: trailers"] if args.grpc else []
        self.slow_port = slow.server_address[1]
        for host in (*HOSTS, NEW):
            self.start(host)
        (folder / "carpool.toml").write_text(CONFIG % {"listen": self.listen, "admin": self.admin, "name": NAME, "port": self.port})
        end_with(ends, subprocess.Popen([args.program, "--config", folder / "carpool.toml"], stderr=subprocess.DEVNULL))
        until_open(self.admin)
        until_open(self.listen)
        self.load("-n", 300, "-c", 1, "-m", 8)

    def load(self, *how):
        subprocess.run(["h2load", *map(str, (*how, *self.kind)), "http://127.0.0.1:%d/" % self.listen], check=True, stdout=subprocess.DEVNULL)

    def start(self, host):
        own = self.folder / host
        own.mkdir()
        (own / "nginx.conf").write_text(NGINX % {"dir": own, "host": host, "port": self.port, "slow": self.slow_port})
        self.nginx[host] = subprocess.Popen(["nginx", "-c", own / "nginx.conf", "-p", own], stderr=subprocess.DEVNULL)
        end_with(self.ends, self.nginx[host])

    def per_address(self, metric):
        text = ask(self.admin, "/metrics").decode()
        found = re.findall(r'^carpool_address_%s\{.*address="([^":]+):\d+".*\} (\d+)' % metric, text, re.M)
        return {host: int(value) for host, value in found}

    def until(self, condition):
        """Requests go on meanwhile: a name is resolved again for them."""
        for _ in range(60):
            self.load("-n", 100, "-c", 1, "-m", 1, "--rps", 200)
            if condition():
                return
        sys.exit("the addresses did not change in carpool")

    def tell(self, what, hosts, *how):
        before = self.per_address("requests_total")
        self.load(*how, "-D", self.args.seconds)
        after = self.per_address("requests_total")
        got = {host: count - before.get(host, 0) for host, count in after.items()}
        even = [got[host] for host in hosts]
        shares = {host: 100 * count / sum(got.values()) for host, count in got.items()}
        worst = max(abs(100 * one / sum(even) - 100 / len(even)) for one in even)
        self.worst = max(self.worst, worst)
        print("%-38s %8d requests   %s   worst %.2f points" % (
            what, sum(got.values()), "  ".join("%5.2f %%" % shares[host] for host in sorted(shares)), worst), flush=True)

    def at_rate(self, what, hosts):
        self.tell("100 a second, " + what, hosts, "-c", 1, "-m", 1, "--rps", 100)

    def saturated(self, what, hosts):
        self.tell("saturation, " + what, hosts, "-c", 8, "-m", 8)

    def all_three(self, what, hosts):
        self.at_rate(what, hosts)
        self.saturated(what, hosts)
        self.at_rate(what + ", after that", hosts)

    def measure(self):
        four = [*HOSTS, NEW]
        self.all_three("three addresses", HOSTS)
        for idle in self.args.idle:
            threading.Event().wait(idle)
            self.at_rate("idle for %d s" % idle, HOSTS)
        name_has("/etc/hosts", four)
        self.until(lambda: self.per_address("connections").get(NEW, 0) > 0)
        self.all_three("one added", four)
        name_has("/etc/hosts", HOSTS)
        self.until(lambda: self.per_address("connections").get(NEW, 0) == 0)
        self.all_three("one removed", HOSTS)
        is_slow = self.folder / HOSTS[0] / "is-slow"
        is_slow.touch()
        self.all_three("the first is slow", HOSTS[1:])
        is_slow.unlink()
        self.load("-n", 600, "-c", 1, "-m", 1)  # its average falls
        self.all_three("the first was slow", HOSTS)
        self.nginx[HOSTS[0]].terminate()
        self.all_three("the first has ended", HOSTS[1:])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", nargs="?", default="build/release/carpool")
    parser.add_argument("--grpc", action="store_true")
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--idle", type=int, nargs="*", default=[1, 20, 120])
    args = parser.parse_args()
    if os.environ.get("CARPOOL_SCENE") != "alone":
        alone()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as ends:
        scene = Scene(args, pathlib.Path(folder), ends)
        scene.measure()
        sys.exit(scene.worst > ALLOWED)


if __name__ == "__main__":
    main()
