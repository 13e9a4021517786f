"""Clocks that jump while requests run: no request is lost, no deadline passes that was not due, nothing waits forever."""
import threading

import mix
import oracles

HOUR, DAY = 3600, 86400
LITTLE = 1  # second: less than any deadline of these requests
SECOND = 10 ** 9
# After a jump of the steady clock every deadline and idle time has passed: connections may be closed, requests end with 504.
JUMPS = [("realtime", HOUR), ("realtime", -HOUR), ("realtime", 400 * DAY), ("realtime", -400 * DAY), ("realtime", 1), ("realtime", -1),
         ("monotonic", HOUR), ("monotonic", DAY), ("monotonic", 1), ("monotonic", -1), ("monotonic", -10)]


class Clocks:
    """One program per jump: a clock that went back continues from there."""

    def __init__(self, scene):
        self.scene, self.held = scene, []

    def play(self, jump):
        clock, seconds = jump
        control = self.scene.control
        control["realtime"] = control["monotonic"] = 0
        if clock == "monotonic" and seconds < 0:
            control["monotonic"] = HOUR * SECOND  # never before the system's start
        program = self.scene.start()
        try:
            self.jump(clock, seconds)
            program.stop()
        except (oracles.Broken, OSError, AssertionError) as broken:
            return "%s jumps by %d s: %s\n%s" % (clock, seconds, broken, program.tail(4))
        finally:
            control["realtime"] = control["monotonic"] = 0
            if program.alive():
                program.process.kill()
                program.process.wait()
        return None

    def jump(self, clock, seconds):
        """While a client is idle, one request runs and connections are idle, then once more before each kind of request."""
        oracles.serves(self.scene)
        running = threading.Thread(target=self.hold)
        with mix.h1_client(self.scene.program) as idle_client:
            first = mix.guarded("idle_client", lambda: [mix.over_h1(idle_client, "idle_client", self.scene.plain.url)])
            running.start()
            self.scene.gate.wait_for(1)
            self.scene.control[clock] += seconds * SECOND
            results = first + mix.run(self.scene)
            self.scene.gate.let(1)
            running.join()
            self.scene.control[clock] += seconds * SECOND
            oracles.serves(self.scene)
        bad = ["%s %s %s" % (r.kind, r.end, r.detail) for r in results + self.held
               if r.end == mix.WRONG or r.end != mix.OK and (clock == "realtime" or abs(seconds) <= LITTLE)]
        # A certificate that is not valid at that time is a reason.
        if bad and abs(seconds) < DAY:
            raise oracles.Broken("; ".join(bad))
        oracles.lives(self.scene)
        oracles.balances(self.scene)

    def hold(self):
        with mix.h1_client(self.scene.program) as client:
            self.held = mix.guarded("held", lambda: [mix.over_h1(client, "held", self.scene.plain.url)])
