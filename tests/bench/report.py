#!/usr/bin/env python3
"""Makes docs/benchmarks.md and the tables of figures in README.md and docs/execution.md from tests/bench/results.

    tests/bench/report.py            # writes them
    tests/bench/report.py --check    # says which of them differs, and ends with 1 if one does

tests/tidy holds the documents against it."""
import pathlib
import re
import sys

import conditions
import report_apps
import report_client_handshakes
import report_intercept
import report_memory
import report_peers
import report_pool
import report_profiles
import report_scale
import report_tails
import report_targets
import report_unix
import tables

ROOT = conditions.ROOT
BETWEEN = re.compile(r"(<!-- figures of tests/bench/report.py -->\n).*?(\n<!-- end of figures -->)", re.S)
CALLS = re.compile(r"(<!-- calls of tests/bench/report.py -->\n).*?(\n<!-- end of calls -->)", re.S)

PAGE = """# Benchmarks

<!-- tests/bench/report.py makes this page from tests/bench/results. -->

On this page: [What is measured](#what-is-measured) · [Targets](#targets) · [Scenarios](#scenarios) · [Unix sockets](#unix-sockets) ·
[Scale](#scale) · [The pool beside the Java originals](#the-pool-beside-the-java-originals) · [The pool's operations by size](#the-pools-operations-by-size) ·
[Execution](#execution) · [Applications whose https calls go through the proxy](#applications-whose-https-calls-go-through-the-proxy) ·
[What interception costs](#what-interception-costs) · [How to repeat](#how-to-repeat)

{conditions}

## What is measured

A load generator outside the tree runs carpool and its peers in turns (A B C A B C …) on one machine, with equal configurations, the same client and the same
origin, one nginx worker. Each proxy of each round starts again, has a warm-up, a phase at saturation and a phase at a fixed rate.
**Load generator, origin and proxy share the processors, so requests per second and latencies say little. The measure is CPU time per request, and only as a
ratio within one run.**

Every pair of figures is for 1 / 2 workers. CPU time is in µs per request, latencies are in µs, and each figure is the median over the rounds. "Ratio" is CPU
time against the best peer, that is the peer with the least CPU time; below 1 the proxy needs less. In parentheses is the range of that ratio over the rounds.
At saturation a proxy that needs less CPU waits more often, so each phase has a ratio of its own. "Opened" counts the connections to
the origin from start to end; "opened per 100,000" counts those per 100,000 requests at saturation, after the warm-up. {failed}

## Targets

{targets}

{extremes}

## Scenarios

{scenarios}

Each client has sent one request in S9. A proxy that is "unable" has no setting for the scenario. The byte relay is no peer: it is 100 lines of C that read and write
bytes, with a connection to the origin for each client connection. Squid is measured in S11 alone, where the others have no setting.

The range in parentheses says how much of a ratio is this machine's. The best peer
of a tail is the lowest of four medians, each of which moves as much.

### Where the CPU time is spent

{profiles}

### Whose time the slowest requests take

{tails}

### What a request costs at the fixed rate

At 2,000 requests per second a processor is idle between them, so each one wakes the proxy, and its code and data are no longer in the caches. The same request in
S1 with one worker, on 27 November 2026:

- System calls per request with carpool and nginx: `recv` 2.1 and 2.0, `send` 2 and 2, `getsockopt` 0 and 1, `epoll_wait` 1.1 and 0.8 (strace, 1 worker; with
  two workers 1.4 and 0.4, because each of carpool's loops finds one event at a time). There is no `futex`, no write to an eventfd and no call for a clock or timer.
  At saturation `epoll_wait` is 0.14 and 0.05.
- 75 % of carpool's time and 70 % of nginx's is the kernel's, about 64 and 63 µs of it (`perf`, cpu-clock, which inflates all figures): loopback TCP inside `send`
  and the switch inside `epoll_wait`, which both pay for each event. A lead in user code counts for less here: about 21 and 27 µs.
- One request at a time touches 1,345 lines of instructions on 166 pages with carpool, 1,052 on 97 with nginx, and 448 and 411 lines of data (valgrind's lackey; what
  at least every second window of 24,000 instructions touches). An order of functions for the linker that puts the request path together halved the pages
  of the program's code and showed no gain in CPU time (ratios 1.07, 1.02, 0.98), so the build has none.
- An idle carpool uses 1.2 ms per second, most of it four looks a second at the limits of memory: 1 % at this rate.

### Why waiting times at the cap differ

In S7 a request waits for about 1,000 others, so p99/p50 says whether the queue keeps its order and how steady the throughput is. These figures are from
runs on 27 November 2026, in which the load generator and the origin noted the time of each request and all processes had real-time priority (`chrt -r 1`); each
row is the median of five runs of 2 s (HAProxy: three), without their first 0.4 s. "Model" is p99/p50 of a queue that serves strictly in the order of arrival and
finishes its requests at the times that were measured.

| proxy | workers | p99/p50 | model | requests that changed places | by at most | completions in 170 ms |
|---|--:|--:|--:|--:|--:|--:|
| carpool | 1 | 1.04 | 1.04 | 0 % | 0 | 978 to 1,056 |
| carpool | 2 | 1.03 | 1.03 | 33 % | 31 | 928 to 1,056 |
| HAProxy | 1 | 1.04 | 1.04 | 0 % | 0 | 972 to 1,051 |
| HAProxy | 2 | 1.03 | 1.03 | 4 % | 16 | 992 to 1,024 |

- With 32 connections and an equal time for each request, the requests proceed in rounds of 32. A request of 1,000 clients waits for 31 or for 32 rounds, so the
  ratio is 1.03 (32/31) on a machine that nothing disturbs.
- The rest is throughput that changes: in every run the measured ratio was that of the model to 0.001. In two of the ten runs of carpool both were 1.11. At usual
  priority, with other programs on both processors, both were 1.10 to 1.22 (six runs of carpool): the completions in 170 ms had a standard deviation of 4 to
  16 %, and the origin responded 0.6 to 1.9 ms late on average.
- One worker changes no places. With two, requests that reach both loops within a turn may, by a round at most (by 45 places at usual priority); no
  request waits twice.
- A connection is unused in carpool for 0.1 ms of each 5.4 ms (mean; p99 0.4 ms), from the call that reads the response to the one that writes the next request,
  as tracepoints of the kernel show: a turn of the loop forwards all responses that it found before it writes the next requests.

### What a second worker costs with HTTP/2 to the origin

S3 with the same priority on the same day, medians of seven rounds with 0.3 s at saturation and 1 s at the fixed rate; system calls and waits (`epoll_wait`)
are those that `perf stat` counts at the fixed rate, medians of three rounds.

| proxy | workers | CPU, saturation | CPU, fixed rate | p99 at the rate | calls per request | waits per request |
|---|--:|--:|--:|--:|--:|--:|
| carpool | 1 | 14.3 | 131 | 846 | 5.64 | 1.70 |
| carpool | 2 | 11.7 | 134 | 776 | 5.99 | 1.90 |
| HAProxy | 1 | 15.7 | 149 | 678 | 11.66 | 1.65 |
| HAProxy | 2 | 16.2 | 178 | 682 | 12.35 | 1.80 |
| nghttpx | 1 | 16.5 | 141 | 791 | 13.66 | 3.15 |
| nghttpx | 2 | 16.5 | 155 | 718 | 14.35 | 3.53 |

With two workers each loop served 32 of the clients with a session of its own: none of 2,003 requests at the fixed rate crossed the loops. The calls that wake
another loop were 25, all in the two milliseconds in which clients connected, and there was no `futex`. A session writes at most once per turn (1,888 writes).
A second loop costs what smaller batches cost, 0.1 calls per request at saturation. At usual priority, beside other programs, the loops run late, requests gather,
and one loop gathers twice as many: 0.39 waits per request with one worker, 0.86 with two (one round). The latencies are then those of the machine: in four rounds
with two workers p99 was 2.6 to 52 ms with carpool and 2.3 to 51 ms with HAProxy.

## Unix sockets

{unix}

## Scale

{scale}

### Memory

{memory}

## The pool beside the Java originals

One operation is borrow, 10 to 19 tokens of work (about 20 ns), restore; "no work" omits the tokens, so that the threads contend all the time. CPU-ns are those
of all threads of a row, at 1 / 2 / 4 / 12 threads; Java's include its JIT and its collector. FIRST is without the hint; THREAD_ID has it, as a destination's
`first` does. "State machine" stands beside light-4j, the strategies beside Jetty, "mutex + deque" beside the same in Java.

{pool_targets}

{pool}

The effect of leaving the bitmaps alone on borrow and release is in [ADR 14](decisions/0014-a-borrow-leaves-the-maps-alone.md).

### The first place and the last

One of 1,000 entries is idle and all others are borrowed; CPU-ns. Without the hint one word per loop names the bitmaps that have a bit set.

{position}

### Twelve threads on twelve entries

The claimed factors of the original experiment, in millions of operations a second.

{experiment}

The original compares the hint with a search that all threads begin at the same entry; here each thread begins at its own loop's entry.

## The pool's operations by size

CPU time of one operation, the least of five parts and of all rounds; for commands and snapshots, of a single one. A command is one pass over the connections and holds
the mutex for at most 1,000 of them at a time; the time of a reconnect is that of the call, without its dials.

{curves}

## Execution

The strategies beside Jetty's: [execution.md](execution.md#figures).

## Applications whose https calls go through the proxy

`tests/bench/apps/scene_apps.py`: unchanged applications, eight calls at a time, {calls} calls a row, each a GET of six bytes from a TLS origin behind a
userspace delay that adds a round trip to the first bytes of a connection in place of TCP's handshake. PHP and gunicorn open a connection for each call; undici
keeps its own. "URL of" is the peer in the role of a reverse proxy, whose address the application has to call. Connections and handshakes are those that the origin
counted; CPU time is per call, of all of the application's processes and of the proxy. {apps_failed} Intercepted at {trip} ms: {apps_target}.

{apps}

## What interception costs

`tests/bench/intercept_cost.py`: one worker, a TLS origin, 16 clients that only keep carpool busy. A request is a kept-alive GET of 1 KiB over TLS to the origin, from a
client in plain text (as in S2) or inside an intercepted CONNECT. A handshake is the difference between a connection with CONNECT and TLS 1.3 and one with
CONNECT alone: it includes reading the client's messages, the ticket, and the hand-over to other threads beyond `threads.inline_handshakes` per second. The forms
run in turns, a short slice each; the figures are medians over the rounds, with their range, unless told.

{intercept}

{intercept_forms}

A client that stops before its first message is complete takes less than 1 KiB, because its bytes stay in the socket. One that stops after it takes more than
8 KiB: OpenSSL 3.0 allocates 8.2 KiB for a connection before its first byte (7.4 KiB are one object), and 43.5 KiB until it has the client's last message: also
a buffer for messages (21.3 KiB), two for output (8 KiB), and keys and session (6 KiB). It has no setting that reduces them.

A resumed handshake still exchanges keys (X25519), which keeps recorded traffic secret if a ticket's key is stolen later. On an Intel Xeon
OpenSSL 3.0 alone took 205 µs for the server's side of it and 288 µs for that of a full handshake, repeated in one thread while nothing else ran; the clients that keep
carpool busy share the processors' caches with it. On another day the same processor took 145 to 165 µs for the resumed one.

callgrind shows where the rest is. Interception adds 17,200 instructions to a request: 9,400 in libcrypto, 4,500 in libssl, 2,100 in libc (the six allocations that
OpenSSL makes for two records of TLS 1.3, and copies), 1,100 in carpool. Both forms make two calls of `recv` and two of `send`. Of the instructions of a resumed handshake
carpool executes 2 %, most of them for the 684 allocations of OpenSSL.

| instructions of the server's side, millions | TLS 1.3, full | TLS 1.3, resumed | TLS 1.2, full | TLS 1.2, resumed |
|---|--:|--:|--:|--:|
| all, with CONNECT and the end of the connection | 2.58 | 2.23 | 2.13 | 0.45 |
| X25519: the new key | 0.61 | 0.60 | 0.59 | none |
| X25519: the shared secret | 0.50 | 0.50 | 0.50 | none |
| derivation of keys (17 with TLS 1.3) | 0.47 | 0.49 | 0.20 | |
| the signature (ECDSA, P-256) | 0.26 | none | 0.26 | none |
| MACs of Finished and of the binder | 0.11 | 0.11 | | |

A P-256 key exchange would take 1.9 times as long (35 and 142 µs for the new key and the secret, against 52 and 43 µs with X25519, on the same loaded machine).

### What the handshakes of one client cost the others

`tests/bench/client_handshakes_p99.py`: a client makes {handshake_rate} full handshakes of TLS 1.3 per second, each behind a CONNECT on a new connection. Four clients from
another address send 200 requests per second in plain text, and four more as many inside intercepted CONNECTs; their latencies are in µs, medians over the rounds with
their range. The same handshakes with an nginx beside take the same time of the two processors, but none of carpool's, so that row shows what the machine adds.

{client_handshakes}

## How to repeat

```sh
cmake --preset release -DCARPOOL_BENCH=ON && cmake --build --preset release --target carpool pool_bench exec_bench pool_curve
CARPOOL=$PWD/build/release/carpool tests/bench/record.py peers PEERBENCH --scenarios S1,S2,S3,S4,S5,S6,S7,S8,S9,S10 \\
  --proxies carpool,haproxy,nginx,nghttpx,envoy,relay --workers 1,2 --seconds 3 --rounds 5
CARPOOL=$PWD/build/release/carpool tests/bench/record.py tunnels PEERBENCH --scenarios S11 --proxies carpool,squid,relay --workers 1,2 --seconds 3 --rounds 5
CARPOOL=$PWD/build/release/carpool tests/bench/profiles.py PEERBENCH --scenarios S1,S2,S6,S8 --proxies carpool,haproxy,nginx --workers 1,2 --seconds 1 --rounds 2
CARPOOL=$PWD/build/release/carpool tests/bench/profiles.py PEERBENCH --scenarios S4,S11 --proxies carpool,nghttpx,squid,relay --workers 1,2 --seconds 1 --rounds 2 \\
  --json tests/bench/results/profiles_others.json
CARPOOL=$PWD/build/release/carpool tests/bench/profiles.py PEERBENCH --scenarios S3,S10 --proxies carpool,haproxy,nginx,nghttpx --workers 1,2 --seconds 1 --rounds 2 \\
  --json tests/bench/results/profiles_more.json
CARPOOL=$PWD/build/release/carpool tests/bench/tails.py PEERBENCH --scenarios S1,S3,S4,S8 --proxies carpool,haproxy,nginx,direct --workers 1,2 \\
  --seconds 1.5 --rounds 3
tests/bench/record.py curve build/release/tests/bench/pool_curve
tests/bench/compare.py --json tests/bench/results/pool.json            # needs java and mvn; --without-java runs carpool alone
tests/bench/compare_exec.py --json tests/bench/results/execution.json
tests/bench/apps/scene_apps.py --json tests/bench/results/apps.json
tests/bench/intercept_cost.py --json tests/bench/results/intercept.json
tests/bench/client_handshakes_p99.py --json tests/bench/results/client_handshakes.json
tests/bench/unix_cost.py --json tests/bench/results/unix.json
build/venv/bin/python tests/bench/scale_cost.py --json tests/bench/results/scale.json       # other load has no influence on these two
build/venv/bin/python tests/bench/scale_memory.py --json tests/bench/results/memory.json
tests/bench/report.py                                                  # this page, and the tables of README.md and execution.md
```

S6 fills the kernel's table of sockets in TIME_WAIT, and the load generator waits for room in it. With `net.ipv4.tcp_max_tw_buckets=1000000`, for example
in a network namespace of its own, it does not wait. After `chrt -r 1` a command has the processors before other programs, which still get a twentieth of the time.
"""


