#!/usr/bin/env python3
"""Where a proxy spends the CPU time of a request, beside the peers.

    tests/bench/profiles.py PEERBENCH [OPTIONS] [--json FILE]   # the load generator with its options; needs perf and root

Runs the load generator with a runner that repeats each of its phases, at saturation and at the fixed rate or in bursts, twice under perf: once to
count the proxy's system calls, once to sample its threads by the system call that they are in, or by the object file whose code they
execute. perf's software clock inflates all times, so only the shares are kept; report_profiles.py applies them to the CPU time of the
same phase without perf. Fails if perf takes no sample."""
import collections
import importlib.machinery
import importlib.util
import os
import pathlib
import re
import signal
import subprocess
import sys

import conditions

FREQUENCY = 1999  # a second; no divisor of a timer's period
# A system call's function in the kernel, which may be inlined, and in the C library, whose frame is the first outside the kernel.
KERNEL_CALL = re.compile(r"^(?:__(?:x64|arm64|do|se)_|__|k)sys_(\w+)$")
LIBRARY_CALL = re.compile(r"^(?:__GI_)?_*(?:libc_)?(\w+?)(?:64)?$")
FRAME = re.compile(r"^\s+[0-9a-f]+ (.+?)(?:\+0x[0-9a-f]+)? \((.+)\)$")
# A system call by other names.
SAME = {"sendto": "send", "sendmsg": "send", "write": "send", "writev": "send", "recvfrom": "recv", "recvmsg": "recv", "read": "recv",
        "readv": "recv", "epoll_pwait": "epoll_wait", "accept4": "accept"}


def is_kernel(file):
    return file.startswith("[kernel") or file.endswith(".ko]")


def place(frames):
    """The place of a sample, whose frames are (symbol, object file), the innermost first."""
    kernel = [symbol for symbol, file in frames if is_kernel(file)]
    if not kernel:
        return pathlib.PurePath(frames[0][1]).name
    if kernel[-1].startswith("asm_"):
        return "interrupts and faults"
    names = [found[1] for symbol in kernel if (found := KERNEL_CALL.match(symbol))]
    names += [LIBRARY_CALL.match(symbol)[1] for symbol, file in frames[len(kernel):len(kernel) + 1] if LIBRARY_CALL.match(symbol)]
    return SAME.get(names[0], names[0]) if names else "interrupts and faults"


def places(text):
    """The number of samples of each place in the output of perf script."""
    counts = collections.Counter()
    for sample in re.split(r"\n\s*\n", text):
        frames = [found.groups() for line in sample.splitlines() if (found := FRAME.match(line))]
        if frames:
            counts[place(frames)] += 1
    return counts


def shares(program, counts):
    """The share of each place; "own" are the program's own code and what is linked into it."""
    total = sum(counts.values())
    if not total:
        sys.exit("perf took no sample of %s" % program)
    return {"own" if name == program else name: round(count / total, 4) for name, count in counts.most_common()}


def beside(pids, run, *command):
    """Runs the load while perf observes these processes, and returns what the load returns."""
    perf = subprocess.Popen(["perf", *command, "-p", ",".join(map(str, pids))], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        return run()
    finally:
        perf.send_signal(signal.SIGINT)
        perf.wait(60)


def sampled(pids, run, folder):
    """Returns perf's samples during one run of the load."""
    data = os.path.join(folder, "perf.data")
    beside(pids, run, "record", "-q", "-e", "cpu-clock", "-F", str(FREQUENCY), "-g", "-o", data)
    done = subprocess.run(["perf", "script", "-i", data, "-F", "ip,sym,symoff,dso"], check=True, capture_output=True, text=True, timeout=120)
    os.unlink(data)
    return done.stdout


def counted(pids, run, folder, calls):
    """Returns the system calls per request during one run of the load."""
    data = os.path.join(folder, "perf.csv")
    requests = beside(pids, run, "stat", "-x,", "-o", data, "-e", ",".join("syscalls:sys_enter_" + call for call in calls))["requests"]
    rows = [line.split(",") for line in pathlib.Path(data).read_text().splitlines()]
    found = {row[2].removeprefix("syscalls:sys_enter_"): int(row[0]) / requests for row in rows if len(row) > 3 and row[0].isdigit()}
    return {call: round(count, 3) for call, count in sorted(found.items(), key=lambda one: -one[1]) if count >= 0.005}


def load(path):
    """The load generator as a module."""
    loader = importlib.machinery.SourceFileLoader("load_generator", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("load_generator", loader))
    loader.exec_module(module)
    return module


def runner_of(module):
    class Runner(module.Runner):
        """Adds to each phase a run whose system calls are counted and one whose time is sampled."""

        def phase(self, p, run, secs):
            measured = super().phase(p, run, secs)
            program = pathlib.PurePath(os.readlink("/proc/%d/exe" % p.pids[0])).name
            measured["calls"] = counted(p.pids, run, self.work, module.SYSCALLS)
            measured["shares"] = shares(program, places(sampled(p.pids, run, self.work)))
            return measured

    return Runner


def of_round(cell):
    """phase -> its CPU time without perf, its system calls per request and its shares."""
    if "error" in cell:
        sys.exit(cell["error"])
    return {phase: {"cpu": round(cell[phase]["cpu_us"], 2), "calls": cell[phase]["calls"], "shares": cell[phase]["shares"]}
            for phase in ("sat", "rate", "burst") if phase in cell}


def run_with(words, runner_of, name):
    """Runs the load generator with its options and this runner: where to store the results, their conditions, and what the load generator would save."""
    program, *options = words
    target = conditions.ROOT / conditions.RESULTS / name
    if "--json" in options:
        at = options.index("--json")
        target = pathlib.Path(options[at + 1])
        del options[at:at + 2]
    versions = {"HAProxy": conditions.version("haproxy", "-v"), "nginx": conditions.version("nginx", "-v"), "nghttpx": conditions.version("nghttpx", "--version"),
                "Squid": conditions.version("squid", "-v"), "perf": conditions.version("perf", "--version")}
    about = conditions.begin(**versions)
    module, kept = load(program), {}
    module.Runner = runner_of(module)
    module.save = lambda arguments, results: kept.update(seconds=arguments.seconds, rounds=arguments.rounds, results=dict(results))
    sys.argv = [program, *options]
    try:
        module.main()
    except SystemExit as end:
        if end.code:
            raise
    about.update(rounds=kept["rounds"], seconds=kept["seconds"])
    return target, about, kept


def main(words):
    if not words or words[0].startswith("-"):
        sys.exit(__doc__)
    target, about, kept = run_with(words, runner_of, "profiles.json")
    rows = [{"proxy": proxy, "scenario": scenario, "workers": workers, "rounds": [of_round(cell) for cell in cells]}
            for (proxy, scenario, workers), cells in kept["results"].items() if cells]
    conditions.write(target, about, rows)


if __name__ == "__main__":
    main(sys.argv[1:])
