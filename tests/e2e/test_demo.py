"""The demo as a user runs it: words on its standard input break it and repair it, and its lines show both."""
import re
import subprocess

import pytest
from harness.carpool import PROGRAM
from harness.wait import until

LINE = re.compile(r"requests (\d+)/s  failed (\d+)/s  waiting (\d+)  \|  reuse ([\d.]+) %  opened (\d+)  saved (\d+) connections, (\d+) TLS handshakes\n")


class Demo:
    def __init__(self):
        self.process = subprocess.Popen([PROGRAM, "--demo"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.greeting = []

    def type(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def see(self, wanted):
        """Reads lines until `wanted` accepts the numbers of one; or, a text, until one contains it."""
        for line in self.process.stdout:
            self.greeting.append(line)
            found = LINE.fullmatch(line)
            if isinstance(wanted, str):
                if wanted in line:
                    return line
            elif found and wanted(*[float(n) for n in found.groups()]):
                return line
        raise AssertionError("the demo has ended")


@pytest.fixture
def demo():
    one = Demo()
    yield one
    one.process.terminate()
    assert one.process.wait(20) == 0


def works(rate, failed, waiting, *_):
    return rate > 0 and failed == 0 and waiting == 0


def test_it_says_what_reuse_saves_and_that_the_admin_address_is_a_page(demo):
    demo.see(lambda rate, failed, waiting, reuse, opened, saved, handshakes: saved > opened > 0 and saved > handshakes > 0 and failed == 0)
    assert any("a live page: open it in a browser" in line for line in demo.greeting)


def test_a_killed_origin_fails_and_is_back_after_start(demo):
    demo.see(works)
    demo.type("kill")
    demo.see("> the origin is dead")
    demo.see(lambda rate, failed, *_: failed > 0)
    demo.type("start")
    demo.see("> the origin is back")
    demo.see(works)


@pytest.mark.parametrize("word", ["pause", "drain"])
def test_a_paused_pool_makes_requests_wait_until_it_is_resumed(demo, word):
    demo.see(works)
    demo.type(word)
    demo.see("> %s: done for all three origins" % word)
    demo.see(lambda rate, failed, waiting, *_: waiting > 0)
    demo.type("resume")
    demo.see("> resume: done")
    demo.see(works)


def test_replaced_connections_fail_no_request(demo):
    opened = float(LINE.fullmatch(demo.see(works))[5])
    demo.type("reconnect")
    demo.see("> reconnect: done")
    demo.see(lambda rate, failed, waiting, reuse, now, *_: now > opened and failed == 0)


def test_another_word_is_answered_with_those_it_knows(demo):
    demo.type("x" * 500)
    demo.type("  sudo \r")
    demo.see("> `sudo` is none of kill, start, pause, resume, drain, reconnect")


def test_without_an_input_it_runs(demo):
    demo.process.stdin.close()
    demo.see(works)
    until(lambda: demo.see(works), what="another line")
