"""Every configuration in the documentation is valid."""
import json
import pathlib
import re
import subprocess

import pytest

from harness.carpool import PROGRAM

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ("migration.md", "migration-java.md", "leaving.md")
TEXTS = {page: (ROOT / "docs" / page).read_text() for page in PAGES}


def migrated():
    """Yields (name, configuration) of each section that has one."""
    for page, text in TEXTS.items():
        for part in re.split(r"^## ", text, flags=re.M)[1:]:
            for block in re.findall(r"^```toml\n(.*?)^```", part, re.M | re.S):
                yield "%s: %s" % (page, part.split("\n")[0]), block


BLOCKS = list(migrated())
KEYS = sorted({key for text in TEXTS.values() for row in re.findall(r"^\| .*\|$", text, re.M)
               for key in re.findall(r"`([a-z_]+\.[a-z_.]+)`", row.split(" | ")[1])})
# Every block of these pages is a whole configuration; blocks of reference pages show single tables.
WHOLE = [("%s-%d" % (page.stem, n), text) for page in sorted((ROOT / "docs").glob("*.md")) if page.stem in
         ("quickstart", "applications", "incidents", "tuning", "leaving", "unix-sockets", "parent-proxy", "grpc", "configuration", "credentials",
          "tracing", "admin")
         for n, text in enumerate(re.findall(r"^```toml\n(.*?)^```", page.read_text(), re.M | re.S))]


def known_keys():
    schema = json.loads(subprocess.run([PROGRAM, "--print-schema"], capture_output=True, check=True).stdout)

    def walk(node, path):
        node = node.get("items", node)
        for name, below in node.get("properties", {}).items():
            yield path + name
            yield from walk(below, path + name + ".")
    return set(walk(schema, ""))


def stand_in(named, folder, pki):
    """Returns a file with a content of the kind that the name promises."""
    path = folder / named.replace("/", "-")
    ending = named.rsplit("/")[-1].rpartition(".")[2]
    known = {"crt": pki.server, "key": pki.server_key, "pem": pki.ca}
    path.write_text(pathlib.Path(known[ending]).read_text() if ending in known
                    else "basic app %s\n" % ("0" * 64) if ending == "credentials" else "user:secret\n")
    path.chmod(0o600)
    return path


def test_every_proxy_and_pool_has_a_file():
    assert len(BLOCKS) == 3 + 2 + 2


@pytest.mark.parametrize("name,text", BLOCKS + WHOLE, ids=[name for name, _ in BLOCKS + WHOLE])
def test_a_file_of_the_documentation_is_accepted(name, text, tmp_path, pki):
    path = tmp_path / "config.toml"
    text = text.replace('"unix:/run/carpool/', '"unix:%s/' % tmp_path)  # the package makes the folder
    path.write_text(re.sub(r'"((/etc/carpool|/run/secrets)/[^"]+)"', lambda named: '"%s"' % stand_in(named[1], tmp_path, pki), text))
    done = subprocess.run([PROGRAM, "--check", "--config", path], capture_output=True, text=True, env={"API_KEY": "key"})
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_key_of_the_tables_exists():
    assert len(KEYS) > 20
    assert set(KEYS) <= known_keys()
