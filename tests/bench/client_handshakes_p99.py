#!/usr/bin/env python3
"""Measures what the TLS handshakes of one client cost the other clients: p50 and p99 of 200 requests a second in plain text and of as many
inside intercepted CONNECTs, while a client from another address makes 1,000 full handshakes a second.

    tests/bench/client_handshakes_p99.py [PROGRAM] [--rate 1000] [--rounds 5] [--seconds 6] [--json FILE]

Three forms in turns: no handshakes; the same handshakes with an nginx, which take the same time of the processors but none of carpool's; and
handshakes with carpool, each behind a CONNECT. The second shows how much the machine adds to the third. Needs nginx."""
import argparse
import collections
import contextlib
import multiprocessing
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

import conditions
import nginx_scene
import report_client_handshakes
from intercept_clients import Clients, Form, leave
from p99_scene import ask, end_with, free_port, percentiles, until_open

sys.path.insert(0, str(conditions.ROOT / "tests/e2e"))
from harness.pki import Pki  # noqa: E402

SIZE, TARGET = nginx_scene.SIZE, b"/kib"
CLIENTS, RATE = 4, 200  # of each kind of the other clients


class Direct(Clients):
    """Clients of an nginx: without CONNECT."""

    def tunnel(self):
        return self.connect()


@contextlib.contextmanager
def scene(program):
    """Yields the admin endpoint's port, the client that makes handshakes, with carpool and with an nginx, and the others, by kind."""
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as ends:
        folder = pathlib.Path(name)
        pki = Pki(folder)
        values = {"dir": folder, "cert": pki.server, "key": pki.server_key, "ca": pki.ca,
                  **{what: free_port() for what in ("origin", "proxy", "plain", "admin", "beside")}}
        (folder / "beside.conf").write_text(nginx_scene.TLS_ORIGIN % {**values, "origin": values["beside"]})
        end_with(ends, subprocess.Popen(["nginx", "-c", folder / "beside.conf", "-p", folder], stderr=subprocess.DEVNULL))
        until_open(values["beside"])
        subprocess.run([program, "ca", "init", folder / "ca", "--host", "localhost"], check=True, stdout=subprocess.DEVNULL)
        nginx_scene.start(ends, folder, program, nginx_scene.TLS_ORIGIN, nginx_scene.INTERCEPTING, values)
        proxy, plain, authority, ca = ("127.0.0.1", values["proxy"]), ("127.0.0.1", values["plain"]), "localhost:%d" % values["origin"], folder / "ca/ca.pem"
        yield (values["admin"], {"carpool": Clients(proxy, authority, ca), "nginx": Direct(("127.0.0.1", values["beside"]), authority, pki.ca)},
               {"plain": Clients(plain, authority, ca, "127.0.0.2"), "intercepted": Clients(proxy, authority, ca, "127.0.0.2")})


def connected(kind, clients):
    return clients.connect() if kind == "plain" else clients.secured(clients.context())


class Others:
    """Clients of both kinds; each keeps its connection over all rounds."""

    def __init__(self, clients):
        self.socks = [(kind, one, connected(kind, one)) for kind, one in clients.items() for _ in range(CLIENTS)]

    def ask(self, seconds):
        """Returns kind -> microseconds of each request."""
        took, pace = collections.defaultdict(list), threading.Event()  # never set

        def run(number, kind, one, sock):
            begin = time.monotonic() + number / (2 * RATE)
            for n in range(seconds * RATE // CLIENTS):
                pace.wait(max(0, begin + n * CLIENTS / RATE - time.monotonic()))
                sent = time.monotonic()
                one.get(sock, TARGET, SIZE)
                took[kind].append((time.monotonic() - sent) * 1e6)
        threads = [threading.Thread(target=run, args=(n, *of)) for n, of in enumerate(self.socks)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(len(of) == seconds * RATE for of in took.values()), "a request failed"
        return took


def results(admin):
    text = ask(admin, "/metrics").decode()
    return collections.Counter({name: int(value) for name, value in re.findall(r'^carpool_downstream_handshakes_total\{result="(\w+)"\} (\d+)', text, re.M)})


def round_of(form, others, admin, seconds):
    """Latencies of the others while `form`, if there is one, runs; its handshakes a second, and carpool's by result."""
    before, pace = results(admin), threading.Event()  # never set
    if form:
        form.gate.set()
        pace.wait(0.5)
    began, first = time.monotonic(), form.done.value if form else 0
    took = others.ask(seconds)
    rate = ((form.done.value if form else 0) - first) / (time.monotonic() - began)
    if form:
        assert all(worker.is_alive() for worker in form.workers), "a handshake failed"
        form.gate.clear()
        pace.wait(0.2)
    figures = {"%s_%s" % (kind, share): round(us) for kind, of in took.items() for share, us in zip(("p50", "p99"), percentiles(of))}
    return {**figures, "handshakes": round(rate), **{"result_" + name: count for name, count in (results(admin) - before).items()}}


def measure(wanted):
    multiprocessing.set_start_method("fork", force=True)
    rows, stop = collections.defaultdict(list), multiprocessing.Event()
    with scene(wanted.program) as (admin, handshakes, clients):
        forms = {"none": None}
        for name, one in handshakes.items():
            context = one.context()
            forms[name] = Form(lambda one=one: one, lambda one, context=context: leave(one.secured(context)), wanted.rate, stop, 4, 8)
        others = Others(clients)
        try:
            for turn in range(wanted.rounds):
                order = list(forms)[turn % len(forms):] + list(forms)[:turn % len(forms)]
                for name in order:
                    rows[name].append(round_of(forms[name], others, admin, wanted.seconds))
                    print(name, rows[name][-1], flush=True)
        finally:
            stop.set()
            for form in filter(None, forms.values()):
                form.gate.set()
                for worker in form.workers:
                    worker.join()
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", default=conditions.ROOT / "build/release/carpool")
    parser.add_argument("--rate", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=6)
    parser.add_argument("--json", help="stores the figures")
    wanted = parser.parse_args()
    about = conditions.begin(nginx=conditions.version("nginx", "-v"), OpenSSL=conditions.version("openssl", "version"))
    about.update(rounds=wanted.rounds, seconds=wanted.seconds, rate=wanted.rate)
    rows = measure(wanted)
    stored = [{"form": name, **row} for name, of in rows.items() for row in of]
    print(report_client_handshakes.section(stored))
    if wanted.json:
        conditions.write(wanted.json, about, stored)


if __name__ == "__main__":
    main()
