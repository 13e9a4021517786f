"""gRPC through carpool to a service with several addresses: every backend receives its share of the calls."""
import concurrent.futures
import threading
import time

import pytest
from harness.wait import until

grpc = pytest.importorskip("grpc")

CALL = "/t.Service/Call"
CALLS = 240
TAKES = 0.01  # seconds of a call: far more than the backends' threads, which share an interpreter, differ by
SETTLE = 200  # until the averages of a time of overload have passed


class Backend(grpc.GenericRpcHandler):
    """Counts its calls and responds to each after `takes` seconds."""

    def __init__(self, host, port, threads=40):
        self.calls, self.takes, self.host = 0, TAKES, host
        self._server = grpc.server(concurrent.futures.ThreadPoolExecutor(threads))
        self._server.add_generic_rpc_handlers((self,))
        self.port = self._server.add_insecure_port("%s:%d" % (host, port))
        self._server.start()

    def service(self, _):
        return grpc.unary_unary_rpc_method_handler(self._response)

    def _response(self, request, _):
        self.calls += 1  # one thread at a time holds the interpreter here
        if self.takes:
            threading.Event().wait(self.takes)
        return request

    @property
    def authority(self):
        return "%s:%d" % (self.host, self.port)

    def stop(self):
        self._server.stop(None)


@pytest.fixture
def backends(request):
    """backends(3) -> servers on 127.0.2.1, 127.0.2.2, .. and one port."""
    def start(count):
        started = []
        for i in range(count):
            started.append(Backend("127.0.2.%d" % (i + 1), started[0].port if started else 0))
            request.addfinalizer(started[-1].stop)
        return started
    return start


def through(carpool, backends, resolver, named, **settings):
    """carpool before a name that has the first `named` of the backends, and a channel to it."""
    resolver.table["service.test"], resolver.ttl = [b.host for b in backends[:named]], 1
    uri = "http://service.test:%d" % backends[0].port
    pool = {"size": 8, "addresses.slow_start": "0s", **settings.pop("pool", {})}
    c = carpool(inside=resolver.inside, dns={"min_ttl": "1s", "max_ttl": "1s"}, listen={"origin": uri},
                upstream={"protocols": ["h2"]}, pool=pool, **settings)
    return c, uri, grpc.insecure_channel("%s:%d" % c.address)


def one_by_one(channel, count=CALLS):
    call = channel.unary_unary(CALL)
    for _ in range(count):
        assert call(b"x", timeout=20) == b"x"


def at_once(channel, count, width=60):
    call = channel.unary_unary(CALL)
    waiting = [call.future(b"x", timeout=30) for _ in range(width)]
    for _ in range(count - width):
        assert waiting.pop(0).result() == b"x"
        waiting.append(call.future(b"x", timeout=30))
    for one in waiting:
        assert one.result() == b"x"


def shares(backends, load):
    before = [b.calls for b in backends]
    load()
    got = [b.calls - was for b, was in zip(backends, before)]
    return [one / sum(got) for one in got]


def even(found, within=0.1):
    """The backends are threads of one interpreter, beside other tests: their speeds differ at times."""
    return all(abs(one - 1 / len(found)) <= within for one in found)


def rest(seconds):
    end = time.monotonic() + seconds
    until(lambda: time.monotonic() > end, seconds + 5, "the rest")


def test_calls_are_spread_evenly_one_by_one_at_once_and_after_a_rest(backends, resolver, carpool, full):
    three = backends(3)
    c, uri, channel = through(carpool, three, resolver, 3, pool={"idle_timeout": "3m" if full else "10s"})
    with channel:
        one_by_one(channel, 10)
        found = shares(three, lambda: one_by_one(channel))
        assert even(found), found
        found = shares(three, lambda: at_once(channel, 2 * CALLS))
        assert even(found), found
        opened = c.metric("carpool_pool_opened_total", origin=uri, cause="spread")
        assert opened == 2, "one session each"
        one_by_one(channel, SETTLE)
        for seconds in (1, 6, 20, 120) if full else (1, 6):  # 5 s: the trust in a connection that may not be repeated on
            rest(seconds)
            found = shares(three, lambda: one_by_one(channel))
            assert even(found), (seconds, found)
        assert c.metric("carpool_pool_opened_total", origin=uri, cause="spread") == opened
        assert c.metric("carpool_pool_opened_total", origin=uri, cause="policy") in (None, 0)


