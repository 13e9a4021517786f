#!/usr/bin/env python3
"""Counts the instructions that carpool executes for a request, with 1 to 10,000 origins in rotation and with up to 10,000 idle clients beside 64 active
ones. callgrind counts them, so other load on the machine has no influence; work of timers is excluded, as in tests/cost.

    build/venv/bin/python tests/bench/scale_cost.py [PROGRAM] [--origins 10000] [--clients 10000] [--json FILE]

Needs valgrind, and about 12,000 descriptors for each of two processes. Valgrind slows carpool's periodic work down: with 10,000 origins a case takes minutes on
an idle machine, and does not end on a busy one."""
import argparse
import itertools
import pathlib
import tempfile

import conditions
import report_scale
import scale_scene

import instructions  # of tests/cost, which scale_scene finds
import harness.carpool

ACTIVE, STEPS, COUNTED = 64, (64, 100, 1000, 10000), 1000  # requests of a part
# No connection ends meanwhile, however slow valgrind is. The origins and the clients together need fewer descriptors than RLIMIT_NOFILE.
SETTINGS = {"pool": {"idle_timeout": "0s", "expire_time": "0s", "health_check": {"enabled": False},
                     "total": {"max_connections": STEPS[-1] + 100, "max_origins": STEPS[-1] + 100, "origin_idle_timeout": "10h"}}}


def cases(most_origins, most_clients):
    """Yields (origins, idle clients); the first is the base of all."""
    yield 1, 0
    yield from ((origins, 0) for origins in STEPS[1:] if origins <= most_origins)
    yield from ((1, idle) for idle in (STEPS[0], *STEPS[2:]) if idle <= most_clients)


def count(origins, idle):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        with scale_scene.scene(folder, inside=instructions.command(folder), most_clients=idle + ACTIVE, **SETTINGS) as scene:
            scene.clients(idle)
            active, turns = scene.clients(ACTIVE), itertools.count()

            def play(most):
                for turn in itertools.islice(turns, most):
                    active[turn % ACTIVE].ask_of(turn % origins)
                scene.program.rest()
            play(origins)  # opens their connections
            play(COUNTED)
            profile = instructions.Counter(folder, scene.program).count("scale", play, COUNTED)
            return {"origins": origins, "idle": idle, "all": round(profile.total() / COUNTED), "program": round(profile.of_program() / COUNTED)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", type=pathlib.Path, default=harness.carpool.PROGRAM)
    parser.add_argument("--origins", type=int, default=STEPS[-1], help="at most")
    parser.add_argument("--clients", type=int, default=STEPS[-1], help="idle ones, at most")
    parser.add_argument("--json", help="stores the figures")
    wanted = parser.parse_args()
    harness.carpool.PROGRAM = wanted.program.resolve()
    about, rows = conditions.begin(valgrind=conditions.version("valgrind", "--version")), []
    for case in cases(wanted.origins, wanted.clients):
        rows.append(count(*case))
        print("%(origins)d origins, %(idle)d idle clients: %(program)d instructions of the program, %(all)d of all" % rows[-1], flush=True)
    print(report_scale.instructions(report_scale.Scale({"conditions": about, "active": ACTIVE, "rows": rows})))
    if wanted.json:
        conditions.write(wanted.json, about, rows, active=ACTIVE)


if __name__ == "__main__":
    main()
