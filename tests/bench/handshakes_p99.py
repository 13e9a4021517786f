#!/usr/bin/env python3
"""Measures the effect of TLS handshakes at saturation on plain requests: p50 and p99 of 200 plain requests a second
through one worker while clients of another listener make it dial an origin with a client certificate (RSA 2048, so each
handshake signs) as fast as it can. All modes in turns, in rounds whose order rotates; the last lines are medians, and the ratio to the best other mode of the same round.

    tests/bench/handshakes_p99.py [PROGRAM]... [--rounds 5] [--seconds 6] [--dialers 16] [--modes adaptive produce_execute]

More than one PROGRAM: each in each mode. Needs nginx and openssl. On a shared machine milliseconds mean little: compare the
ratios within a round.
"""
import argparse
import collections
import contextlib
import http.client
import multiprocessing
import os
import pathlib
import re
import statistics
import subprocess
import tempfile
import threading
import time

from p99_scene import ask, end_with, free_port, percentiles, until_open

MODES = ("adaptive", "execute_produce", "produce_execute", "produce")
CLIENTS, RATE = 4, 200
NGINX = """daemon off; worker_processes 1; pid %(dir)s/pid; error_log %(dir)s/error;
events { worker_connections 4096; }
http { access_log off; keepalive_requests 1000000; client_body_temp_path %(dir)s/body;
  server { listen 127.0.0.1:%(plain)d backlog=1024; location / { return 200 "hello"; } }
  server { listen 127.0.0.1:%(tls)d ssl backlog=1024; keepalive_timeout 0; ssl_session_cache off; ssl_session_tickets off;
    ssl_certificate %(dir)s/server.pem; ssl_certificate_key %(dir)s/server.key;
    ssl_client_certificate %(dir)s/client.pem; ssl_verify_client optional_no_ca; location / { return 200 "hello"; } } }
"""
CONFIG = """[[listen]]
address = "127.0.0.1:%(plain_in)d"
origin = "http://127.0.0.1:%(plain)d"
[[listen]]
address = "127.0.0.1:%(tls_in)d"
origin = "https://127.0.0.1:%(tls)d"
[admin]
address = "127.0.0.1:%(admin)d"
[threads]
strategy = "%(mode)s"
[upstream]
protocols = ["h1"]
[upstream.tls]
verify = false
cert_file = "%(dir)s/client.pem"
key_file = "%(dir)s/client.key"
[log]
access = false
"""


def certificate(folder, name, *key):
    subprocess.run(["openssl", "req", "-x509", "-nodes", "-newkey", *key, "-days", "9", "-subj", "/CN=" + name, "-keyout", folder / (name + ".key"),
                    "-out", folder / (name + ".pem")], check=True, stderr=subprocess.DEVNULL)


def get(client):
    client.request("GET", "/")
    response = client.getresponse()
    return response.status == 200 and bool(response.read())


def dial_on(port, stop, done):
    client = http.client.HTTPConnection("127.0.0.1", port)
    while not stop.is_set():
        fine = get(client)
        with done.get_lock():
            done.value += fine


