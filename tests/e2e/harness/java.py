"""How the tests start Java. A client's few requests are over before code that is optimised more, or collected by more threads, is of use."""
import subprocess

from .wait import HANGS

QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
QUICK_JAVA = ("java", *QUICK)


def compiled(javac, source, folder):
    """Returns the words that run a source's class. Started with the source itself, Java compiles it in each run, most of what the run costs."""
    subprocess.run([javac, *("-J" + option for option in QUICK), "-d", folder, source], check=True, timeout=HANGS)
    return [*QUICK_JAVA, "-cp", folder, source.stem]
