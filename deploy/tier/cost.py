"""What a request costs in instructions, allocations and system calls: figures that repeat on a machine with other load."""
from outcome import Outcome, verdict
from shell import ROOT
from tools import get

NEEDS = ("valgrind", "strace")
UNFIT = 3  # the baseline is another compiler's


def cost(log, full):
    for name in NEEDS:
        path, why = get(log, name)
        if path is None:
            return Outcome(skipped=1, note=why)
    status = log.run(ROOT / "build/venv/bin/python", "-B", "tests/cost/run.py", limit=600)
    if status == UNFIT:
        return Outcome(skipped=1, note=(log.tail("skipped: ") or [""])[0])
    return verdict(status, (log.tail("differs: ") or log.tail("", 1) or [""])[0] if status else "")
