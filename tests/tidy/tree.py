"""The files a rule looks at: tracked ones and new ones that git does not ignore, each read once."""
import dataclasses
import functools
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROOMS = ("base", "metrics", "exec", "pool", "proxy")


@dataclasses.dataclass(frozen=True)
class Offence:
    path: str
    line: int
    what: str


class Tree:
    def __init__(self, root=ROOT):
        self.root = root
        listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=root,
                                capture_output=True, text=True, check=True).stdout
        self.files = sorted(p for p in listed.split("\0") if p and (root / p).is_file())

    @functools.cache
    def lines(self, path):
        return (self.root / path).read_text(errors="replace").splitlines()

    def with_suffix(self, *suffixes):
        return [p for p in self.files if p.endswith(suffixes)]

    def product(self):
        """C++ of the program itself, without tests."""
        return [p for p in self.with_suffix(".h", ".cc") if p.split("/")[0] in ROOMS]

    def grep(self, paths, pattern):
        """(path, line number, match) of every line where the compiled pattern occurs."""
        for path in paths:
            for number, line in enumerate(self.lines(path), 1):
                match = pattern.search(line)
                if match:
                    yield path, number, match