class Stored:
    """What tests/bench/results has."""

    def __init__(self, root):
        self.tunnels, self.curve, self.execution = (conditions.read(root, name) for name in ("tunnels", "curve", "execution"))
        self.peers, self.pool = report_peers.Peers(conditions.read(root, "peers"), self.tunnels), report_pool.Pool(conditions.read(root, "pool"))
        self.apps = report_apps.Applications(conditions.read(root, "apps"))
        self.intercept = report_intercept.Intercept(conditions.read(root, "intercept"))
        self.client_handshakes = conditions.read(root, "client_handshakes")
        self.unix, self.scale = report_unix.Unix(conditions.read(root, "unix")), report_scale.Scale(conditions.read(root, "scale"))
        self.memory = report_memory.Memory(conditions.read(root, "memory"))
        self.profiles = report_profiles.Profiles(*(conditions.read(root, name) for name in ("profiles", "profiles_others", "profiles_more")))
        self.tails = report_tails.Tails(conditions.read(root, "tails"))

    def conditions(self):
        about = [("scenarios", self.peers.about), ("tunnels", self.tunnels["conditions"]), ("profiles", self.profiles.about), ("tails", self.tails.about), ("Unix sockets", self.unix.about), ("scale", self.scale.about),
                 ("memory", self.memory.about), ("pool", self.pool.about), ("pool by size", self.curve["conditions"]),
                 ("execution", self.execution["conditions"]), ("applications", self.apps.about), ("interception", self.intercept.about),
                 ("handshakes of one client", self.client_handshakes["conditions"])]
        return tables.table(tables.CONDITIONS, [tables.conditions(*a) for a in about], len(tables.CONDITIONS))


