"""pool.cool_down: an origin that responds with 429 or 503 and Retry-After gets no request until then, and then one first."""
import email.utils
import subprocess
import time
import urllib.parse

import pytest
from harness.carpool import PROGRAM
from harness.h2_client import H2Client
from harness.h2_origin import H2Origin
from harness.origin import Gate
from harness.wait import until

CLIENTS = 64


class Limited:
    """Responds with 429 and this Retry-After while `refuses`; other responses wait at the gate. Serves both protocols."""

    def __init__(self, value="2", status=429):
        self.value, self.status, self.refuses, self.gate = value, status, True, Gate()
        self.refused, self.came = [], []

    def __call__(self, exchange):
        self.came.append(time.monotonic())
        if self.refuses:
            value = self.value() if callable(self.value) else self.value
            exchange.reply(status=self.status, headers=[("retry-after", value)] if value else [])
            self.refused.append(time.monotonic())
            return
        self.gate.enter()
        exchange.reply()


@pytest.fixture
def limited(origin):
    started = []

    def start(h2=False, **more):
        handler = Limited(**more)
        started.append(H2Origin(handler) if h2 else origin(handler))
        return handler, started[-1]
    yield start
    for one in started:
        one.stop()


def run(c, *words):
    done = subprocess.run([PROGRAM, *words, "--admin", "%s:%d" % c.admin_address], capture_output=True, text=True, timeout=20)
    assert done.returncode == 0, done
    return done.stdout


@pytest.mark.parametrize("h2", [False, True])
def test_a_storm_after_a_429_is_held_and_one_request_goes_ahead_of_it(limited, carpool, h2):
    handler, o = limited(h2, value="5")
    c = carpool(pool={"cool_down": True, "wait_timeout": "30s"}, **({"upstream": {"protocols": ["h2"]}} if h2 else {}))
    with c.client() as client:
        assert client.get(o.url + "/").status == 429, "the first client is told"
    handler.refuses = False
    clients = [c.client() for _ in range(CLIENTS)]
    for client in clients:
        client.ask("GET", o.url + "/")
    until(lambda: c.pool(o.url)["waiting"] == CLIENTS, what="all of them held")
    assert len(handler.came) == 1, "and none was sent"
    handler.gate.wait_for(1)
    assert handler.came[1] - handler.came[0] >= 4.95, "the time that the origin named"
    until(lambda: c.pool(o.url)["waiting"] == CLIENTS - 1, what="the others, which wait for its answer")
    assert c.pool(o.url)["cooling_down"] and c.pool(o.url)["cools_for_seconds"] == 0
    assert len(handler.came) == 2
    handler.gate.open()
    assert [client.response().status for client in clients] == [200] * CLIENTS
    assert c.pool(o.url)["cooling_down"] is False and c.metric("carpool_requests_total", code="429") == 1
    for client in clients:
        client.close()


def test_an_answer_after_which_the_request_is_sent_once_more_ends_the_pause_too(origin, carpool, gate):
    responses = [429, 421]

    def handler(exchange):
        status = responses.pop(0) if responses else 200
        if status == 200:
            gate.enter()
        exchange.reply(status=status, headers=[("retry-after", "1")] if status == 429 else [])
    o, c = origin(handler), carpool(pool={"cool_down": True, "wait_timeout": "30s"})
    clients = [c.client() for _ in range(3)]
    assert clients[0].get(o.url + "/").status == 429
    for one in clients:
        one.ask("GET", o.url + "/")
    gate.wait_for(3, 4)  # less than the time that a request without a response holds the others
    assert c.pool(o.url)["cooling_down"] is False and c.metric("carpool_retries_total", proof="misdirected") == 1
    gate.open()
    assert [one.response().status for one in clients] == [200] * 3


def test_a_request_without_an_answer_holds_the_others_for_five_seconds(limited, carpool):
    handler, o = limited(value="1")
    c = carpool(pool={"cool_down": True, "wait_timeout": "30s"})
    with c.client() as client:
        assert client.get(o.url + "/").status == 429
    handler.refuses = False
    clients = [c.client() for _ in range(3)]
    for client in clients:
        client.ask("GET", o.url + "/")
    handler.gate.wait_for(2)
    assert 4.5 <= handler.came[2] - handler.came[1] <= 8, "one more goes ahead of the third"
    assert c.pool(o.url)["waiting"] == 1
    handler.gate.open()
    assert [client.response().status for client in clients] == [200] * 3
    assert c.pool(o.url)["cooling_down"] is False
    for client in clients:
        client.close()


def test_a_storm_through_one_connection_meets_one_429(limited, carpool):
    handler, o = limited(value="1")
    c = carpool(pool={"size": 1, "cool_down": True, "wait_timeout": "30s"})
    handler.gate.open()
    clients = [c.client() for _ in range(CLIENTS)]
    for client in clients:
        client.ask("GET", o.url + "/")
    until(lambda: handler.refused, what="the refusal")
    handler.refuses = False
    responses = sorted(client.response().status for client in clients)
    assert responses == [200] * (CLIENTS - 1) + [429]
    assert len(handler.refused) == 1 and handler.came[1] - handler.came[0] >= 0.95
    for client in clients:
        client.close()


