#!/usr/bin/env python3
"""Measures what interception costs carpool: CPU time of a kept-alive request inside an intercepted CONNECT against one in plain text to the
same TLS origin (the form of scenario S2), of a full and of a resumed TLS handshake of a client, and memory of an idle client and of one that
stops in the middle of its handshake.

    tests/bench/intercept_cost.py [PROGRAM] [--rounds 30] [--seconds 0.3] [--clients 1000] [--json FILE]

The forms run in turns, a short slice each; figures are medians over the rounds. A handshake is the difference between a connection with CONNECT
and TLS and one with CONNECT alone, so it includes the reading of the client's messages and the ticket. Needs nginx."""
import argparse
import contextlib
import pathlib
import resource
import subprocess
import sys
import tempfile
import threading

import conditions
import nginx_scene
import report_intercept
from intercept_clients import Clients, alternate, leave
from p99_scene import free_port

sys.path.insert(0, str(conditions.ROOT / "tests/e2e"))
from harness.pki import Pki  # noqa: E402

SIZE, TARGET, RATE = nginx_scene.SIZE, b"/kib", 2000  # as in scenario S2


@contextlib.contextmanager
def scene(program):
    """Yields carpool's process, the clients of its intercepting listener, and those of the one in plain text."""
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as ends:
        folder = pathlib.Path(name)
        pki = Pki(folder)
        values = {"dir": folder, "cert": pki.server, "key": pki.server_key, "ca": pki.ca,
                  **{what: free_port() for what in ("origin", "proxy", "plain", "admin")}}
        subprocess.run([program, "ca", "init", folder / "ca", "--host", "localhost"], check=True, stdout=subprocess.DEVNULL)
        process = nginx_scene.start(ends, folder, program, nginx_scene.TLS_ORIGIN, "workers = 1\n" + nginx_scene.INTERCEPTING, values)
        authority = "localhost:%d" % values["origin"]
        yield (process, Clients(("127.0.0.1", values["proxy"]), authority, folder / "ca/ca.pem"),
               Clients(("127.0.0.1", values["plain"]), authority, folder / "ca/ca.pem"))


def forms(inside, plain):
    """name -> (what a thread begins with, what it repeats, how often a second)."""
    context = inside.context()
    session = inside.session(context, TARGET, SIZE)

    def resume(_):
        sock = inside.secured(context, session)
        assert sock.session_reused
        leave(sock)

    def ask_plain(sock):
        plain.get(sock, TARGET, SIZE)

    def ask_inside(sock):
        inside.get(sock, TARGET, SIZE)

    def secured():
        return inside.secured(context)
    return {"request": (plain.connect, ask_plain, 0), "intercepted": (secured, ask_inside, 0),
            "request_rate": (plain.connect, ask_plain, RATE), "intercepted_rate": (secured, ask_inside, RATE),
            "connect": (lambda: inside, lambda _: leave(inside.tunnel()), 0),
            "full": (lambda: inside, lambda _: leave(inside.secured(context)), 0),
            "resumed": (lambda: inside, resume, 0)}


def memory(program, count):
    """KiB of resident memory of one client: idle after a response; silent since the first half of its first message; silent since the whole
    of it, for a second. Each in a process of its own, because freed memory stays with it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    took = {}
    for way in (idle, part, whole):
        with scene(program) as (process, inside, _):
            took[way.__name__] = growth(process, lambda way=way, inside=inside, context=inside.context(): way(inside, context), count)
    return took


def idle(inside, context):
    sock = inside.secured(context)
    inside.get(sock, TARGET, SIZE)
    return sock


def part(inside, context):
    hello, sock = inside.hello(context), inside.tunnel()
    sock.sendall(hello[:len(hello) // 2])
    return sock


def whole(inside, context):
    sock = inside.tunnel()
    sock.sendall(inside.hello(context))
    assert sock.recv(1), "carpool's messages follow"
    return sock


def growth(process, way, count):
    first, pause = [way() for _ in range(50)], threading.Event()  # never set
    pause.wait(1)
    before = process.kib()
    socks = [way() for _ in range(count)]
    pause.wait(1)
    grown = process.kib() - before
    for sock in first + socks:
        leave(sock)
    return round(grown / count, 1)


def measure(program, wanted):
    kib, rounds = memory(program, wanted.clients), []
    with scene(program) as (process, inside, plain):
        for took in alternate(forms(inside, plain), wanted.seconds, wanted.rounds, process.cpu):
            rounds.append(took)
            print("  ".join("%s %.1f us" % of for of in took.items()), flush=True)
        return kib, rounds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", default=conditions.ROOT / "build/release/carpool")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--clients", type=int, default=1000, help="idle ones, for their memory")
    parser.add_argument("--json", help="stores the figures")
    wanted = parser.parse_args()
    about = conditions.begin(nginx=conditions.version("nginx", "-v"), OpenSSL=conditions.version("openssl", "version"))
    about.update(rounds=wanted.rounds, seconds=wanted.seconds)
    kib, rounds = measure(wanted.program, wanted)
    rows = [{name: round(us, 1) for name, us in row.items()} for row in rounds]
    print(report_intercept.targets(report_intercept.Intercept({"conditions": about, "rows": rows, "kib": kib["idle"], "half": kib})))
    if wanted.json:
        conditions.write(wanted.json, about, rows, kib=kib["idle"], half=kib)


if __name__ == "__main__":
    main()
