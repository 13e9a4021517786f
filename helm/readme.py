#!/usr/bin/env python3
"""Writes helm/carpool/README.md from Chart.yaml and the comments of values.yaml: a comment that begins with `# --`
describes the key below it.

usage: readme.py      (prints; the test of the chart compares it with what is in the tree)
"""
import pathlib
import re
import sys

CHART = pathlib.Path(__file__).resolve().parent / "carpool"
KEY = re.compile(r"^( *)([A-Za-z][A-Za-z0-9]*):(?: (.*))?$")
WHOLE = ("config",)  # docs/configuration.md describes its keys

HEAD = """# carpool

{description}. Chart {version}, for Kubernetes {kubernetes} or later.

`helm/readme.py` generates this page from `values.yaml`. [docs/kubernetes.md](../../docs/kubernetes.md) describes how to use the chart, and
[docs/configuration.md](../../docs/configuration.md) every key of `config`.

| `mode` | what it installs | example |
|---|---|---|
| `sidecar` | carpool's ConfigMap; templates that an application's chart includes | [examples/sidecar](../examples/sidecar) |
| `inject` | a webhook that adds the sidecar to pods labelled `carpool.io/inject: "true"` | [examples/inject](../examples/inject) |
| `daemonset` | one carpool on every node | [examples/daemonset](../examples/daemonset) |

| value | default | |
|---|---|---|
"""


def rows(text):
    """(path, default, comment) of every key that has a comment or no keys below it."""
    lines, path, told = text.splitlines(), [], []
    for number, line in enumerate(lines):
        comment = re.match(r"^ *# ?(.*)$", line)
        if comment:
            begins = comment.group(1).startswith("-- ")
            told = [comment.group(1).removeprefix("-- ")] if begins else told + [comment.group(1)] if told else []
            continue
        key = KEY.match(line)
        if key:
            depth = len(key.group(1)) // 2
            path = path[:depth] + [key.group(2)]
            deeper = number + 1 < len(lines) and re.match(r"^ {%d}\S" % (2 * depth + 2), lines[number + 1])
            if path[0] in WHOLE and depth:
                continue
            if told or not deeper:
                yield ".".join(path), "" if deeper else key.group(3) or "", " ".join(told)
        told = []


def field(name):
    return re.search(r"^%s: \"?(.*?)\"?$" % name, (CHART / "Chart.yaml").read_text(), re.M).group(1)


def readme():
    text = HEAD.format(description=field("description"), version=field("version"), kubernetes=re.search(r"\d+\.\d+", field("kubeVersion")).group())
    for path, default, comment in rows((CHART / "values.yaml").read_text()):
        text += "| `%s` | %s | %s |\n" % (path, "`%s`" % default if default else "", comment.replace("|", "\\|"))
    return text


if __name__ == "__main__":
    sys.stdout.write(readme())
