"""Threads that cannot be started: the program reports it, ends with its code, and waits for no task that hangs."""
import json
import re
import shutil
import subprocess

import pytest
from harness.carpool import PROGRAM, SANITIZED
from harness.toml import dumps

pytestmark = [pytest.mark.skipif(SANITIZED, reason="a sanitizer starts threads itself"),
              pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")]

# Neither a lack of threads nor a disk that hangs can be produced for one process alone. One of the threads that the main thread starts
# cannot be started, and that takes a moment: the log's fdatasync is due by then.
SYSTEM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

typedef int Create(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*entry)(void*), void* argument) {
  static int calls;
  if (gettid() == getpid() && calls++ == atoi(getenv("THREADS"))) {
    poll(NULL, 0, 1500);
    return EAGAIN;
  }
  return ((Create*)dlsym(RTLD_NEXT, "pthread_create"))(thread, attributes, entry, argument);
}

int fdatasync(int fd) {
  (void)fd;
  for (;;) pause();
}
"""


@pytest.fixture(scope="module")
def system(tmp_path_factory):
    folder = tmp_path_factory.mktemp("system")
    (folder / "system.c").write_text(SYSTEM)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "system.so", "system.c"], cwd=folder, check=True, timeout=60)
    return folder / "system.so"


def run(system, folder, threads, *arguments):
    with open(folder / "log", "w+") as log:  # a file, which can be synced
        status = subprocess.run([PROGRAM, *arguments], stderr=log, stdout=subprocess.DEVNULL, timeout=20,
                                env={"LD_PRELOAD": str(system), "THREADS": str(threads)}).returncode
        log.seek(0)
        return status, log.read().splitlines()


WITHOUT = {0: "the log's thread", 1: "the first threads", 2: "the first threads", 3: "a thread for loop 1",
           4: "a thread for loop 2", 5: "a thread for loop 3"}
# Patterns. While the log's sync hangs, another task may need a thread of its own before the last loops do.
HANGING = {**WITHOUT, 4: "a thread for loop [12]", 5: "a thread for loop [123]"}


def config(folder, **settings):
    file = folder / "c.toml"
    file.write_text(dumps({"workers": 4, "listen": [{"address": "127.0.0.1:0"}], "admin": {"address": "127.0.0.1:0"}, **settings}))
    return file


def errors(said):
    """Returns the errors of a log; output of the program outside its log is kept as it is."""
    lines = [json.loads(line) if line.startswith("{") else {"level": "error", "message": line.removeprefix("carpool: ")} for line in said]
    return [line["message"] for line in lines if line["level"] == "error"]


@pytest.mark.parametrize("threads", HANGING)
def test_a_program_without_its_threads_is_never_ready_and_ends_with_its_code(system, tmp_path, threads):
    status, said = run(system, tmp_path, threads, "--config", config(tmp_path, log={"sync": "10ms"}))
    assert status == 3 and any(re.fullmatch("cannot start " + HANGING[threads], error) for error in errors(said)), said
    assert not any("carpool ready" in line or "impossible" in line for line in said), said
    assert any("a task does not end" in line for line in said) == (threads >= 3), "none hangs without a loop"


@pytest.mark.parametrize("threads", WITHOUT)
def test_it_cleans_up_where_no_task_hangs(system, tmp_path, threads):
    status, said = run(system, tmp_path, threads, "--config", config(tmp_path))
    assert (status, errors(said)) == (3, ["cannot start " + WITHOUT[threads]]), said


def test_the_admin_loop_too(system, tmp_path):
    status, said = run(system, tmp_path, 1, "--config", config(tmp_path, threads={"min": 0}))
    assert (status, errors(said)) == (3, ["cannot start a thread for the admin loop"]), said


def test_the_demo_too(system, tmp_path):
    status, said = run(system, tmp_path, 0, "--demo")
    assert (status, said) == (3, ["carpool: cannot start a thread for the demo's origin"])


def test_the_webhook_too(system, tmp_path):
    status, said = run(system, tmp_path, 0, "webhook", "--listen=127.0.0.1:0")
    assert (status, said) == (3, ["carpool: cannot start the log's thread"])