def page(of):
    peers, pool, apps = of.peers, of.pool, of.apps
    failed = peers.failed()
    return PAGE.format(conditions=of.conditions(),
                       failed="%d requests failed." % failed if failed else "No request failed.", targets=report_targets.targets(peers),
                       extremes=report_peers.extremes(peers), scenarios="\n\n".join(report_peers.sections(peers)),
                       profiles=report_profiles.section(of.profiles), tails=report_tails.section(of.tails), unix=report_unix.section(of.unix), scale=report_scale.section(of.scale), memory=report_memory.section(of.memory),
                       pool_targets=report_pool.targets(pool), pool=report_pool.beside_java(pool), position=report_pool.position(pool),
                       experiment=report_pool.experiment(pool), curves=report_pool.curves(of.curve), calls=apps.calls(), trip=report_apps.README_TRIP,
                       apps_failed="%d calls failed." % apps.failed() if apps.failed() else "No call failed.", apps_target=report_apps.target(apps),
                       apps="\n\n".join(report_apps.sections(apps)), intercept=report_intercept.targets(of.intercept),
                       intercept_forms=report_intercept.forms(of.intercept), handshake_rate="{:,}".format(of.client_handshakes["conditions"]["rate"]),
                       client_handshakes=report_client_handshakes.section(of.client_handshakes["rows"]))


