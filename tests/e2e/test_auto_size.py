"""pool.size = "auto": the size follows the waiting time of requests and the origin's responses."""
import json
import statistics
import subprocess
import threading
import time

import pytest
from harness.carpool import PROGRAM, SANITIZED
from harness.wait import until

AT_ONCE, SERVICE = 8, 0.04


class Busy:
    """Serves AT_ONCE requests at once in SERVICE seconds each; beyond that every one takes longer by the square of the excess, so that the
    throughput falls: an origin whose threads, locks or database are exhausted."""

    def __init__(self, at_once=AT_ONCE):
        self.at_once, self.now, self.most, self._lock = at_once, 0, 0, threading.Lock()

    def __call__(self, exchange):
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
            excess = max(1, self.now / self.at_once)
        threading.Event().wait(SERVICE * excess ** 2)
        with self._lock:
            self.now -= 1
        exchange.reply()


class Load:
    """`count` clients that send one request after the other until stop(); times: of the responses with 200."""

    def __init__(self, c, url, count):
        self.times, self.statuses, self._over, self._lock = [], [], False, threading.Lock()
        self._all = [threading.Thread(target=self._run, args=(c, url), daemon=True) for _ in range(count)]
        for one in self._all:
            one.start()
        until(lambda: self.statuses, 60, "a first response, so that there is a pool")

    def _run(self, c, url):
        with c.client() as client:
            while not self._over:
                began = time.monotonic()
                response = client.get(url + "/")
                with self._lock:
                    self.statuses.append(response.status)
                    if response.status == 200:
                        self.times.append((time.monotonic(), time.monotonic() - began))

    def rate(self, seconds):
        """Waits, and returns the responses per second meanwhile and their median time."""
        begin = time.monotonic()
        until(lambda: time.monotonic() - begin >= seconds, seconds + 5, "the time of the measurement")
        with self._lock:
            times = [took for when, took in self.times if when >= begin]
        return len(times) / seconds, statistics.median(times) if times else None

    def stop(self):
        self._over = True
        for one in self._all:
            one.join(60)


def run(c, *words):
    done = subprocess.run([PROGRAM, *words, "--admin", "%s:%d" % c.admin_address], capture_output=True, text=True, timeout=20)
    assert done.returncode == 0, done
    return done.stdout


@pytest.mark.skipif(SANITIZED, reason="measures throughput")
def test_an_origin_that_is_slower_with_more_requests_is_given_as_many_as_it_serves(origin, carpool):
    measured = {}
    for size in (64, "auto"):
        o = origin(Busy())
        c = carpool(pool={"size": size, "min_size": 2, "wait_timeout": "30s"})
        load = Load(c, o.url, 48)
        if size == "auto":
            until(lambda c=c, o=o: sum(c.pool(o.url)["auto_size"]["changes"].values()) >= 4, 40, "four changes of the size")
        load.rate(3)
        looks = [(*load.rate(1), c.pool(o.url)["size"]) for _ in range(6)]
        measured[size] = tuple(statistics.median(values) for values in zip(*looks))  # a size is lower for the moment of a measurement
        load.stop()
        assert set(load.statuses) == {200}
        c.stop()
    print("answers a second, median time, size:", measured)
    fixed, auto = measured[64], measured["auto"]
    assert auto[0] > 2 * fixed[0], measured
    assert 6 <= auto[2] <= 2 * AT_ONCE, measured


def test_each_change_is_recorded_with_its_reason_wherever_the_size_is_shown(origin, carpool):
    o = origin(Busy(1000))
    c = carpool(pool={"size": "auto", "min_size": 2, "max_size": 9, "wait_timeout": "30s"})
    load = Load(c, o.url, 30)
    until(lambda: c.pool(o.url)["size"] == 9, 30, "the largest size")
    load.stop()
    pool = c.pool(o.url)
    auto, last = pool["auto_size"], pool["auto_size"]["last"]
    assert (auto["min_size"], auto["max_size"]) == (2, 9)
    assert auto["changes"]["waits"] >= 2 and len(auto["last"]) == min(8, sum(auto["changes"].values()))
    assert any((one["to"], one["reason"]) == (9, "waits") and "waited too long for a connection" in one["why"] for one in last)
    assert pool["peak"] <= 9 and pool["size"] == last[0]["to"]
    assert c.metric("carpool_pool_size", origin=o.url) == pool["size"]
    assert c.metric("carpool_pool_size_changes_total", origin=o.url, reason="waits") == auto["changes"]["waits"]

    def told():
        return [json.loads(line) for line in list(c.output) if '"the size of the pool follows the load"' in line]
    until(lambda: len(told()) == sum(auto["changes"].values()), what="a line for each change")
    lines = told()
    assert [(line["from"], line["to"], line["reason"]) for line in reversed(lines)][:8] == \
        [(one["from"], one["to"], one["reason"]) for one in auto["last"]]
    assert all(line["module"] == "pool" and line["origin"] == o.url and line["why"] for line in lines)
    explained = run(c, "explain", o.url)
    assert 'The size follows the load, from 2 to 9 (pool.size is "auto")' in explained and "(reason waits)" in explained
    assert "%d auto" % pool["size"] in run(c, "pools")


def test_answers_of_503_and_a_reload_change_the_size_and_lent_connections_stay(origin, carpool):
    busy = Busy(1000)
    o = origin(lambda exchange: exchange.reply(status=503) if refuse else busy(exchange))
    refuse = False
    c = carpool(pool={"size": "auto", "min_size": 2, "max_size": 16, "wait_timeout": "30s"})
    load = Load(c, o.url, 40)
    until(lambda: c.pool(o.url)["size"] == 16, 30, "the largest size")
    refuse = True
    until(lambda: c.pool(o.url)["size"] == 2, 30, "the smallest size")
    refuse = False
    load.stop()
    assert set(load.statuses) == {200, 503}, "no exchange was cut"
    pool = until(lambda: (p := c.pool(o.url))["active"] <= 2 and p, 10, "the surplus is closed")
    assert pool["auto_size"]["changes"]["refused"] >= 3 and pool["closed"]["surplus"] >= 14
    assert "the origin answered 429 or 503, or not in time, to" in run(c, "explain", o.url)
    c.config.write_text(c.config.read_text().replace("min_size = 2", "min_size = 5"))
    assert c.admin("POST", "/reload").status == 200
    assert c.pool(o.url)["size"] == 5
    c.config.write_text(c.config.read_text().replace('size = "auto"', "size = 7"))
    assert c.admin("POST", "/reload").status == 200
    assert (c.pool(o.url)["size"], c.pool(o.url)["auto_size"]) == (7, None)
