"""The tables of tests/bench: a bound that is not reached is named."""
import json

import measured  # noqa: F401: finds tests/bench
import conditions
import profiles
import report_memory
import report_profiles
import report_scale
import report_tails
import report_unix
import tails

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


SAMPLES = """	ffffffff81a1 tcp_sendmsg+0x12 ([kernel.kallsyms])
	ffffffff81a2 __x64_sys_sendto+0x20 ([kernel.kallsyms])
	ffffffff81a3 entry_SYSCALL_64_after_hwframe+0x76 ([kernel.kallsyms])
	       f82ad __libc_send+0xd (/usr/lib/libc.so.6)

	ffffffff81b1 ep_poll+0x1 ([kernel.kallsyms])
	ffffffff81a3 entry_SYSCALL_64_after_hwframe+0x76 ([kernel.kallsyms])
	       f82ad epoll_pwait+0xd (/usr/lib/libc.so.6)

	ffffffff81c1 handle_mm_fault+0x1 ([kernel.kallsyms])
	ffffffff81c2 asm_exc_page_fault+0x1 ([kernel.kallsyms])
	        1234 parse+0x1 (/usr/sbin/proxy)

	        1234 parse+0x1 (/usr/sbin/proxy)

	        8bc7 memcpy+0x7 (/usr/lib/libc.so.6)
"""


def test_a_sample_belongs_to_its_system_call_or_to_the_code_that_executed():
    counts = profiles.places(SAMPLES)
    assert counts == {"send": 1, "epoll_wait": 1, "interrupts and faults": 1, "proxy": 1, "libc.so.6": 1}
    assert profiles.shares("proxy", counts)["own"] == 0.2


def phase(cpu, shares, **calls):
    return {"cpu": cpu, "shares": shares, "calls": calls}


def test_the_time_of_a_system_call_is_its_share_of_the_time_without_perf():
    one = phase(20.0, {"send": 0.5, "own": 0.25, "libcrypto.so.3": 0.1, "libc.so.6": 0.05, "accept": 0.1}, sendto=1.0, writev=1.0, accept4=0.5)
    stored = {"conditions": {**ABOUT, "rounds": 1}, "rows": [{"proxy": proxy, "scenario": "S1", "workers": 1, "rounds": [{"sat": cell, "rate": cell}]}
                                                             for proxy, cell in (("carpool", one), ("nginx", {**one, "cpu": 25.0}))]}
    of = report_profiles.Profiles(stored, {"rows": []})
    assert lines(report_profiles.section(of).split("saturation:\n\n")[1].split("\n\n")[0])[0] == [
        "carpool, 1", "20.0", "10.0 (2.00)", "0.0 (0.00)", "0.0 (0.00)", "2.0 (0.50)", "0.0", "5.0", "2.0", "1.0"]
    assert lines(report_profiles.summary(of))[0] == ["S1, saturation", "0.80", "0.56", "6.0", "7.5"]


SCHEDULED = """nginx    7 [000]   10.000100000:       sched:sched_wakeup: comm=a proxy pid=5 prio=120 target_cpu=001
swapper     0 [001]   10.000130000:       sched:sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a proxy next_pid=5 next_prio=120
a proxy     5 [001]   10.000170000:       sched:sched_switch: prev_comm=a proxy prev_pid=5 prev_prio=120 prev_state=R+ ==> next_comm=load next_pid=9 next_prio=120
load     9 [001]   10.000270000:       sched:sched_switch: prev_comm=load prev_pid=9 prev_prio=120 prev_state=S ==> next_comm=a proxy next_pid=5 next_prio=120
a proxy     5 [001]   10.000280000:       sched:sched_switch: prev_comm=a proxy prev_pid=5 prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120
"""


def test_a_turn_waits_until_its_thread_runs_and_while_another_runs_in_its_place():
    of = tails.turns(tails.events(SCHEDULED), lambda thread, name: {5: "proxy"}.get(thread, "client" if name in tails.CLIENTS else None))
    assert [round(value) for value in of["proxy"].waited] == [130] and [round(value) for value in of["proxy"].ran] == [50]
    assert of["client"].ran == []  # its turn began before the first event


def test_the_time_in_long_parts_of_turns_is_per_second():
    assert tails.parts([10.0, 999.0, 1000.0, 3000.0], 2.0) == {"p50": 1000.0, "p99": 3000.0, "p999": 3000.0, "longest": 3000.0, "long": 2000.0}


def test_the_row_of_a_tail_without_a_proxy_has_no_turns_of_one():
    party = {"turns": 5, "waited": {"p999": 300.0, "long": 1500.0}, "ran": {"p999": 50.0, "long": 0.0}}
    one = {"p50": 100.0, "p99": 200.0, "p999": 400.0, "client": party, "origin": party}
    of = report_tails.Tails({"conditions": {**ABOUT, "rounds": 1}, "rows": [{"proxy": proxy, "scenario": "S1", "workers": 1, "rounds": [cell]}
                                                                            for proxy, cell in (("direct", one), ("carpool", {**one, "proxy": party}))]})
    assert list(of.rows("S1")) == [["carpool, 1", "100", "200", "400", "300", "50", "1,500", "0", "1,500", "1,500"],
                                   ["no proxy", "100", "200", "400", "–", "–", "–", "–", "1,500", "1,500"]]
