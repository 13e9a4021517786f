"""The pool from outside: the cap is exact, the queue is fair, stale connections are invisible, the ledger balances."""
import concurrent.futures
import socket
import threading
import urllib.parse
import zlib

import pytest
from harness.blackhole import BlackholeServer
from harness.h2_client import H2Client
from harness.wait import until
from harness.wire import Gone


def each_in_a_thread(count, work):
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, range(count)))


@pytest.mark.parametrize("workers", [1, 2])
def test_two_hundred_clients_never_open_more_than_the_cap(origin, carpool, gate, workers):
    def held(exchange):
        gate.enter()
        exchange.reply(body=exchange.request.target.encode())
    o = origin(held)
    c = carpool(workers=workers, pool={"size": 8, "wait_timeout": "60s"})

    def one(i):
        with c.client() as client:
            return [client.get("%s/%d-%d" % (o.url, i, k)).body.decode() for k in range(3)]
    with concurrent.futures.ThreadPoolExecutor(200) as pool:
        responses = [pool.submit(one, i) for i in range(200)]
        gate.wait_for(8)
        until(lambda: c.metric("carpool_pool_waiting", origin=o.url) == 192, what="192 waiting requests")
        gate.open()
        assert [a.result(60) for a in responses] == [["/%d-%d" % (i, k) for k in range(3)] for i in range(200)]
    assert (o.peak, o.peak_busy, o.opened) == (8, 8, 8)
    row = c.pool(o.url)
    assert (row["peak"], row["size"], row["waiting"]) == (8, 8, 0)
    assert c.metric("carpool_pool_connections_peak", origin=o.url) == 8


def test_waiters_are_served_in_order_across_loops(origin, carpool, gate):
    def held(exchange):
        gate.enter()
        exchange.reply()
    o = origin(held)
    c = carpool(pool={"size": 1, "wait_timeout": "60s"})
    clients = [c.client() for _ in range(12)]
    for i, client in enumerate(clients):
        client.ask("GET", "%s/%d" % (o.url, i))
        if i == 0:
            gate.wait_for(1)
        until(lambda: c.metric("carpool_pool_waiting", origin=o.url) == i, what="%d waiting" % i)
    gate.open()
    assert [client.response().status for client in clients] == [200] * 12
    assert o.targets() == ["/%d" % i for i in range(12)] and o.opened == 1
    for client in clients:
        client.close()


def test_clients_of_both_protocols_stand_in_one_line_and_those_that_left_are_passed_over(origin, carpool, gate):
    def held(exchange):
        gate.enter()
        exchange.reply()
    o = origin(held)
    c = carpool(pool={"size": 1, "wait_timeout": "60s"})
    clients = []
    for i in range(10):
        clients.append(H2Client(c.address) if i % 2 else c.client())
        if i % 2:
            clients[i].ask("/%d" % i, authority=o.authority)
        else:
            clients[i].ask("GET", "%s/%d" % (o.url, i))
        if i == 0:
            gate.wait_for(1)
        until(lambda: c.metric("carpool_pool_waiting", origin=o.url) == i, what="%d waiting" % i)
    clients[3].h2.reset_stream(1)
    clients[3].flush()
    clients[6].close()
    until(lambda: c.metric("carpool_pool_waiting", origin=o.url) == 7, what="two have left")
    gate.open()
    stay = [i for i in range(10) if i not in (3, 6)]
    assert [(clients[i].response(1) if i % 2 else clients[i].response()).status for i in stay] == [200] * 8
    assert o.targets() == ["/%d" % i for i in stay] and o.opened == 1
    for client in clients:
        client.sock.close()


def test_an_origin_that_waits_for_the_total_is_counted(origin, carpool, gate):
    def held(exchange):
        gate.enter()
        exchange.reply()
    first, second = origin(held), origin()
    c = carpool(pool={"wait_timeout": "60s", "total": {"max_connections": 1}})
    assert c.metric("carpool_pool_starved_origins") == 0
    with c.client() as holder, c.client() as starved:
        holder.ask("GET", first.url + "/")
        gate.wait_for(1)
        starved.ask("GET", second.url + "/")
        until(lambda: c.metric("carpool_pool_starved_origins") == 1, what="a starved origin")
        gate.open()
        assert (holder.response().status, starved.response().status) == (200, 200)
    until(lambda: c.metric("carpool_pool_starved_origins") == 0, what="no starved origin")


def test_a_client_that_leaves_the_line_takes_nothing_with_it(origin, carpool, gate):
    def held(exchange):
        gate.enter()
        exchange.reply()
    o = origin(held)
    c = carpool(pool={"size": 1, "wait_timeout": "60s"})
    with c.client() as first, c.client() as last:
        first.ask("GET", o.url + "/first")
        gate.wait_for(1)
        leaving = [c.client() for _ in range(5)]
        for client in leaving:
            client.ask("GET", o.url + "/left")
        until(lambda: c.metric("carpool_pool_waiting", origin=o.url) == 5, what="five waiting requests")
        last.ask("GET", o.url + "/last")
        until(lambda: c.metric("carpool_pool_waiting", origin=o.url) == 6, what="six waiting requests")
        for client in leaving:
            client.reset()  # a bare FIN may come from a client that still reads
        until(lambda: c.metric("carpool_pool_waiting", origin=o.url) == 1, what="one waiting request")
        gate.open()
        assert first.response().status == last.response().status == 200
    assert o.targets() == ["/first", "/last"] and o.opened == 1


