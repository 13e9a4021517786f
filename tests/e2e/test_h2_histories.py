"""Random histories of sessions with an origin of HTTP/2: it refuses streams, says GOAWAY, lowers its limits, stalls windows,
resets and hangs up, by a seed, while many clients ask through one loop or two. What must hold whatever happens: an answer
is the request's own, or none, or 502 where something did happen to it; nothing is processed twice but what may be; in the
end nothing is held and the ledger balances."""
import collections
import concurrent.futures
import random
import socket
import threading

import h2.errors
import h2.settings
import pytest
from harness.h2_client import GOAWAY, frame
from harness.h2_origin import H2Origin
from harness.wait import until
from harness.wire import Client, Gone

CLIENTS, REQUESTS = 12, 25
CODES = h2.errors.ErrorCodes
SETTINGS = h2.settings.SettingCodes
PLAN = {"echo": 66, "refuse": 10, "goaway": 5, "fail": 4, "cut": 4, "streams": 5, "late": 4}


class Moody:
    """An origin whose behaviour the seed decides."""

    def __init__(self, seed):
        self.random, self.lock = random.Random(seed), threading.Lock()
        self.processed, self.spoiled, self.refused = collections.Counter(), set(), collections.Counter()
        self.taken = collections.Counter()  # connection -> the last stream that it looked at
        self.last = {}                      # connection -> what its GOAWAY said of that
        window = self.random.choice([700, 5000, 65535])
        streams = self.random.choice([1, 3, 10, 100])
        self.plan = {**PLAN, "hang_up": seed % 3}
        self.hung_up = False
        self.origin = H2Origin(self, settings={SETTINGS.INITIAL_WINDOW_SIZE: window, SETTINGS.MAX_CONCURRENT_STREAMS: streams})

    def __call__(self, stream):
        name, connection = stream.pseudo[":path"], stream.connection
        with self.lock:
            if stream.id > self.last.get(connection, stream.id):
                return  # GOAWAY excluded it
            self.taken[connection] = max(stream.id, self.taken[connection])
            mood = self.random.choices(list(self.plan), list(self.plan.values()))[0]
            pause, cut = self.random.random() / 50, self.random.random()
            if mood == "refuse":
                self.refused[name] += 1
            else:
                self.processed[name] += 1
            if mood in ("fail", "cut"):
                self.spoiled.add(name)
            self.hung_up |= mood == "hang_up"
            if mood == "goaway":
                self.last.setdefault(connection, self.taken[connection])
        self.act(mood, stream, name, pause, cut)

    def act(self, mood, stream, name, pause, cut):
        connection, body = stream.connection, name.encode() + b"\n" + stream.body
        if mood == "refuse":
            return stream.reset(CODES.REFUSED_STREAM)
        if mood == "fail":
            return stream.reset(CODES.INTERNAL_ERROR)
        if mood == "hang_up":
            return connection.sock.shutdown(socket.SHUT_RDWR)
        if mood == "goaway":
            with connection.talk():
                connection.sock.sendall(frame(GOAWAY, 0, 0, self.last[connection].to_bytes(4, "big") + bytes(4)))
        if mood == "streams":
            with connection.talk() as c:
                c.update_settings({SETTINGS.MAX_CONCURRENT_STREAMS: 1 + int(cut * 20)})
        if mood == "late":
            threading.Event().wait(pause)
        if mood != "cut":
            return stream.reply(body=body)
        stream.head(200, [("content-length", str(len(body)))])
        stream.data(body[:int(cut * len(body))])
        stream.reset(CODES.CANCEL)


def ask(c, moody, seed, number):
    """One client's requests; and what failed."""
    rng, wrong = random.Random(seed * 1000 + number), []
    client = Client(c.address)
    for k in range(REQUESTS):
        post = rng.random() < 0.5
        name = "/%s-%d-%d" % ("post" if post else "get", number, k)
        body = rng.randbytes(rng.choice([0, 10, 3000, 40_000])) if post else b""
        try:
            response = client.request("POST" if post else "GET", moody.origin.url + name, body=body)
        except Gone:
            response = None
        # Requests in flight when the origin closed may or may not have been processed.
        # The attempts are counted for all reasons together.
        exhausted = response is not None and "the attempts are used up" in response.get("proxy-status", "")
        spoiled = name in moody.spoiled or moody.refused[name] > 8 or exhausted or moody.hung_up
        if response and response.status == 200 and response.complete:
            if response.body != name.encode() + b"\n" + body:
                wrong.append("%s: an answer that is not its own" % name)
        elif not spoiled:
            wrong.append("%s: %s, and nothing had happened to it" % (name, response and (response.first, response.get("proxy-status"))))
        if response is None or not response.complete or not response.keeps_alive():
            client.close()
            client = Client(c.address)
    client.close()
    return wrong


@pytest.mark.parametrize("size", [1, 8])
@pytest.mark.parametrize("seed", range(6))
def test_whatever_happens_answers_are_right_and_nothing_is_held(carpool, seed, size):
    moody = Moody(seed)
    c = carpool(workers=1 + seed % 2, upstream={"protocols": ["h2"]}, pool={"size": size, "wait_timeout": "20s"}, log={"access": False})
    try:
        with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
            wrong = sum(pool.map(lambda n: ask(c, moody, seed, n), range(CLIENTS)), [])
        assert not wrong, "\n".join(wrong)
        again = [n for n, times in moody.processed.items() if times > 1 and (n.startswith("/post") or not moody.hung_up)]
        assert not again, again
        assert len(moody.processed) >= CLIENTS * REQUESTS * 0.9

        def balanced():
            seen = c.metrics()
            total = collections.Counter()
            for (name, _), value in seen.items():
                total[name] += value
            return (total["carpool_pool_borrows_total"] == total["carpool_pool_restores_total"]
                    and total["carpool_pool_opened_total"] - total["carpool_pool_closed_total"] == total["carpool_pool_connections"])
        until(balanced, what="everything given back")
        assert c.pool(moody.origin.url)["peak"] <= size
    finally:
        moody.origin.stop()