def test_the_pause_is_seen_everywhere_and_who_gives_up_is_told_how_long_it_lasts(limited, carpool):
    handler, o = limited(value="30", status=503)
    c = carpool(pool={"cool_down": True, "wait_timeout": "1s", "max_waiting": 1, "size": 1})
    with c.client() as client, c.client() as other:
        began = time.monotonic()

        def left():
            """At least this much of the pause is left."""
            return began + 30 - time.monotonic() - 1.1
        assert client.get(o.url + "/").status == 503
        refused = client.get(o.url + "/")
        assert refused.status == 503 and left() <= int(refused.get("retry-after")) <= 30
        words = 'carpool; error=connection_limit_reached; details="the origin asked for a pause (Retry-After)"'
        assert refused.get("proxy-status") == words
        pool = c.pool(o.url)
        assert (pool["cooling_down"], pool["cool_down_status"], pool["cool_downs"]) == (True, 503, 1)
        assert left() <= pool["cools_for_seconds"] <= 30
        assert c.metric("carpool_pool_cooling_down", origin=o.url) == 1
        assert c.metric("carpool_pool_cool_downs_total", origin=o.url) == 1
        explained = c.get_json("/pools/%s/explain" % urllib.parse.quote(o.url, safe=""))["explanation"][0]
        assert explained.startswith("The origin answered 503 with Retry-After"), explained
        assert all("cooling down" in run(c, *command) for command in (("top", "--once"), ("pools",)))
        until(lambda: any("asked for a pause" in line and '"seconds":' in line for line in list(c.output)), what="a line in the log")
        until(lambda: any("asked for a pause" in row.get("fault", "") for row in c.access_log()), what="and in that of requests")
        handler.refuses = False
        handler.gate.open()
        run(c, "resume", o.url)
        assert other.get(o.url + "/").status == 200, "an operator ends it"
    assert len(handler.came) == 2


def test_no_time_is_invented_and_none_is_longer_than_the_limit(limited, carpool):
    for value in (None, "0", "soon", "-1", email.utils.formatdate(time.time() - 60, usegmt=True)):
        handler, o = limited(value=value)
        c = carpool(pool={"cool_down": True})
        with c.client() as client:
            assert [client.get(o.url + "/").status for _ in range(3)] == [429] * 3, value
        assert c.pool(o.url)["cool_downs"] == 0
    handler, o = limited(value="86400")
    c = carpool(pool={"cool_down": True, "max_cool_down": "1s", "wait_timeout": "30s"})
    with c.client() as client:
        assert client.get(o.url + "/").status == 429
        handler.refuses = False
        handler.gate.open()
        assert client.get(o.url + "/").status == 200
    assert 0.95 <= handler.came[1] - handler.came[0] < 20


def test_a_date_is_a_time_too_and_a_refused_trial_holds_the_others_again(limited, carpool):
    handler, o = limited(value=lambda: email.utils.formatdate(time.time() + 4, usegmt=True))
    c = carpool(pool={"cool_down": True, "wait_timeout": "30s"})
    with c.client() as client, c.client() as other, c.client() as third:
        assert client.get(o.url + "/").status == 429
        for waiting, one in enumerate((other, third), 1):
            one.ask("GET", o.url + "/")
            until(lambda: c.pool(o.url)["waiting"] == waiting, what="its place in the queue")
        assert other.response().status == 429, "the trial"
        assert len(handler.came) == 2 and handler.came[1] - handler.came[0] >= 2.95
        handler.refuses = False
        handler.gate.open()
        assert third.response().status == 200
    assert c.pool(o.url)["cool_downs"] == 2


def test_an_origin_is_held_alone_and_only_if_it_is_configured(limited, carpool):
    handler, o = limited(value="30")
    free, plain = limited(value="30")
    c = carpool(origin=[{"uri": o.url, "pool": {"cool_down": True, "wait_timeout": "1s"}}])
    with c.client() as client:
        assert [client.get(o.url + "/").status for _ in range(3)] == [429, 503, 503]
        assert [client.get(plain.url + "/").status for _ in range(3)] == [429] * 3
    assert (len(handler.came), len(free.came)) == (1, 3)


def test_a_trial_whose_client_leaves_is_followed_by_the_next(limited, carpool):
    handler, o = limited(value="3")
    c = carpool(pool={"cool_down": True, "wait_timeout": "30s"})
    with c.client() as client:
        assert client.get(o.url + "/").status == 429
    handler.refuses = False
    first, second = c.client(), c.client()
    first.ask("GET", o.url + "/")
    until(lambda: c.pool(o.url)["waiting"] == 1, what="the first")
    second.ask("GET", o.url + "/")
    handler.gate.wait_for(1)
    first.close()
    handler.gate.wait_for(2)
    handler.gate.open()
    assert second.response().status == 200
    second.close()


def test_grpc_clients_are_held_as_others(limited, carpool):
    handler, o = limited(h2=True, value="30")
    c = carpool(pool={"cool_down": True, "wait_timeout": "1s"}, upstream={"protocols": ["h2"]})
    with H2Client(c.address) as client:
        assert client.get(authority=o.authority).status == 429
        told = client.get(authority=o.authority, headers=[("content-type", "application/grpc")], method="POST")
        assert (told.status, told.get("grpc-status")) == (200, "14")
        assert told.get("grpc-message").endswith("the origin asked for a pause (Retry-After)")
    assert len(handler.came) == 1
