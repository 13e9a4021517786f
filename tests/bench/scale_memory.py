#!/usr/bin/env python3
"""Measures carpool's memory: at rest with a bundle of certificate authorities, for each of 10,000 idle clients that sent one request, and for each of 1,000
origins that were used once, in plain text and over TLS, while their connection is idle and after the pool has closed it.

    build/venv/bin/python tests/bench/scale_memory.py [PROGRAM] [--clients 10000] [--origins 1000] [--workers 1 2] [--json FILE]

A figure is the growth of resident memory, and of the blocks that malloc has handed out, once both have come to rest: carpool returns unused memory to
the system some seconds after it became unused. Each kind has a process of its own, with the default settings except for its timeouts. Takes some minutes."""
import argparse
import os
import pathlib
import tempfile
import threading

import conditions
import report_memory
import scale_scene
from process_use import Process

import harness.carpool
from harness.pki import Pki
from harness.wait import until
from peers import server_context

FIRST = {"clients": 64, "origins": 10}  # used before the first measurement
BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
QUIET, LONGEST, IDLE = 7, 25, 60  # seconds: of no change; that a change may last; until the pool closes a connection


class Use:
    def __init__(self, resident, allocated):
        self.resident, self.allocated = resident, allocated

    def each(self, before, count):
        return {"resident": round((self.resident - before.resident) / count, 2), "allocated": round((self.allocated - before.allocated) / count, 2)}


def at_rest(program):
    """The Use in KiB, once resident memory has not changed for a while."""
    process, pause = Process(program.process.pid), threading.Event()  # never set
    last, same = process.kib(), 0
    for _ in range(LONGEST):
        pause.wait(1)
        now = process.kib()
        last, same = now, same + 1 if now == last else 0
        if same == QUIET:
            break
    return Use(last, program.get_json("/overload")["heap"]["used"] / 1024)


def descriptors(program):
    return len(os.listdir("/proc/%d/fd" % program.process.pid))


def of_clients(folder, workers, count):
    with scale_scene.scene(folder, workers=workers) as scene:
        scene.clients(FIRST["clients"])
        before = at_rest(scene.program)
        scene.clients(count)
        return {"client": at_rest(scene.program).each(before, count)}


def of_origins(folder, workers, count, pki=None):
    bundle = folder / "bundle.pem"
    if pki:
        bundle.write_bytes(pathlib.Path(BUNDLE).read_bytes() + pathlib.Path(pki.ca).read_bytes())
    found, name = {}, "tls" if pki else "plain"
    settings = {"upstream": {"tls": {"ca_file": str(bundle), "server_name": "origin.test"}}} if pki else {}
    context = server_context(pki.server, pki.server_key, "http/1.1") if pki else None
    with scale_scene.scene(folder, workers=workers, context=context, pool={"idle_timeout": "%ds" % IDLE}, **settings) as scene:
        if pki:
            found["rest"] = round(at_rest(scene.program).resident / 1024, 2)
        opened = descriptors(scene.program)
        client = scene.clients(1)[0]
        for number in range(FIRST["origins"]):
            client.ask_of(number)
        before = at_rest(scene.program)
        for number in range(FIRST["origins"], FIRST["origins"] + count):
            client.ask_of(number)
        assert descriptors(scene.program) >= opened + count, "only %d connections are open" % (descriptors(scene.program) - opened)
        found[name] = at_rest(scene.program).each(before, count)
        until(lambda: descriptors(scene.program) <= opened + FIRST["origins"], 2 * IDLE, "the end of idle connections")
        found[name + "_closed"] = at_rest(scene.program).each(before, count)
        return found


def measure(workers, wanted):
    found = {"workers": workers}
    with tempfile.TemporaryDirectory() as name:
        pki = Pki(name)
        for part, kind in enumerate((lambda folder: of_clients(folder, workers, wanted.clients), lambda folder: of_origins(folder, workers, wanted.origins),
                                     lambda folder: of_origins(folder, workers, wanted.origins, pki))):
            folder = pathlib.Path(name) / str(part)
            folder.mkdir()
            found.update(kind(folder))
            print(found, flush=True)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", type=pathlib.Path, default=harness.carpool.PROGRAM)
    parser.add_argument("--clients", type=int, default=10000)
    parser.add_argument("--origins", type=int, default=1000)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--json", help="stores the figures")
    wanted = parser.parse_args()
    harness.carpool.PROGRAM = wanted.program.resolve()
    about = conditions.begin(OpenSSL=conditions.version("openssl", "version"))
    rows, counts = [measure(workers, wanted) for workers in wanted.workers], {"clients": wanted.clients, "origins": wanted.origins}
    print(report_memory.targets(report_memory.Memory({"conditions": about, **counts, "rows": rows})))
    if wanted.json:
        conditions.write(wanted.json, about, rows, **counts)


if __name__ == "__main__":
    main()
