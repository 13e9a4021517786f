"""Every configuration in the documentation is valid."""
import json
import pathlib
import re
import subprocess

import pytest

from harness.carpool import PROGRAM

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "migration.md"
OTHERS = PAGE.read_text().split("\n## An earlier carpool")[0]
BLOCKS = re.findall(r"^## (.*?)$.*?^```toml\n(.*?)^```", OTHERS, re.M | re.S)
KEYS = sorted({key for row in re.findall(r"^\| .*\|$", OTHERS, re.M)
               for key in re.findall(r"`([a-z_.]+)`", row.split(" | ")[1])})


def known_keys():
    schema = json.loads(subprocess.run([PROGRAM, "--print-schema"], capture_output=True, check=True).stdout)

    def walk(node, path):
        node = node.get("items", node)
        for name, below in node.get("properties", {}).items():
            yield path + name
            yield from walk(below, path + name + ".")
    return set(walk(schema, ""))


def test_every_part_of_the_migration_page_has_a_file():
    assert len(BLOCKS) == len(re.findall(r"^## ", OTHERS, re.M)) == 5


@pytest.mark.parametrize("name,text", BLOCKS, ids=[name.split(":")[0] for name, _ in BLOCKS])
def test_a_migrated_file_is_accepted(name, text, tmp_path):
    path = tmp_path / "config.toml"
    path.write_text(text)
    done = subprocess.run([PROGRAM, "--check", "--config", path], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_key_of_the_tables_exists():
    assert len(KEYS) > 20
    assert set(KEYS) <= known_keys()