def test_a_backend_that_the_name_gains_gets_its_share_within_seconds_and_one_that_it_loses_none(backends, resolver, carpool):
    three = backends(3)
    c, uri, channel = through(carpool, three, resolver, 2, pool={"size": 4, "addresses.gone_after": "2s"})
    with channel:
        call = channel.unary_unary(CALL)
        at_once(channel, 400, 120)  # more than the streams of one session
        one_by_one(channel, SETTLE)
        assert even(shares(three[:2], lambda: one_by_one(channel)))
        resolver.table["service.test"] = [b.host for b in three]
        until(lambda: call(b"x", timeout=20) and three[2].calls, 15, "the first call of the new one")
        until(lambda: even(shares(three, lambda: one_by_one(channel))), 15, "its share")
        resolver.table["service.test"] = [b.host for b in three[1:]]
        path = "/pools/" + uri.replace(":", "%3A").replace("/", "%2F")

        def left():
            return three[0].authority not in [a["address"] for a in c.get_json(path)["addresses"] if a["open"]]
        until(left, 20, "the end of its sessions")
        found = shares(three, lambda: one_by_one(channel))
        assert found[0] == 0 and even(found[1:]), found


def test_a_full_pool_makes_room_for_a_backend_that_the_name_gains(backends, resolver, carpool):
    three = backends(3)
    c, uri, channel = through(carpool, three, resolver, 2, pool={"size": 4, "max_streams": 4})
    with channel:
        for one in three:
            one.takes = 0.02
        at_once(channel, 200, 30)  # 16 streams are all there are
        assert c.metric("carpool_pool_connections", origin=uri, state="idle") == 4
        resolver.table["service.test"] = [b.host for b in three]
        call = channel.unary_unary(CALL)
        until(lambda: call(b"x", timeout=20) and three[2].calls, 15, "the first call of the new one")
        assert c.metric("carpool_pool_closed_total", origin=uri, cause="rebalanced") == 1
        for one in three:
            one.takes = TAKES
        one_by_one(channel, SETTLE)
        found = shares(three, lambda: one_by_one(channel))
        assert even(found), found


def test_a_backend_that_becomes_slow_gets_fewer_calls_and_its_share_when_it_recovers(backends, resolver, carpool):
    three = backends(3)
    c, uri, channel = through(carpool, three, resolver, 3)
    with channel:
        one_by_one(channel, 200)
        three[0].takes = 10 * TAKES
        one_by_one(channel, 200)
        found = shares(three, lambda: one_by_one(channel))
        assert found[0] < 0.15 and even(found[1:]), found
        path = "/pools/" + uri.replace(":", "%3A").replace("/", "%2F")
        facts = {a["address"]: a for a in c.get_json(path)["addresses"]}
        assert facts[three[0].authority]["response_seconds"] > 5 * TAKES > facts[three[1].authority]["response_seconds"]
        label = dict(origin=uri, address=three[0].authority)
        assert c.metric("carpool_address_requests_total", **label) == three[0].calls
        assert c.metric("carpool_address_connections", **label) == 1
        three[0].takes = TAKES
        one_by_one(channel, 3 * SETTLE)
        found = shares(three, lambda: one_by_one(channel))
        assert even(found), found


def test_balance_none_leaves_the_choice_to_the_strategy(backends, resolver, carpool):
    two = backends(2)
    c, uri, channel = through(carpool, two, resolver, 2, pool={"addresses.balance": "none"})
    with channel:
        one_by_one(channel, 100)
        assert sorted(b.calls for b in two) == [0, 100]
        assert c.metric("carpool_pool_connections", origin=uri, state="idle") == 1
