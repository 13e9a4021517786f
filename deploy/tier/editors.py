"""Validates configurations as an editor does, with the schema that `carpool --print-schema` prints: taplo on config.toml and on
every toml block of the documentation, and on one file with two mistakes, which it has to find."""
import pathlib
import re
import shutil
import subprocess
import tempfile

import tools
from judge import Judge
from shell import PROGRAM, ROOT

WRONG = '[pool]\nsize = "many"\nsise = 2\n'


def examples():
    """Yields (name, text) of config.toml and of every block."""
    yield "config.toml", (ROOT / "config.toml").read_text()
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for number, text in enumerate(re.findall(r"^```toml\n(.*?)^```", page.read_text(), re.M | re.S), 1):
            yield "%s-%d.toml" % (page.stem, number), text


def taplo(log):
    """Returns taplo's path, or None and the reason."""
    installed = tools.FOLDER / "node_modules" / ".bin" / "taplo"
    if shutil.which("taplo") or installed.exists():
        return shutil.which("taplo") or str(installed), ""
    if not shutil.which("npm"):
        return None, "taplo is not installed, and there is no npm to install it"
    tools.FOLDER.mkdir(parents=True, exist_ok=True)
    log.run("npm", "install", "--silent", "--no-fund", "--no-audit", "--prefix", tools.FOLDER, "@taplo/cli", limit=120)
    return (str(installed), "") if installed.exists() else (None, "taplo cannot be installed")


def editors(log, full):
    judge = Judge(log)
    program, why = taplo(log)
    if not program:
        judge.skip(why)
        return judge.outcome()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        schema = folder / "carpool.schema.json"
        schema.write_text(subprocess.run([PROGRAM, "--print-schema"], capture_output=True, text=True, check=True).stdout)
        lint = [program, "lint", "--schema", schema.as_uri()]
        paths = []
        for file, text in examples():
            paths.append(folder / file)
            paths[-1].write_text(text)
        if log.run(*lint, *paths) == 0:
            judge.take(True, "all")
        else:  # which of them
            for path in paths:
                judge.take(log.run(*lint, path) == 0, path.name)
        wrong = folder / "wrong.toml"
        wrong.write_text(WRONG)
        judge.take(log.run(*lint, wrong) != 0 and bool(log.tail("sise")) and bool(log.tail('"many" is not')), "finds two mistakes")
        log.say("%d files" % len(paths))
    return judge.outcome()
