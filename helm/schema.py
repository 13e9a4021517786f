#!/usr/bin/env python3
"""Writes helm/carpool/values.schema.json: the chart's own values from values.base.json, `config` from the program.

usage: schema.py PROGRAM      (prints; the test of the chart compares it with what is in the tree)
"""
import json
import pathlib
import subprocess
import sys

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


def config_schema(program):
    schema = json.loads(subprocess.run([program, "--print-schema"], capture_output=True, text=True, check=True).stdout)
    for word in ("$schema", "title"):
        schema.pop(word, None)
    return schema


def schema(program):
    whole = closed(json.loads((HERE / "values.base.json").read_text()))
    whole["properties"]["config"] = config_schema(program)
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.stdout.write(schema(sys.argv[1]))
