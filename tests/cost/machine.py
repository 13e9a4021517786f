"""What figures depend on besides the tree: the compiler decides over all of them, the rest over those of libraries."""
import os
import re
import subprocess

LIBRARIES = ("libc6", "libstdc++6", "libssl3", "libnghttp2-14", "libuv1", "valgrind")
FEATURES = ("aes", "avx2", "bmi2", "pclmulqdq", "vaes")  # of the processor: libraries choose their code by them


def compiler(program):
    text = subprocess.run(["readelf", "-p", ".comment", program], capture_output=True, text=True).stdout
    return ", ".join(re.findall(r"\]\s+(.+)", text)) or "unknown"


def libraries():
    known = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${Version}\n", *LIBRARIES], capture_output=True, text=True).stdout
    with open("/proc/cpuinfo") as info:
        flags = next((line.split(":")[1].split() for line in info if line.startswith("flags")), [])
    return sorted(known.split("\n")[:-1]) + [" ".join(feature for feature in FEATURES if feature in flags)]


def may_attach():
    """Returns whether strace may attach to a process that it did not start."""
    try:
        with open("/proc/sys/kernel/yama/ptrace_scope") as scope:
            return scope.read().strip() == "0" or os.geteuid() == 0
    except OSError:
        return True
