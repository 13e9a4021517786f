#!/usr/bin/env python3
"""Whether requests notice what blocks: p50, p99 and p99.9 of 2,000 requests a second through one worker, quiet and while a scrape of
1,000 origins, a dump of their pools and a reload with another bundle of some 140 authorities are asked for each second, adaptive
beside produce, in turns. The last lines are the medians of the rounds, and by how much the busy p99 is above the quiet one.

    tests/bench/exec_p99.py [PROGRAM] [--rounds 5] [--seconds 10]

Needs nginx and h2load. The machine must be quiet: where a quiet run's p99 is not near 1 ms, the figures say nothing of carpool.
"""
import argparse
import collections
import contextlib
import http.client
import os
import pathlib
import socket
import statistics
import subprocess
import tempfile
import threading

ORIGINS, CLIENTS, RATE = 1000, 20, 2000
NGINX = """daemon off; worker_processes 1; pid %(dir)s/pid; error_log %(dir)s/error;
events { worker_connections 4096; }
http { access_log off; keepalive_requests 1000000; client_body_temp_path %(dir)s/body;
  server { listen 0.0.0.0:%(port)d backlog=1024; location / { return 200 "hello"; } } }
"""
CONFIG = """[[listen]]
address = "127.0.0.1:%(fixed)d"
origin = "http://127.0.0.1:%(origin)d"
[[listen]]
address = "127.0.0.1:%(any)d"
[admin]
address = "127.0.0.1:%(admin)d"
[threads]
strategy = "%(strategy)s"
[upstream.tls]
ca_file = "%(bundle)s"
[log]
access = false
"""
BUNDLE = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def until_open(port):
    while True:
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) == 0:
                return


def ask(port, path, method="GET"):
    client = http.client.HTTPConnection("127.0.0.1", port)
    client.request(method, path)
    body = client.getresponse().read()
    client.close()
    return body


class Program:
    def __init__(self, program, folder, origin, strategy):
        ports = {name: free_port() for name in ("fixed", "any", "admin")}
        config = folder / (strategy + ".toml")
        self.bundle, self.pem = folder / (strategy + ".pem"), BUNDLE.read_text()
        self.bundle.write_text(self.pem)
        config.write_text(CONFIG % {**ports, "origin": origin, "strategy": strategy, "bundle": self.bundle})
        self.fixed, self.admin, self.reloads = ports["fixed"], ports["admin"], 0
        self.process = subprocess.Popen([program, "--config", config], stderr=subprocess.PIPE, text=True)
        assert "carpool ready" in self.process.stderr.readline()
        client = http.client.HTTPConnection("127.0.0.1", ports["any"])
        until_open(origin)
        for i in range(ORIGINS):
            client.request("GET", "http://127.%d.%d.7:%d/" % (1 + i // 250, i % 250, origin))
            answer = client.getresponse()
            assert answer.status == 200 and answer.read()

    def load(self, log, seconds):
        log.unlink(missing_ok=True)
        subprocess.run(["h2load", "--h1", "-c%d" % CLIENTS, "--rps=%d" % (RATE // CLIENTS), "-D%d" % seconds, "--log-file=%s" % log,
                        "http://127.0.0.1:%d/" % self.fixed], check=True, stdout=subprocess.DEVNULL)
        us = sorted(int(line.split()[2]) for line in log.read_text().splitlines())
        return len(us), us[len(us) // 2], us[len(us) * 99 // 100], us[len(us) * 999 // 1000]

    @contextlib.contextmanager
    def busy(self):
        stop = threading.Event()

        def each_second():
            while not stop.wait(1):
                ask(self.admin, "/metrics")
                ask(self.admin, "/pools")
                self.reloads += 1
                self.bundle.write_text("# %d\n%s" % (self.reloads, self.pem))
                assert b"%s" % str(self.bundle).encode() in ask(self.admin, "/reload", "POST"), "the bundle was not renewed"
        asker = threading.Thread(target=each_second)
        asker.start()
        yield
        stop.set()
        asker.join()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", nargs="?", default="build/release/carpool")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=10)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as ends:
        folder, origin = pathlib.Path(name), free_port()
        (folder / "nginx.conf").write_text(NGINX % {"dir": folder, "port": origin})
        nginx = subprocess.Popen(["nginx", "-c", folder / "nginx.conf", "-p", folder], stderr=subprocess.DEVNULL)
        ends.callback(nginx.wait)
        ends.callback(nginx.terminate)
        programs = {}
        for strategy in ("adaptive", "produce"):
            programs[strategy] = Program(wanted.program, folder, origin, strategy)
            ends.callback(programs[strategy].process.wait)
            ends.callback(programs[strategy].process.terminate)
        print("a scrape has %d lines, a dump %d bytes" % (ask(programs["produce"].admin, "/metrics").count(b"\n"),
                                                        len(ask(programs["produce"].admin, "/pools"))))
        rows = collections.defaultdict(list)

        def note(strategy, how, row):
            rows[strategy, how].append(row)
            print("%-9s %-5s n %6d  p50 %6d  p99 %6d  p99.9 %6d us   load %.1f" % (strategy, how, *row, os.getloadavg()[0]), flush=True)
        for _ in range(wanted.rounds):
            for strategy, program in programs.items():
                note(strategy, "quiet", program.load(folder / "log", wanted.seconds))
                with program.busy():
                    note(strategy, "busy", program.load(folder / "log", wanted.seconds))
        for strategy in programs:
            quiet, busy = (statistics.median(row[2] for row in rows[strategy, how]) for how in ("quiet", "busy"))
            print("%-9s p99 quiet %d us, busy %d us: %+d us; %d reloads" % (strategy, quiet, busy, busy - quiet, programs[strategy].reloads))


if __name__ == "__main__":
    main()
