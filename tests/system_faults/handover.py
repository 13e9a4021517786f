"""Faults during a hand-over, in the old process or in the new one: one of them serves afterwards, and no request is lost."""
import dataclasses
import errno as e
import threading

import mix
import oracles
from cases import ERRORS, PASSING, Case
from control import Control
from harness.wait import until

MOST = 40  # calls of one function: the requests beside a hand-over make more
ENDS = 10  # seconds in which one of the two has ended
# The calls that a hand-over makes; those of the requests beside it are left alone, as they are swept by themselves.
LOCAL = {"recv_local": PASSING, "send_local": (*PASSING, e.ENOBUFS), "bind": (e.EADDRINUSE,),
         "listen": (e.EADDRINUSE,), "eventfd": (e.EMFILE,)}
TOLD = (*LOCAL, "socket", "connect", "epoll_add", "open", "read_file", "thread")


class Requests(threading.Thread):
    """Clients that each connect for one request."""

    def __init__(self, scene, program):
        super().__init__(daemon=True)
        self.scene, self.program, self.results, self.over = scene, program, [], False

    def run(self):
        def one():
            with mix.h1_client(self.program) as client:
                yield mix.over_h1(client, "meanwhile", self.scene.plain.url)
        while not self.over:
            self.results += mix.guarded("meanwhile", one)


@dataclasses.dataclass(frozen=True)
class HandoverCase:
    who: str
    fault: Case

    def __str__(self):
        return "hand-over, %s process: %s" % (self.who, self.fault)


class Handover:
    def __init__(self, scene):
        self.scene = scene
        folder = scene.folder / "successor"
        folder.mkdir()
        self.controls = {"old": scene.control, "new": Control(folder)}
        self.taken = self.kept = 0

    def pair(self):
        old = self.scene.prepare(handover={"address": "unix:%s/h.sock" % self.scene.folder, "warm_rate": 1000})
        old.start()
        oracles.serves(self.scene)
        new = self.scene.prepare(self.controls["new"])
        new.config, new.address, new.admin_address = old.config, old.address, old.admin_address
        return old, new

    def hand_over(self, old, new):
        """Returns what clients observed meanwhile."""
        requests = Requests(self.scene, old)
        requests.start()
        try:
            new.start()
        except AssertionError:  # it ended
            pass
        finally:
            for control in self.controls.values():
                control.disarm()
        until(lambda: not (old.alive() and new.alive()), ENDS, "the end of one of the two")
        requests.over = True
        requests.join()
        return requests.results

    def every(self):
        before = {who: control.calls() for who, control in self.controls.items()}
        old, new = self.pair()
        began = self.controls["old"].calls()
        self.hand_over(old, new)
        new.stop()
        found = []
        for who, control in self.controls.items():
            since = began if who == "old" else before["new"]
            now = control.calls()
            for function in TOLD:
                count = min(now[function] - since[function], MOST)
                found += [HandoverCase(who, Case(function, error, n, 1)) for error in {**ERRORS, **LOCAL}[function] for n in range(1, count + 1)]
        return found

    def play(self, case):
        fault = case.fault
        old, new = self.pair()
        self.controls[case.who].arm(fault.function, fault.error, fault.nth, fault.times)
        try:
            self.judge(old, new, self.hand_over(old, new), fault)
        except (oracles.Broken, OSError, AssertionError) as broken:
            return "%s: %s\nold: %s\nnew: %s" % (case, broken, old.tail(3)[-400:], new.tail(3)[-400:])
        finally:
            for program in (old, new):
                if program.alive():
                    program.process.kill()
                    program.process.wait()
        return None

    def judge(self, old, new, results, fault):
        wrong = [r for r in results if r.end == mix.WRONG]
        cut = [r for r in results if r.end == mix.CUT]
        # A fault may affect a client that connected at the same time.
        if wrong or len(cut) > (not fault.is_harmless()):
            raise oracles.Broken("; ".join("%s %s" % (r.end, r.detail) for r in (wrong + cut)[:5]))
        if not old.alive():
            self.taken += 1
            serving, status = new, old.process.returncode
        else:
            self.kept += 1
            serving, status = old, 0
        if status != 0 or old.alive() and new.process.returncode not in (0, 1, 2, 3):
            raise oracles.Broken("exit status %s, %s" % (old.process.returncode, new.process.returncode))
        self.scene.program = serving
        oracles.lives(self.scene)
        oracles.serves(self.scene)
        oracles.balances(self.scene)
        serving.stop()
