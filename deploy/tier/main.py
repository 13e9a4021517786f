"""Runs the steps of steps.py in order and sums up their results. A failed step does not stop the others."""
import argparse
import concurrent.futures
import dataclasses
import itertools
import os
import resource
import sys
import time

import shell
import steps
from outcome import Outcome


LINES = 15  # of a failed step's log


def parse():
    parser = argparse.ArgumentParser(prog="deploy/test", add_help=False)
    parser.add_argument("--full", action="store_true", help="everything, longer")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="this step alone (repeatable)")
    for step in steps.ALL:
        if step.flag:
            parser.add_argument(step.flag, dest="only", action="append_const", const=step.name, help="%s: %s" % (step.name, step.what))
    return parser.parse_args()


def chosen(args):
    known = {step.name: step for step in steps.ALL}
    for name in args.only:
        if name not in known:
            sys.exit("no step %s; there are: %s" % (name, " ".join(known)))
    if args.only:
        return [known[name] for name in args.only]
    return [step for step in steps.ALL if not step.flag and (args.full or not step.full_only)]


def run_step(step, full, log, unbuilt):
    """Returns one step's outcome; an exception inside is its own failure. After a failed build the result of an
    earlier one is not tested."""
    if os.path.dirname(step.needs) in unbuilt:
        return Outcome(skipped=1, note="its build failed")
    if step.needs and not (shell.ROOT / step.needs).exists():
        return Outcome(failed=1, note="there is no " + step.needs)
    try:
        return step.run(log, full)
    except shell.TooLate as late:
        return Outcome(failed=1, note="%s" % late)
    except Exception as error:  # a defect of the step itself
        return Outcome(failed=1, note="%s: %s" % (type(error).__name__, error))


def tell(line):
    """Writes a whole line at once: steps of a group write concurrently."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def processor_seconds():
    """Returns the time that the ended processes of the steps have used."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime


def report(step, full, unbuilt, name=""):
    name = name or step.name
    tell("%-14s %s …" % (name, step.what))
    log, start, used = shell.Log(name), time.monotonic(), processor_seconds()
    outcome = run_step(step, full, log, unbuilt)
    word = "FAILED" if outcome.failed else "ok" if outcome.passed else "skipped"
    # Steps of a group share the processes that ended meanwhile.
    used = log.processor_seconds() if step.group else processor_seconds() - used
    tell("%-14s %s, %d passed, %d failed, %d skipped, %.0f s (%.0f s of CPU)%s%s" % (
        name, word, outcome.passed, outcome.failed, outcome.skipped, time.monotonic() - start, used,
        ": " + outcome.note if outcome.note else "",
        " (build/test-logs/%s.log)" % name if outcome.failed else ""))
    if outcome.failed:
        tell("\n".join("               | " + line[:300] for line in log.tail("", LINES)))
    return outcome


def settled(step, first, full, unbuilt):
    """Returns the outcome of a step whose tests depend on time: a failure counts if it occurs again when the step runs alone."""
    if not first.failed or not step.again:
        return first
    second = report(step, full, unbuilt, step.name + "-again")
    return second if second.failed else dataclasses.replace(second, unsteady="%s (%s)" % (step.name, first.note))


def run_group(group, full, unbuilt):
    """Runs the steps of one group concurrently: they mostly wait, each independently."""
    with concurrent.futures.ThreadPoolExecutor(len(group)) as pool:
        ended = list(pool.map(lambda step: report(step, full, unbuilt), group))
    return [settled(step, outcome, full, unbuilt) for step, outcome in zip(group, ended)]


def main():
    args = parse()
    os.makedirs(shell.LOGS, exist_ok=True)
    total, broken, unbuilt, began = Outcome(), set(), set(), time.monotonic()
    for _, group in itertools.groupby(chosen(args), lambda step: step.group or step.name):
        group = list(group)
        ended = run_group(group, args.full, unbuilt)
        total = sum(ended, total)
        unbuilt |= {step.makes() for step, outcome in zip(group, ended) if outcome.failed and step.makes()}
        broken |= {step.name for step, outcome in zip(group, ended) if outcome.failed}
    if not args.only:
        left = ["%s (%s)" % (step.name, step.flag or "--full") for step in steps.ALL if step not in chosen(args)]
        print("not run: %s" % (", ".join(left) or "nothing"))
    if total.unsteady:
        print("unsteady, failed beside others and passed alone: %s" % total.unsteady)
    print("%.0f s in all, %.0f s of CPU%s" % (time.monotonic() - began, processor_seconds(), "; failed: " + " ".join(sorted(broken)) if broken else ""))
    print("%d passed, %d failed, %d skipped" % (total.passed, total.failed, total.skipped))
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
