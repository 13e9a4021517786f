"""The state once a fault has ended: the program runs, serves every kind of request, and its ledger balances."""
import time

import mix

RECOVERY = 5  # seconds


class Broken(Exception):
    pass


def within(look, seconds=RECOVERY):
    """Returns the last complaint of look(); None once it has none."""
    end = time.monotonic() + seconds
    while (complaint := look()) and time.monotonic() < end:
        pass
    return complaint


def serves(scene, rounds=1):
    """Every request of the mix succeeds again within RECOVERY, in each round."""
    def look():
        bad = [r for r in mix.run(scene) if r.end != mix.OK]
        return ["after the fault: %s %s %s" % (r.kind, r.end, r.detail) for r in bad]
    complaint = within(look)
    for _ in range(rounds - 1):
        complaint = complaint or within(look)  # a lack of memory is felt for a second
    if complaint:
        raise Broken("; ".join(complaint))


def ledger(scene):
    """Every connection that was opened is closed or alive, none is lent, and no request waits."""
    wrong = []
    for row in scene.program.get_json("/pools")["pools"]:
        states = row["connections"]
        alive, opened, closed = sum(states.values()), sum(row["opened"].values()), sum(row["closed"].values())
        if opened - closed != alive:
            wrong.append("%s: %d opened, %d closed, %d alive" % (row["origin"], opened, closed, alive))
        if row["waiting"] or alive != states["idle"]:
            wrong.append("%s: %d wait, %s" % (row["origin"], row["waiting"], {k: n for k, n in states.items() if n}))
    return wrong


def balances(scene, descriptors=None):
    """Ends clients and connections to origins; then nothing of them remains."""
    def look():
        scene.end_connections()  # again: a dial may have ended meanwhile
        wrong = ledger(scene)
        idle = [row["origin"] for row in scene.program.get_json("/pools")["pools"] if sum(row["connections"].values())]
        now = scene.program.descriptors()
        if idle:
            wrong.append("connections that their origins closed are alive: %s" % " ".join(idle))
        if descriptors is not None and now > descriptors:
            wrong.append("%d descriptors, %d before" % (now, descriptors))
        return wrong
    if complaint := within(look):
        raise Broken("; ".join(complaint))


def lives(scene):
    if not scene.program.alive():
        raise Broken("the program ended with %s:\n%s" % (scene.program.process.returncode, scene.program.tail(8)))


def resting_descriptors(scene):
    """The level to return to: what is open after a first mix, once no connection is left."""
    serves(scene)
    balances(scene)
    low = scene.program.descriptors()
    end = time.monotonic() + 1
    while time.monotonic() < end:
        low = min(low, scene.program.descriptors())
    return low
