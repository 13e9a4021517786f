#!/usr/bin/env python3
"""Writes helm/carpool/values.schema.json: the chart's own values from values.base.json, `config` from the program.

usage: schema.py PROGRAM      (prints; the test of the chart compares it with what is in the tree)
"""
import json
import pathlib
import subprocess
import sys

import readme

HERE = pathlib.Path(__file__).resolve().parent


def closed(node):
    """Every object that lists its properties takes no others, so a misspelt value is an error."""
    if isinstance(node, dict):
        if "properties" in node:
            node.setdefault("type", "object")
            node.setdefault("additionalProperties", False)
        for child in node.values():
            closed(child)
    return node


def demand(node, whole, path):
    """Requires each of the values on the path, because a value of null removes the default that the templates use. Returns False
    if the path leads into a free table."""
    node = whole["definitions"][node["$ref"].rsplit("/", 1)[1]] if "$ref" in node else node
    if path and not (path[0] in node.get("properties", {}) and demand(node["properties"][path[0]], whole, path[1:])):
        return False
    if path:
        node["required"] = sorted({*node.get("required", ()), path[0]})
    return True


def defaults():
    """Returns the paths of the values that have a default which is not empty."""
    told = ((path.split("."), default) for path, default, _ in readme.rows((readme.CHART / "values.yaml").read_text()))
    return [path for path, default in told if default and default[0] not in "[{" and default != '""']


def config_schema(program):
    schema = json.loads(subprocess.run([program, "--print-schema"], capture_output=True, text=True, check=True).stdout)
    for word in ("$schema", "title"):
        schema.pop(word, None)
    schema["required"] = ["listen"]  # without one, the templates would not know the port
    return schema


def schema(program):
    whole = closed(json.loads((HERE / "values.base.json").read_text()))
    whole["properties"]["config"] = config_schema(program)
    for path in [["config"], *defaults()]:
        demand(whole, whole, path)
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.stdout.write(schema(sys.argv[1]))