# ---- stale connections ----

def test_gets_never_fail_because_the_origin_closed_what_was_idle(origin, carpool):
    o, c = origin(), carpool()
    with c.client() as client:
        for i in range(100):
            assert client.get("%s/%d" % (o.url, i)).status == 200
            o.close_connections()
    assert [t for t in o.targets()] == ["/%d" % i for i in range(100)]


def second_dies(exchange):
    """Reads a connection's second request and closes without a response."""
    exchange.read_body()
    if exchange.nth == 2:
        return False
    return exchange.reply()


def test_a_get_that_died_on_a_reused_connection_is_sent_again(origin, carpool):
    o, c = origin(second_dies), carpool()
    with c.client() as client:
        assert client.get(o.url + "/1").status == 200
        assert client.get(o.url + "/2").status == 200
    assert o.targets() == ["/1", "/2", "/2"]
    assert c.metric("carpool_retries_total", origin=o.url, proof="idempotent_reused") == 1
    assert c.metric("carpool_pool_opened_total", origin=o.url, cause="replay") == 1


def test_a_post_that_may_have_been_processed_is_never_sent_again(origin, carpool):
    o, c = origin(second_dies), carpool()
    with c.client() as client:
        assert client.get(o.url + "/1").status == 200
        response = client.request("POST", o.url + "/2", body=b"pay")
        assert response.status == 502 and "connection_terminated" in response.get("proxy-status")
    assert o.targets() == ["/1", "/2"]
    assert c.metric("carpool_retries_total") == 0


def test_max_retries_zero_means_never(origin, carpool):
    o, c = origin(second_dies), carpool(request={"max_retries": 0})
    with c.client() as client:
        assert client.get(o.url + "/1").status == 200
        assert client.get(o.url + "/2").status == 502
    assert o.targets() == ["/1", "/2"]


# ---- a connection's end has one cause ----

def closed(c, o, cause):
    return c.metric("carpool_pool_closed_total", origin=o.url, cause=cause)


@pytest.mark.parametrize("setting, cause", [({"idle_timeout": "200ms"}, "idle"), ({"expire_time": "200ms"}, "expired")])
def test_a_connection_at_rest_is_retired_in_time(origin, carpool, setting, cause):
    o, c = origin(), carpool(pool=setting)
    with c.client() as client:
        assert client.get(o.url + "/").status == 200
    until(lambda: closed(c, o, cause) == 1, 20, cause)
    until(lambda: o.open == 0, what="the origin's end of it")


def test_reuse_never_opens_and_closes_for_its_own_cause(origin, carpool):
    o, c = origin(), carpool(pool={"reuse": "never"}, workers=1)
    with c.client() as client:
        for _ in range(4):
            assert client.get(o.url + "/").status == 200
    assert o.opened == 4 and closed(c, o, "policy") == 4 and closed(c, o, "max_usage") == 0
    opened = c.pool(o.url)["opened"]
    assert (opened["first"], opened["policy"], opened["max_usage"]) == (1, 3, 0), opened
    explained = " ".join(c.get_json("/pools/%s/explain" % urllib.parse.quote(o.url, safe=""))["explanation"])
    assert 'pool.reuse = "never" (now in force)' in explained


def test_min_idle_connections_outlive_idle_timeout_and_are_lent(origin, carpool):
    o = origin()
    c = carpool(origin=[{"uri": o.url, "pool": {"min_idle": 2, "idle_timeout": "300ms"}}], workers=1)
    with c.client() as client:
        assert client.get(o.url + "/").status == 200
        until(lambda: c.pool(o.url)["borrowable"] == 2, what="two that are idle")
        until(lambda: all(one["idle_seconds"] > 1.5 for one in c.get_json("/pools/%s/connections" % urllib.parse.quote(o.url, safe=""))["connections"]),
              what="connections that were idle for five times idle_timeout")
        assert client.get(o.url + "/").status == 200
        # A sweep that comes while a request holds its connection opens another one; no request needed it.
        until(lambda: c.pool(o.url)["active"] == 2, what="two again")
        assert {cause for cause, n in c.pool(o.url)["opened"].items() if n} <= {"warm_up", "min_idle"}


def test_max_usage_bounds_the_requests_of_a_connection(origin, carpool):
    o, c = origin(), carpool(pool={"max_usage": 3})
    with c.client() as client:
        for _ in range(9):
            assert client.get(o.url + "/").status == 200
    assert o.opened == 3 and closed(c, o, "max_usage") >= 2


def test_an_idle_connection_that_the_origin_closes_is_counted_as_its_doing(origin, carpool):
    o, c = origin(), carpool()
    with c.client() as client:
        assert client.get(o.url + "/").status == 200
        o.close_connections()
        until(lambda: closed(c, o, "peer_closed") == 1, what="peer_closed")


