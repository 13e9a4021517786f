"""Runs the sessions in the documentation: blocks marked `console`, in which each command follows a dollar sign. Every line shown
has to be in the real output, in that order; numbers and their units may differ, and `…` stands for lines or ends of lines left out."""
import os
import pathlib
import re
import subprocess

from .carpool import PROGRAM, ROOT
from .wait import until

NUMBER = re.compile(r"\d[\d.,:]*( ?(ns|us|µs|ms|s|min|h|%|B|KiB|MiB|GiB))?(?![\w])|\d[\d.]*")


def section(page, heading):
    """Returns the text below a heading, up to the next one of its level or above."""
    level, found, fenced = 0, [], False
    for line in (ROOT / page).read_text().splitlines(keepends=True):
        title = None if fenced else re.fullmatch(r"(#+) (.*)\n?", line)
        fenced ^= line.startswith("```")
        if title and level and len(title.group(1)) <= level:
            break
        if level:
            found.append(line)
        elif title and title.group(2) == heading:
            level = len(title.group(1))
    assert level, "%s has no heading %r" % (page, heading)
    return "".join(found)


def blocks(page, heading, language):
    return re.findall(r"^```%s\n(.*?)^```" % language, section(page, heading), re.M | re.S)


def sessions(page, heading):
    """Yields (command, lines shown)."""
    for block in blocks(page, heading, "console"):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, *shown = part.rstrip("\n").split("\n")
            yield command, shown


def shape(line):
    return " ".join(NUMBER.sub("#", line).split()).replace("# #", "#")


def missing(shown, real):
    """Returns the first shown line that the output does not have, or None."""
    rest = iter([shape(line) for line in real.splitlines()])
    for line in shown:
        if line.strip() == "…":
            continue
        want = shape(line)
        whole = not want.endswith("…")
        if not any(have == want if whole else have.startswith(want.rstrip("… ")) for have in rest):
            return line
    return None


class Reader:
    """A reader of a page who has a running carpool: the addresses of the page are replaced by those of the test."""

    def __init__(self, carpool):
        self.carpool = carpool
        bin_ = carpool.folder / "bin"
        bin_.mkdir(exist_ok=True)
        if not (bin_ / "carpool").exists():
            os.symlink(PROGRAM, bin_ / "carpool")
        (carpool.folder / "carpool.toml").write_text(carpool.config.read_text())
        plain = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
        self.environment = {**plain, "PATH": "%s:%s:/usr/local/go/bin" % (bin_, os.environ["PATH"])}

    def real(self, text):
        return (text.replace("127.0.0.1:3128", "%s:%d" % self.carpool.address)
                .replace("127.0.0.1:9901", "%s:%d" % self.carpool.admin_address))

    def run(self, command, **environment):
        """Returns what a terminal would show."""
        (self.carpool.folder / "carpool.log").write_text("\n".join(self.carpool.output) + "\n")
        done = subprocess.run(["bash", "-c", self.real(command)], cwd=self.carpool.folder, env={**self.environment, **environment},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
        return done.stdout

    def follow(self, page, heading):
        """Runs each session of a section; CARPOOL_SHOW_SESSIONS=FILE keeps the real outputs for the page."""
        found = list(sessions(page, heading))
        assert found, "%s has no session under %r" % (page, heading)
        for command, shown in found:
            real = self.run(command)
            if keep := os.environ.get("CARPOOL_SHOW_SESSIONS"):
                with pathlib.Path(keep).open("a") as file:
                    file.write("## %s\n$ %s\n%s\n" % (heading, command, real))
            else:
                line = missing(shown, real)
                if line is not None and ("carpool.log" in command or command.startswith("carpool connections")):
                    # A line of the log, or a loop's part of the response, may come later than the state that a test waits for.
                    until(lambda: missing(shown, self.run(command)) is None, what="%s: %r: %r" % (page, command, line))
                    continue
                assert line is None, "%s: %r: no line %r in\n%s" % (page, command, line, real)
