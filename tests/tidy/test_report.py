"""The tables of tests/bench: a bound that is not reached is named."""
import json

import measured  # noqa: F401: finds tests/bench
import conditions
import report_memory
import report_scale
import report_unix

ABOUT = {"date": "2026-11-27 12:00", "cores": 2, "processor": "a processor", "kernel": "6.1", "load": [0.1, 0.2], "versions": {}}


def lines(table):
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in table.splitlines()[2:]]


def unix(client, both):
    rounds = [{"tcp": tcp, "client": client * tcp, "origin": tcp, "both": both * tcp} for tcp in (10.0, 11.0, 12.0)]
    return report_unix.Unix({"conditions": ABOUT, "requests": 1000, "rows": [{"workers": w, "rounds": rounds} for w in (1, 2)]})


def test_a_ratio_of_unix_sockets_at_its_bound_reaches_it():
    tcp, client, origin, both = lines(report_unix.forms(unix(0.85, 0.56)))
    assert tcp[:3] == ["TCP on both sides", "11.0 / 11.0", "1.00"]
    assert client[2:] == ["0.85 (0.85–0.85) / 0.85 (0.85–0.85)", "0.85", "reached"]
    assert origin[3] == "–"
    assert both[3:] == ["0.55", "**not reached**"]


def test_a_ratio_that_one_count_of_workers_misses_is_named():
    of = unix(0.85, 0.50)
    of.rounds[2] = [{**row, "client": row["tcp"]} for row in of.rounds[2]]
    assert lines(report_unix.forms(of))[1][-1] == "**not reached with 2 workers**"


def scale(*rows):
    return report_scale.Scale({"conditions": ABOUT, "active": 64, "rows": [dict(zip(("origins", "idle", "program", "all"), row)) for row in rows]})


def test_growth_is_that_of_the_count_that_grows_more():
    base, origins, idle = lines(report_scale.instructions(scale((1, 0, 1000, 2000), (100, 0, 1100, 2000), (1, 10000, 1000, 2300))))
    assert base[:5] == ["1", "0", "1,000", "2,000", "1.00"]
    assert origins[4:] == ["1.10", "1.10", "reached"]
    assert idle[1] == "10,000" and idle[4:] == ["1.15", "1.10", "**not reached**"]


def memory(**more):
    each = {key: {"resident": 1.0, "allocated": 0.5} for key in report_memory.TARGETS if key != "rest"}
    return report_memory.Memory({"conditions": ABOUT, "clients": 10000, "origins": 1000, "rows": [{"workers": 1, "rest": 9.5, **each, **more}]})


def test_memory_beyond_its_bound_is_named():
    rows = lines(report_memory.targets(memory(plain={"resident": 6.2, "allocated": 5.0})))
    assert rows[0] == ["at rest, with a bundle of certificate authorities, MiB", "10.0", "9.5", "", "reached"]
    assert rows[1][0] == "an idle client, of 10,000, KiB" and rows[1][-1] == "**not reached**"  # 1 KiB of 0.6
    assert rows[2][1:] == ["6.0", "6.2", "5.0", "**not reached**"] and rows[3][-1] == "reached"


def test_results_are_stored_with_the_load_at_their_end(tmp_path):
    about = {**ABOUT, "load": [0.1]}
    conditions.write(tmp_path / "unix.json", about, [{"workers": 1, "rounds": []}], requests=5)
    stored = json.loads((tmp_path / "unix.json").read_text())
    assert len(stored["conditions"]["load"]) == 2 and stored["requests"] == 5 and stored["rows"] == [{"workers": 1, "rounds": []}]
