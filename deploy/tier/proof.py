"""The proofs of the pool: every interleaving of a few threads within bounds, and defects that must be detected."""
import concurrent.futures

from outcome import Outcome, verdict
from shell import CORES, ROOT

TESTS = ROOT / "build/release/tests"
SHORT = "short"  # the seed of each choice of the short form, so that two runs on one commit test the same


def explorer(log, full):
    """Bounds of three preemptions take half an hour; random schedules go deeper than any bound."""
    program = TESTS / "pool_explorer"
    runs = [["--most", 30000], ["--random", 10000]]
    if full:
        runs = [["--preemptions", 3, "--old", 2, "--most", 2000000], ["--random", 1000000]]
    with concurrent.futures.ThreadPoolExecutor(CORES) as pool:
        if any(pool.map(lambda bounds: log.run(program, *bounds, limit=3600), runs)):
            return verdict(1, (log.tail("FAILED") or [""])[0])
    explored = len(log.tail(" runs, ", 1000))
    # A control of the explorer: without seq_cst it must find the lost wake-up.
    for control in ("a release meets a borrower", "an offer meets the stop"):
        if log.run(program, "--weaken", "--only", control) != 1:
            return Outcome(explored, failed=1, note="the explorer does not detect the missing order in: " + control)
    # Weakens each memory order: the scenario of the table must fail. The long form also tests the orders that no scenario needs.
    sample = ["--needless"] if full else ["--sample", 15, "--seed", SHORT]
    if log.run(ROOT / "build/venv/bin/python", "-B", "tests/explorer/controls.py", "--jobs", CORES, *sample, limit=7200):
        return Outcome(explored, failed=1, note="; ".join(line[11:] for line in log.tail("wrong ", 5)))
    return Outcome(explored + 2 + len(log.tail("caught ", 1000)))


def litmus(log, full):
    """Runs the same pair on this processor, ten million times."""
    return verdict(log.run(TESTS / "pool_tests", "--gtest_filter=AReleaseAndABorrower.*", limit=1800,
                           env={"CARPOOL_LITMUS_ROUNDS": "10000000"}))


def mutants(log, full):
    """Puts defects into a copy of the sources (all of them; or always the same three, and four of the files that changed
    since the last commit but one) and into the strategy's word."""
    sample = [] if full else ["--sample", 3, "--seed", SHORT, "--changed", "HEAD~1", "--most", 4]
    status = log.run(ROOT / "build/venv/bin/python", "-B", "tests/mutants/run.py", "--jobs", CORES, *sample, limit=3600)
    survivors = [line[10:72].strip() for line in log.tail("survived ", 100) if line.startswith("survived ")]
    killed = len([line for line in log.tail("killed ", 100) if line.startswith("killed ")])
    # The producer role without its memory order: TSan must report it. The original is among the tests under TSan.
    if log.run("setarch", "-R", "sh", "tests/mutants/strategy_word.sh", limit=1800, env={} if full else {"MUTANT_ONLY": "1"}):
        survivors.append("the strategy's word")
    else:
        killed += 1
    return Outcome(killed, len(survivors) or bool(status), note=", ".join(survivors))


def simulated(log, full):
    """Puts defects into the simulated data plane: an oracle must report each."""
    status = log.run(ROOT / "build/venv/bin/python", "-B", "tests/sim/data_plane/controls.py", "--table", limit=7200)
    missed = [line.split(": ", 1)[-1].strip() for line in log.tail("no complaint: ", 100) if "the unchanged program" not in line]
    return Outcome(len(log.tail(" found: ", 1000)), len(missed) or bool(status), note=", ".join(missed))


def soak(log, full):
    """A thousand origins appear and expire; nothing must grow."""
    status = log.run(ROOT / "build/venv/bin/python", "-B", "tests/soak/soak.py", "--seconds", 600 if full else 30, limit=1800)
    grown = [line.split(" ")[0] for line in log.tail("GROWS", 10)]
    return verdict(status, ", ".join(grown) or (log.tail("", 1)[0] if status else ""))


def example(log, full):
    return verdict(log.run(TESTS / "pool_example"))
