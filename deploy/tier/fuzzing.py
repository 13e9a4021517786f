"""Runs libFuzzer on every parser of untrusted bytes, and on the data plane between clients and origins: from the seeds in the tree, with a growing corpus in build/corpus."""
import concurrent.futures

from outcome import Outcome, verdict
from shell import CORES, LOGS, ROOT, Log

# Target -> its seeds, and whether they are used as they are.
TARGETS = {
    "h1_request": ("tests/property/h1_requests.txt", ()),
    "h1_response": ("tests/property/h1_responses.txt", ()),
    "translation": ("tests/property/h1_requests.txt", ("--bare",)),
    "h2_server": ("tests/fuzz/seeds/h2_server.txt", ()),
    "h2_client": ("tests/fuzz/seeds/h2_client.txt", ()),
    "config": ("tests/fuzz/seeds/config.txt", ("--bare",)),
    "authority": ("tests/fuzz/seeds/authority.txt", ("--bare",)),
    "client_hello": ("tests/fuzz/seeds/client_hello.txt", ("--bare",)),
    "otlp_answer": ("tests/fuzz/seeds/otlp_answer.txt", ("--bare",)),
    "data_plane": ("tests/fuzz/seeds/data_plane.txt", ("--bare",)),
}
PROGRAMS = ["%s_fuzz" % name for name in TARGETS]


def one(whole, name, seconds):
    log = Log("fuzz-" + name, whole)
    seeds, how = TARGETS[name]
    corpus = ROOT / "build/corpus" / name
    log.run("python3", "-B", "tests/fuzz/seeds.py", seeds, corpus, *how)
    words = ["-dict=tests/fuzz/h1.dict"] if seeds.startswith("tests/property") else []
    status = log.run(ROOT / "build/asan/tests/fuzz" / (name + "_fuzz"), corpus, *words, "-max_total_time=%d" % seconds, "-timeout=10",
                     "-rss_limit_mb=2048", "-artifact_prefix=%s/%s-" % (LOGS, name), limit=seconds + 120)
    return verdict(status, "" if status == 0 else name)


def run(log, full):
    with concurrent.futures.ThreadPoolExecutor(CORES) as pool:
        return sum(pool.map(lambda name: one(log, name, 60 if full else 10), TARGETS), Outcome())
