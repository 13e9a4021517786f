"""A disk that is full: the log loses lines and counts them, requests do not notice."""
import subprocess

import mix
import oracles

ROUNDS = 6


class Disk:
    def __init__(self, scene):
        self.scene = scene

    def every(self):
        return [("/dev/full", False), ("a small file system", True)]

    def play(self, case):
        what, mounts = case
        folder = self.scene.folder / ("disk%d" % mounts)
        folder.mkdir()
        if mounts and subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", folder], capture_output=True).returncode:
            return None  # without the rights to mount: /dev/full stands for it
        try:
            return self.fill(what, folder / "log" if mounts else "/dev/full")
        finally:
            if mounts:
                subprocess.run(["umount", folder], check=True)

    def fill(self, what, path):
        program = self.scene.prepare()
        program.write_log_to(path)
        try:
            program.start()
            for _ in range(ROUNDS):
                bad = [r for r in mix.run(self.scene) if r.end != mix.OK]
                if bad:
                    raise oracles.Broken("; ".join("%s %s %s" % (r.kind, r.end, r.detail) for r in bad))
            oracles.balances(self.scene)
            oracles.lives(self.scene)
            if complaint := oracles.within(lambda: not program.metric("carpool_log_dropped_total") and "no lost line is counted"):
                raise oracles.Broken(complaint)
            program.stop()
        except (oracles.Broken, OSError, AssertionError) as broken:
            return "the log is on %s, which is full: %s" % (what, broken)
        finally:
            if program.alive():
                program.process.kill()
                program.process.wait()
        return None
