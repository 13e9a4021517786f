#!/usr/bin/env python3
"""Makes a corpus of a file of escaped inputs, one a line: seeds.py FILE FOLDER [--bare]. Unless it is bare, two bytes in
front choose the limits and the cuts; each input goes in with usual ones, and with those that compare two cuts."""
import codecs
import hashlib
import pathlib
import sys


def main(source, folder, *more):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    fronts = [b""] if "--bare" in more else [b"\x01\x07", b"\x08\x07"]
    for line in pathlib.Path(source).read_text().splitlines():
        if line.startswith("#"):
            continue
        for front in fronts:
            data = front + codecs.escape_decode(line.encode())[0]
            (folder / hashlib.sha1(data).hexdigest()).write_bytes(data)


if __name__ == "__main__":
    main(*sys.argv[1:])