def test_a_response_cut_by_its_client_does_not_go_back_to_the_pool(origin, carpool):
    def half(exchange):
        if exchange.request.target == "/half":
            exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
            exchange.stream.more()
            return False
        return exchange.reply()
    o, c = origin(half), carpool()
    with c.client() as client:
        client.ask("GET", o.url + "/half")
        assert client.head().status == 200
        client.reset()
    until(lambda: closed(c, o, "error") == 1, what="the broken connection's end")
    with c.client() as client:
        assert client.get(o.url + "/").body == b"ok"
    assert o.opened == 2


def just_resets(client, again):
    pass


def ends_before_it_resets(client, again):
    client.sock.shutdown(socket.SHUT_WR)


def asks_more_before_it_resets(client, again):
    client.send(again * 1200)  # more than is ever read in advance


@pytest.mark.parametrize("leaves", [just_resets, ends_before_it_resets, asks_more_before_it_resets])
def test_a_client_that_resets_is_noticed_whatever_it_did_before(origin, carpool, gate, leaves):
    def held(exchange):
        gate.enter()
        return False
    o, c = origin(held), carpool(workers=1)
    client = c.client()
    request = b"GET %s/ HTTP/1.1\r\nHost: x\r\n\r\n" % o.url.encode()
    client.send(request)
    gate.wait_for(1)
    leaves(client, request)
    with c.client() as other:  # served after it, by the only worker
        assert other.get("http://%s:%d/" % c.address).status == 508
    client.reset()
    until(lambda: c.metric("carpool_downstream_connections") == 0, what="the client's end")
    until(lambda: c.metric("carpool_pool_connections", origin=o.url, state="borrowed") == 0, what="the slot's return")


# ---- the ledger ----

def test_dials_whose_clients_have_left_are_given_up_but_for_one(carpool):
    blackhole = BlackholeServer()
    url, c = "http://" + blackhole.authority, carpool(workers=2)
    try:
        clients = [c.client() for _ in range(5)]
        for client in clients:
            client.ask("GET", url + "/")
        until(lambda: [row["connecting"] for row in c.get_json("/pools")["pools"]] == [5], what="a dial for each")
        for client in clients:
            client.reset()
        until(lambda: c.pool(url)["connecting"] == 1, what="the one that finds out what the origin does")
        row = c.pool(url)
        assert (row["closed"]["surplus"], row["waiting"]) == (4, 0)
        assert c.metric("carpool_pool_closed_total", origin=url, cause="surplus") == 4
        assert balance(c) == (0, 0)
    finally:
        blackhole.stop()


def balance(c, **labels):
    metrics = c.metrics()

    def total(name):
        return sum(v for (n, ls), v in metrics.items() if n == name and set(labels.items()) <= ls)
    return (total("carpool_pool_opened_total") - total("carpool_pool_closed_total") - total("carpool_pool_connections"),
            total("carpool_pool_borrows_total") - total("carpool_pool_restores_total"))


def test_the_ledger_balances_at_every_scrape_under_a_mixed_load(origin, carpool):
    def mixed(exchange):
        exchange.read_body()
        kind = int(exchange.request.target.rsplit("/", 1)[1]) % 7
        if kind == 1:
            exchange.reply(headers=[("Connection", "close")])
            return False
        if kind == 2 and exchange.nth > 1:
            return False
        if kind == 3:
            exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
            exchange.stream.reset()
            return False
        return exchange.reply(body=exchange.request.target.encode())
    o = origin(mixed)
    c = carpool(pool={"size": 6, "wait_timeout": "30s"})
    wrong, done = [], threading.Event()

    def load(i):
        for k in range(25):
            target = "/%d/%d" % (i, i + k)
            with c.client() as client:
                try:
                    client.ask("GET", o.url + target)
                    if (i + k) % 7 == 5:
                        continue  # disconnects without its response
                    response = client.response()
                    if response.status == 200 and response.complete and response.body not in (b"ok", target.encode()):
                        wrong.append((target, response.body))
                except Gone:
                    pass

    def scrape():
        while not done.is_set():
            if balance(c)[0] != 0:
                wrong.append(("scrape", balance(c)))
    scraper = threading.Thread(target=scrape)
    scraper.start()
    each_in_a_thread(24, load)
    done.set()
    scraper.join()
    assert not wrong
    until(lambda: balance(c) == (0, 0), what="a balanced ledger with no lease out")
    assert o.peak <= 6


def test_every_response_belongs_to_its_request_while_loops_take_connections_over(origin, carpool):
    def restless(exchange):
        exchange.reply(body=exchange.request.target.encode())
        return zlib.crc32(exchange.request.target.encode()) % 5 != 0  # closes from time to time, without notice
    o = origin(restless)
    c = carpool(workers=2, pool={"size": 8})

    def one(i):
        with c.client() as client:
            return [k for k in range(100) if client.get("%s/%d/%d" % (o.url, i, k)).body != b"/%d/%d" % (i, k)]
    assert each_in_a_thread(16, one) == [[]] * 16
    assert o.peak <= 8
