"""The conditions of a measurement, stored beside its figures: machine, load, versions, date; and how results are stored."""
import datetime
import json
import os
import pathlib
import platform
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = "tests/bench/results"


def load():
    return round(os.getloadavg()[0], 1)


def processor():
    found = re.search(r"^model name\s*:\s*(.+)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    return found.group(1) if found else platform.machine()


def version(*command):
    """The first number with a dot that the command prints, not behind a letter; "" without the command."""
    try:
        done = subprocess.run(command, cwd=ROOT, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except OSError:
        return ""
    found = re.search(r"(?<![A-Za-z\d.])\d+\.\d+[\w.]*", done.stdout)
    return found.group(0) if found else ""


def carpool():
    """Returns the project's version and the commit of the working tree."""
    text = (ROOT / "CMakeLists.txt").read_text()
    found = re.search(r"project\(carpool\s+VERSION\s+([\d.]+)", text)
    head = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, text=True, capture_output=True).stdout.strip()
    return (found.group(1) if found else "?") + (" (%s)" % head if head else "")


def begin(**versions):
    """Omits versions without a value."""
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M")
    return {"date": now, "cores": os.cpu_count(), "processor": processor(), "kernel": platform.release(), "load": [load()],
            "versions": {"carpool": carpool(), **{name: text for name, text in versions.items() if text}}}


def write(path, conditions, rows, **more):
    """Stores the conditions, now with the load at the end, and one row a line."""
    if len(conditions["load"]) == 1:
        conditions["load"].append(load())
    head = ",\n ".join('"%s": %s' % (name, json.dumps(value)) for name, value in {"conditions": conditions, **more}.items())
    lines = ",\n  ".join(json.dumps(row) for row in rows)
    pathlib.Path(path).write_text('{%s,\n "rows": [\n  %s\n ]}\n' % (head, lines))


def read(root, name):
    return json.loads((root / RESULTS / (name + ".json")).read_text())
