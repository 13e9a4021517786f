"""Which files clang's analysis leaves to the ASan build."""
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "deploy/tier"))

import lint  # noqa: E402


def built(monkeypatch, root, age):
    """Makes a tree of one file, its unit and the unit's object, which is older than the file by `age` seconds; the build
    also has a file for its precompiled headers."""
    monkeypatch.setattr(lint, "ROOT", root)
    folder = root / "build/asan"
    (folder / "x").mkdir(parents=True)
    source, unit, header, precompiled = root / "a.cc", folder / "x/unity_0_cxx.cxx", folder / "x/cmake_pch.hxx.cxx", folder / "x/cmake_pch.hxx.pch"
    source.write_text("int a;\n")
    unit.write_text('#include "%s"\n' % source)
    for path in (header, precompiled):
        path.write_text("/* made by the build */\n")
    entries = []
    for path, made in ((unit, "x/unit.o"), (header, "x/cmake_pch.hxx.pch")):
        (folder / made).write_text("")
        entries.append({"file": str(path), "command": "clang++ -include-pch %s -o %s -c %s" % (precompiled, made, path)})
    os.utime(folder / "x/unit.o", (source.stat().st_mtime - age,) * 2)
    (folder / "compile_commands.json").write_text(json.dumps(entries))
    return unit


def test_a_file_with_a_current_object_is_left_to_that_build(monkeypatch, tmp_path):
    built(monkeypatch, tmp_path, 0)
    assert lint.asan_units() == ({"a.cc"}, {})


def test_a_unit_whose_object_is_older_than_its_file_is_parsed(monkeypatch, tmp_path):
    unit = built(monkeypatch, tmp_path, 5)
    compiled, units = lint.asan_units()
    assert compiled == set() and list(units) == [str(unit).removeprefix("%s/" % tmp_path)]
