"""A disk that is full or cannot write: the log loses lines and counts them, requests are not affected."""
import errno
import subprocess

import mix
import oracles
from control import ALWAYS
from harness.wait import until

ROUNDS = 6


class Disk:
    def __init__(self, scene):
        self.scene = scene

    def every(self):
        return [("/dev/full", False), ("a small file system", True), ("a disk that syncs nothing", None)]

    def play(self, case):
        what, mounts = case
        if mounts is None:
            return self.fill(what, self.scene.folder / "log", unsynced=True)
        folder = self.scene.folder / ("disk%d" % mounts)
        folder.mkdir()
        if mounts and subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", folder], capture_output=True).returncode:
            return None  # without the rights to mount: /dev/full replaces it
        try:
            return self.fill(what, folder / "log" if mounts else "/dev/full")
        finally:
            if mounts:
                subprocess.run(["umount", folder], check=True)

    def fill(self, what, path, unsynced=False):
        program = self.scene.prepare(log={"sync": "10ms"})
        program.write_log_to(path)
        try:
            program.start()
            if unsynced:
                self.scene.control.arm("sync", errno.EIO, 1, ALWAYS)
            for _ in range(ROUNDS):
                bad = [r for r in mix.run(self.scene) if r.end != mix.OK]
                if bad:
                    raise oracles.Broken("; ".join("%s %s %s" % (r.kind, r.end, r.detail) for r in bad))
            oracles.balances(self.scene)
            oracles.lives(self.scene)
            if unsynced:
                until(lambda: self.scene.control["failed"], what="an attempt to sync")
            elif complaint := oracles.within(lambda: not program.metric("carpool_log_dropped_total") and "no lost line is counted"):
                raise oracles.Broken(complaint)
            program.stop()
        except (oracles.Broken, OSError, AssertionError) as broken:
            return "the log is on %s: %s" % (what, broken)
        finally:
            self.scene.control.disarm()
            if program.alive():
                program.process.kill()
                program.process.wait()
        return None