def dial(port, dialers, stop, done):
    threads = [threading.Thread(target=dial_on, args=(port, stop, done)) for _ in range(dialers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@contextlib.contextmanager
def dials(port, dialers):
    """Runs in another process, so that its interpreter does not delay the plain requests."""
    stop, done = multiprocessing.Event(), multiprocessing.Value("i", 0)
    process = multiprocessing.Process(target=dial, args=(port, dialers, stop, done))
    process.start()
    yield done
    stop.set()
    process.join()


def plain(port, seconds):
    took, pace = [], threading.Event()  # never set

    def run(number):
        client = http.client.HTTPConnection("127.0.0.1", port)
        begin = time.monotonic() + number / RATE
        for n in range(seconds * RATE // CLIENTS):
            pace.wait(max(0, begin + n * CLIENTS / RATE - time.monotonic()))
            sent = time.monotonic()
            assert get(client), "a plain request failed"
            took.append((time.monotonic() - sent) * 1e6)
    threads = [threading.Thread(target=run, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return took


class Program:
    def __init__(self, binary, mode, folder, values, ends):
        self.ports = {name: free_port() for name in ("plain_in", "tls_in", "admin")}
        config = folder / "carpool.toml"
        config.write_text(CONFIG % {**self.ports, **values, "mode": mode})
        process = subprocess.Popen([binary, "--config", config], stderr=subprocess.PIPE, text=True)
        end_with(ends, process)
        assert any("carpool ready" in line for line in process.stderr), "it ended"
        threading.Thread(target=process.stderr.read, daemon=True).start()

    def counts(self):
        text = ask(self.ports["admin"], "/metrics").decode()
        return {label: int(value) for label, value in re.findall(r'^carpool_exec_(?:tasks|handovers)_total{\w+="(\w+)"} (\d+)', text, re.M)}

    def round(self, wanted):
        before, client = self.counts(), http.client.HTTPConnection("127.0.0.1", self.ports["plain_in"])
        with dials(self.ports["tls_in"], wanted.dialers) as done:
            while done.value < 20 * wanted.dialers:
                assert get(client)
            began, first = time.monotonic(), done.value
            took = plain(self.ports["plain_in"], wanted.seconds)
            rate = (done.value - first) / (time.monotonic() - began)
        after = self.counts()
        return percentiles(took)[:2], rate, " ".join("%s %d" % (k, after[k] - before.get(k, 0)) for k in after)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", nargs="*", default=["build/release/carpool"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=6)
    parser.add_argument("--dialers", type=int, default=16)
    parser.add_argument("--modes", nargs="+", default=list(MODES), choices=MODES, help="adaptive and at least one more")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as ends:
        folder = pathlib.Path(name)
        certificate(folder, "server", "ec", "-pkeyopt", "ec_paramgen_curve:P-256")
        certificate(folder, "client", "rsa:2048")
        values = {"dir": folder, "plain": free_port(), "tls": free_port()}
        (folder / "nginx.conf").write_text(NGINX % values)
        end_with(ends, subprocess.Popen(["nginx", "-c", folder / "nginx.conf", "-p", folder], stderr=subprocess.DEVNULL))
        until_open(values["tls"])
        programs = [((n, mode), Program(binary, mode, folder, values, ends)) for n, binary in enumerate(wanted.program) for mode in wanted.modes]
        rows = collections.defaultdict(list)
        for turn in range(wanted.rounds):
            for key, program in programs[turn % len(programs):] + programs[:turn % len(programs)]:
                (p50, p99), rate, counts = program.round(wanted)
                rows[key].append((p50, p99, rate))
                print("%d %-16s p50 %7d  p99 %7d us  dials/s %4d  load %4.1f  %s" % (*key, p50, p99, rate, os.getloadavg()[0], counts), flush=True)
        report(rows, wanted)


def report(rows, wanted):
    others = [mode for mode in wanted.modes if mode != "adaptive"]
    for (n, mode), of in rows.items():
        print("%d %-16s median p50 %7d  p99 %7d us  dials/s %4d" % (n, mode, *(statistics.median(column) for column in zip(*of))))
    for n in range(len(wanted.program)):
        for place, what in enumerate(("p50", "p99")):
            best = [min(rows[n, mode][turn][place] for mode in others) for turn in range(wanted.rounds)]
            ratios = [row[place] / least for row, least in zip(rows[n, "adaptive"], best)]
            medians = {mode: statistics.median(row[place] for row in rows[n, mode]) for mode in wanted.modes}
            print("%d adaptive's %s: %.2f of the best other mode of each round (median), %.2f by the medians" % (
                n, what, statistics.median(ratios), medians["adaptive"] / min(medians[mode] for mode in others)))


if __name__ == "__main__":
    main()
