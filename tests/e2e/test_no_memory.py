"""Real allocation failures: the program may use slightly more memory than it does, and is asked for much more."""
import contextlib
import json
import pathlib
import re
import resource

import pytest
from harness.carpool import SANITIZED
from harness.wait import until

pytestmark = pytest.mark.skipif(SANITIZED, reason="a sanitizer itself ends a program without memory")

KEPT = 64 * 1024  # of a body, for a replay: as much as a request may keep by default
RESERVE = 8 * 256 * 1024


def allow(c, more):
    """Limits memory to this many bytes above what is mapped and writable; None: unlimited."""
    mapped = int(re.search(r"VmData:\s+(\d+)", pathlib.Path("/proc/%d/status" % c.process.pid).read_text()).group(1)) * 1024
    soft = resource.RLIM_INFINITY if more is None else mapped + more
    resource.prlimit(c.process.pid, resource.RLIMIT_DATA, (soft, resource.RLIM_INFINITY))


def post(client, o, size):
    """A request whose body carpool keeps until the response has arrived."""
    client.send(b"POST %s/ HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n" % (o.url.encode(), o.authority.encode(), size))
    client.send(b"x" * size)


@pytest.fixture
def slow(origin, gate):
    """An origin that responds to POST once the gate is open, and to all else at once."""
    def held(exchange):
        if exchange.request.method == "POST":
            gate.enter()
        exchange.read_body()
        exchange.reply()
    return origin(held)


def stages(c):
    """Returns each change of the shed level, from the log: the last one lasts for a second only."""
    return [json.loads(line) for line in list(c.output) if '"overload"' in line]


def failed(c):
    return c.get_json("/overload")["failed_allocations"]


def test_what_rests_makes_room_and_what_runs_is_finished(slow, gate, carpool):
    o, c = slow, carpool(pool={"size": 256}, listen={"idle_timeout": "120s"})
    with contextlib.ExitStack() as stack:
        idle_client = stack.enter_context(c.client())
        assert idle_client.get(o.url + "/").keeps_alive()
        senders = [stack.enter_context(c.client()) for _ in range(100)]

        allow(c, KEPT)
        sent = 0
        for sender in senders:
            post(sender, o, KEPT - 512)
            sent += 1
            gate.wait_for(sent)
            if failed(c):
                break
        assert 0 < failed(c) < 8, "some of the reserve is there yet"
        until(lambda: stages(c), what="the last stage")
        assert idle_client.at_end(), "the idle client is closed"

        gate.open()
        responses = [sender.response() for sender in senders[:sent]]
        assert {response.status for response in responses} == {200}, "a running request is completed"
        allow(c, None)
        until(lambda: c.get_json("/overload")["shed_level"] == "nothing", what="the end of it")
        with c.client() as later:
            assert later.get(o.url + "/").keeps_alive()
    assert c.metric("carpool_overload_failed_allocations_total") == failed(c) > 0
    until(lambda: stages(c)[-1]["shed_level"] == "nothing", what="the last line of the log")
    assert stages(c)[0]["shed_level"] == "idle" and stages(c)[0]["failed_allocations"] > 0


def test_when_nothing_is_left_it_ends_with_one_line_and_its_code(slow, gate, carpool):
    c = carpool(workers=1, request={"replay_buffer": "32MiB"})
    with c.client() as client:
        assert client.get(slow.url + "/").status == 200  # its loop runs: a thread could not start any more
        allow(c, KEPT)
        with contextlib.suppress(OSError):  # it ends before it has taken all
            post(client, slow, 8 * RESERVE)
        assert c.wait() == 3
        c.process = None
        assert client.at_end()
    assert c.output.count("carpool: out of memory: the reserve is used up; exiting") == 1
    assert not any("terminate" in line or "assert" in line for line in c.output), c.tail()
