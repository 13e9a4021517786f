"""`carpool top` in a terminal: its frames, its updates, its end, and the terminal's state afterwards."""
import re
import signal
import subprocess

import pytest

from harness.carpool import PROGRAM
from harness.origin import Gate
from harness.ports import free_port
from harness.terminal import Terminal

ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?25h\x1b[?1049l"


@pytest.fixture
def top():
    """top(carpool, rows, columns) -> `carpool top` of that instance, in a terminal of its own."""
    started = []

    def start(c, rows=24, columns=100):
        started.append(Terminal([PROGRAM, "top", "--admin", "%s:%d" % c.admin_address], rows, columns))
        return started[-1]
    yield start
    for one in started:
        one.close()


def use(c, o, count=1):
    with c.client() as client:
        for _ in range(count):
            assert client.get(o.url + "/").status == 200


def shows(o, borrows):
    return lambda frame: re.search(r"^%s .* %d$" % (re.escape(o.url), borrows), frame, re.M)


def ended_well(terminal):
    status, as_before = terminal.end()
    terminal.until_written(LEAVE, "the cursor's return and the other screen's")
    return status == 0 and as_before and terminal.written.endswith(LEAVE)


def test_it_draws_every_pool_and_then_what_changes(origin, carpool, top):
    o, c = origin(), carpool()
    use(c, o, 3)
    t = top(c)
    frame = t.until_frame(shows(o, 3), "the pool").split("\n")
    assert frame[0].startswith("carpool at 127.0.0.1:") and "1 origins, 1 open, 0 busy, 0 waiting" in frame[0]
    assert frame[2].split()[:4] == ["ORIGIN", "BUSY", "WAITING", "RATE"] and len(frame) == 4
    assert t.written.startswith(ENTER + b"\x1b[?25l") and b"\n" not in t.written.split(b"\x1b[J")[-2].rsplit(b"\r\n", 1)[1]
    use(c, o, 4)
    t.until_frame(shows(o, 7), "four more")
    row = next(f for f in t.frames() if shows(o, 7)(f)).split("\n")[3].split()  # a second later the rate is zero
    assert row[3].endswith("/s") and float(row[3][:-2]) > 0, "requests a second"
    t.press(b"q")
    assert ended_well(t), t.written[-300:]


def test_those_with_most_to_do_come_first(origin, carpool, top):
    gate = Gate()

    def held(exchange):
        gate.enter()
        exchange.reply()
    busy, idle, c = origin(held), origin(), carpool()
    use(c, idle, 20)
    with c.client() as client:
        client.ask("GET", busy.url + "/")
        t = top(c)
        frame = t.until_frame(lambda f: " 1 busy" in f, "the borrowed one").split("\n")
        assert frame[3].startswith(busy.url) and frame[4].startswith(idle.url)
        gate.open()
        assert client.response().status == 200
    t.until_frame(lambda f: " 0 busy" in f, "its return")


def test_an_origin_that_fails_looks_like_it_before_all_others(origin, carpool, top):
    o, dead = origin(), "http://127.0.0.1:%d" % free_port()
    c = carpool(pool={"connect_timeout": "2s"})
    use(c, o, 20)
    with c.client() as client:
        assert client.get(dead + "/").status == 502
    t = top(c, columns=80)
    frame = t.until_frame(lambda f: "2 origins, 1 failing, " in f, "the failing one").split("\n")
    assert frame[2].split()[:2] == ["ORIGIN", "STATE"] and frame[3].split()[:3] == [dead, "failing", "(refused)"], frame
    assert frame[4].startswith(o.url)
    t.press(b"q")
    assert ended_well(t)
    for command in (["pools"], ["top", "--once"]):
        shown = subprocess.run([PROGRAM, *command, "--admin", "%s:%d" % c.admin_address], capture_output=True, text=True, timeout=20).stdout
        states = {line.split()[0]: line.split(maxsplit=11)[11] for line in shown.splitlines()}
        assert states[dead].endswith("failing (refused)") and states[o.url].split()[-1] == "-", shown
    failing = c.pool(dead)["failing"]
    assert (failing["requests"], failing["failed"], failing["reason"]) == (1, 1, "refused") and c.pool(o.url)["failing"] is None


@pytest.mark.parametrize("columns", [80, 60])
def test_a_narrow_terminal_has_fewer_columns_and_none_is_cut(origin, carpool, top, columns):
    long = "http://a.long.name.of.an.origin.inside.the.cluster.example:8080"
    o, c = origin(), carpool(origin=[{"uri": long, "addresses": ["127.0.0.1:%d" % free_port()]}])
    use(c, o, 3)
    with c.client() as client:
        client.get(long + "/")
    frame = top(c, columns=columns).until_frame(lambda f: "2 origins, 1 failing, 1 open" in f, "both").split("\n")
    head = frame[2].split()
    whole = ["ORIGIN", "STATE", "BUSY", "WAITING", "RATE", "OPEN", "SIZE", "IDLE", "DIALING", "LONGEST", "PEAK", "BORROWS"]
    assert len(head) >= 6 and head == whole[:len(head)], frame
    assert all(len(line) <= columns for line in frame) and "waiting" in frame[0], frame
    assert frame[3].split()[0].endswith("+") and "failing" in frame[3], frame


def test_it_survives_a_resize(origin, carpool, top):
    origins, c = [origin() for _ in range(6)], carpool()
    for o in origins:
        use(c, o)
    t = top(c, rows=24, columns=120)
    assert "BORROWS" in t.until_frame(lambda f: f.count("\n") == 8, "six pools under two lines and a head")
    t.size(6, 40)
    frame = t.until_frame(lambda f: f.count("\n") == 5, "what fits").split("\n")
    assert all(len(line) <= 40 for line in frame) and "BUSY" in frame[2], frame
    assert [line.split()[0][-1] for line in frame[3:]] == ["+"] * 3, "an origin longer than half the width is cut, its figures are not"
    t.size(30, 120)
    assert "BORROWS" in t.until_frame(lambda f: f.count("\n") == 8, "all of them again")
    t.size(1, 1)
    t.until_frame(lambda f: len(f) == 1, "one character")
    t.press(b"q")
    assert ended_well(t)


@pytest.mark.parametrize("how", ["q", "ctrl-c", "TERM", "HUP", "INT"])
def test_it_leaves_the_terminal_as_it_was(origin, carpool, top, how):
    o, c = origin(), carpool()
    use(c, o)
    t = top(c)
    t.until_frame(shows(o, 1), "the pool")
    t.press(b"\x1b[A\x1bOq x")  # an arrow and other keys do not end it
    frames = len(t.frames())
    t.until_frame(lambda f: len(t.frames()) > frames + 1, "another look")
    if how in ("q", "ctrl-c"):
        t.press({"q": b"q", "ctrl-c": b"\x03"}[how])
    else:
        t.process.send_signal(getattr(signal, "SIG" + how))
    assert ended_well(t), (how, t.written[-300:])


def test_a_lost_instance_is_said_and_one_that_comes_back_is_shown(origin, carpool, top):
    o, c = origin(), carpool()
    use(c, o, 2)
    t = top(c)
    t.until_frame(shows(o, 2), "the pool")
    c.stop()
    frame = t.until_frame(lambda f: "Connection refused; the data is" in f, "that nobody answers")
    assert "no answer from" in frame and o.url in frame
    c.start()
    use(c, o, 5)
    assert "no answer" not in t.until_frame(shows(o, 5), "the new one")
    t.press(b"q")
    assert ended_well(t)


def test_an_instance_that_hangs_is_said_too(carpool, top):
    c = carpool()
    t = top(c)
    t.until_frame(lambda f: "0 origins" in f, "nothing")
    c.signal(signal.SIGSTOP)
    try:
        t.until_frame(lambda f: "the response timed out; the data is" in f, "that it does not answer")
        t.press(b"q")
        assert ended_well(t)
    finally:
        c.signal(signal.SIGCONT)


def test_nobody_there_is_said_before_the_screen_is_taken(carpool):
    c = carpool(start=False)
    t = Terminal([PROGRAM, "top", "--admin", "%s:%d" % c.admin_address])
    status, as_before = t.end()
    assert status == 2 and as_before
    t.until_written(b"no answer from", "why")
    assert ENTER not in t.written
    t.close()