def between(text, made, markers=BETWEEN):
    found, count = markers.subn(lambda m: m[1] + made + m[2], text)
    return found if count == 1 else "one pair of markers must hold the figures\n" + text


def documents(root):
    """path -> the text that it is to have."""
    of = Stored(root)
    readme = between((root / "README.md").read_text(), report_peers.summary(of.peers))
    return {"docs/benchmarks.md": page(of), "README.md": between(readme, report_apps.summary(of.apps), CALLS),
            "docs/execution.md": between((root / "docs/execution.md").read_text(), report_pool.execution(of.execution))}


def differing(root):
    """(path, first line that differs) of each document that is not as the results make it."""
    for path, wanted in documents(root).items():
        file = root / path
        here, there = wanted.split("\n"), file.read_text().split("\n") if file.is_file() else []
        if here != there:
            same = next((n for n, (one, other) in enumerate(zip(here, there)) if one != other), min(len(here), len(there)))
            yield path, same + 1


def main(words):
    if words not in ([], ["--check"]):
        sys.exit(__doc__)
    if words:
        found = list(differing(ROOT))
        for path, line in found:
            print("%s:%d: not as tests/bench/report.py makes it" % (path, line))
        return 1 if found else 0
    for path, text in documents(ROOT).items():
        pathlib.Path(ROOT / path).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
