"""An origin with several addresses: dials spread over them, one that only fails is left out, and connections follow the name."""
import pytest
from harness.blackhole import BlackholeServer
from harness.origin import Gate, Origin
from harness.wait import until


def addresses(c, label):
    return {one["address"]: one for one in c.get_json(c.pool_path(label))["addresses"]}


def broken(exchange):
    exchange.read_body()
    exchange.reply(503, b"no")


@pytest.fixture
def replicas(request):
    """replicas(3, handler) -> origins on 127.0.1.1, 127.0.1.2, .. and one port."""
    def start(count, *handlers):
        started = []
        for i in range(count):
            handler = handlers[i % len(handlers)] if handlers else None
            more = {"handler": handler} if handler else {}
            started.append(Origin(host="127.0.1.%d" % (i + 1), port=started[0].port if started else 0, **more))
            request.addfinalizer(started[-1].stop)
        return started
    return start


def test_connections_are_spread_over_the_addresses(replicas, carpool):
    gate = Gate()

    def held(exchange):
        gate.enter()
        exchange.reply()
    all_of_them = replicas(3, held)
    url = "http://many.test:%d" % all_of_them[0].port
    c = carpool(pool={"size": 60}, origin=[{"uri": url, "addresses": [o.authority for o in all_of_them]}])
    clients = [c.client() for _ in range(45)]
    for client in clients:
        client.ask("GET", url + "/")
    gate.wait_for(45)
    # A connection may be dialed ahead, to an address that has fewer than the others. Its origin may accept it later.
    until(lambda: {a: one["open"] for a, one in addresses(c, url).items()} == {o.authority: o.opened for o in all_of_them},
          what="the same connections on both sides")
    opened = [o.opened for o in all_of_them]
    assert 45 <= sum(opened) <= 48 and min(opened) >= 9, opened
    assert c.metric("carpool_origin_addresses", origin=url, state="usable") == 3
    gate.open()
    for client in clients:
        assert client.response().status == 200
        client.close()


def test_an_address_that_only_fails_is_left_out_and_tried_again_later(replicas, carpool):
    all_of_them = replicas(2, broken, None)
    url = "http://half.test:%d" % all_of_them[0].port
    c = carpool(pool={"max_usage": 1}, origin=[{"uri": url, "addresses": [o.authority for o in all_of_them]}])
    with c.client() as client:
        statuses = [client.get(url + "/").status for _ in range(60)]
    assert 503 in statuses and statuses[-20:] == [200] * 20, statuses
    assert statuses.count(503) == 5, "five in a row, and no more"
    assert addresses(c, url)[all_of_them[0].authority]["state"] == "ejected"
    assert c.metric("carpool_origin_addresses", origin=url, state="ejected") == 1
    until(lambda: c.metric("carpool_origin_ejections_total", origin=url) == 1, what="its count")
    until(lambda: any("keeps failing and is ejected" in line for line in c.output), what="its line in the log")


def test_an_address_that_refuses_costs_five_dials_and_no_request(replicas, carpool):
    (good,) = replicas(1)
    url = "http://dead.test:%d" % good.port
    c = carpool(pool={"max_usage": 1}, origin=[{"uri": url, "addresses": [good.authority, "127.0.1.9:%d" % good.port]}])
    with c.client() as client:
        assert [client.get(url + "/").status for _ in range(40)] == [200] * 40
    until(lambda: addresses(c, url)["127.0.1.9:%d" % good.port]["state"] == "ejected", what="its ejection")


def test_an_address_that_does_not_answer_costs_a_quarter_second_five_times_and_no_more(replicas, carpool, request):
    (good,) = replicas(1)
    blackhole = BlackholeServer("127.0.1.8", good.port)
    request.addfinalizer(blackhole.stop)
    url = "http://hole.test:%d" % good.port
    c = carpool(pool={"max_usage": 1}, origin=[{"uri": url, "addresses": [good.authority, blackhole.authority]}])
    with c.client() as client:
        for _ in range(30):
            assert client.get(url + "/").status == 200
        assert addresses(c, url)[blackhole.authority]["state"] == "ejected"
        fast = good.opened
        assert client.get(url + "/").status == 200
    assert good.opened == fast + 1


def test_silent_tunnels_are_no_failures_of_their_address(replicas, carpool):
    all_of_them = replicas(2)
    url = "tcp://silent.test:%d" % all_of_them[0].port
    c = carpool(request={"idle_timeout": "300ms"}, origin=[{"uri": url, "addresses": [o.authority for o in all_of_them]}])
    clients = [c.client() for _ in range(14)]
    for client in clients:
        client.send(b"CONNECT %s HTTP/1.1\r\nHost: x\r\n\r\n" % url.split("//")[1].encode())
        assert client.head().status == 200
    until(lambda: c.metric("carpool_pool_closed_total", origin=url, cause="tunnel_ended") == 14, what="the end of all")
    assert {one["state"] for one in addresses(c, url).values()} == {"usable"}
    assert not c.metric("carpool_pool_failures_total", origin=url)
    for client in clients:
        client.close()


def test_ejection_can_be_switched_off(replicas, carpool):
    all_of_them = replicas(2, broken, None)
    url = "http://half.test:%d" % all_of_them[0].port
    c = carpool(pool={"max_usage": 1, "addresses.eject_after": 0},
                origin=[{"uri": url, "addresses": [o.authority for o in all_of_them]}])
    with c.client() as client:
        statuses = [client.get(url + "/").status for _ in range(60)]
    assert statuses.count(503) > 10, statuses


def test_a_reload_that_takes_an_address_away_ends_its_connections(replicas, carpool):
    gone, stays = replicas(2)
    url = "http://moves.test:%d" % gone.port
    c = carpool(pool={"addresses.gone_after": "1s"}, origin=[{"uri": url, "addresses": [gone.authority]}])
    clients = [c.client() for _ in range(3)]
    for client in clients:
        client.ask("GET", url + "/")
    for client in clients:
        assert client.response().status == 200
    text = c.config.read_text()
    assert gone.authority in text
    c.config.write_text(text.replace(gone.authority, stays.authority))
    assert c.admin("POST", "/reload").status == 200
    until(lambda: gone.open == 0 and c.metric("carpool_pool_closed_total", origin=url, cause="dns_changed") == gone.opened, 20, "their end")
    before = gone.opened
    assert clients[0].get(url + "/").status == 200
    assert (gone.open, gone.opened, stays.opened) == (0, before, 1)
    for client in clients:
        client.close()


def test_a_borrowed_connection_to_an_address_that_is_gone_ends_when_it_comes_back(replicas, carpool):
    gate = Gate()

    def held(exchange):
        gate.enter()
        exchange.reply()
    gone, stays = replicas(2, held, None)
    url = "http://moves.test:%d" % gone.port
    c = carpool(pool={"addresses.gone_after": "1s", "addresses.retire_every": "10s"},
                origin=[{"uri": url, "addresses": [gone.authority]}])
    clients = [c.client() for _ in range(2)]
    for client in clients:
        client.ask("GET", url + "/")
    gate.wait_for(2)
    c.config.write_text(c.config.read_text().replace(gone.authority, stays.authority))
    assert c.admin("POST", "/reload").status == 200
    until(lambda: c.metric("carpool_origin_addresses", origin=url, state="gone") == 1, 20, "the address to be gone")
    assert gone.open == 2, "nothing that is lent is cut"
    gate.open()
    for client in clients:
        assert client.response().status == 200
    until(lambda: c.metric("carpool_pool_closed_total", origin=url, cause="dns_changed") == 1, what="one")
    until(lambda: gone.open == 1, what="its end; the second one waits for its turn")
    until(lambda: c.metric("carpool_pool_closed_total", origin=url, cause="dns_changed") == 2, 15, "the other, as it rests")
    for client in clients:
        client.close()


def test_where_all_fail_nobody_is_left_out(replicas, carpool):
    (bad,) = replicas(1, broken)
    url = "http://one.test:%d" % bad.port
    c = carpool(origin=[{"uri": url, "addresses": [bad.authority]}])
    with c.client() as client:
        assert [client.get(url + "/").status for _ in range(20)] == [503] * 20
    assert addresses(c, url)[bad.authority]["state"] == "usable"


def test_connections_leave_an_address_that_the_name_lost(replicas, resolver, carpool, full):
    gone, stays = replicas(2)
    resolver.table["moves.test"], resolver.ttl = ["127.0.1.1"], 1
    url = "http://moves.test:%d" % gone.port
    c = carpool(inside=resolver.inside, dns={"min_ttl": "1s", "max_ttl": "1s"}, pool={"size": 8}, workers=1)
    clients = [c.client() for _ in range(3)]
    for client in clients:
        client.ask("GET", url + "/")
    for client in clients:
        assert client.response().status == 200
    resolver.table["moves.test"] = ["127.0.1.2"]
    until(lambda: gone.open == 0 and c.metric("carpool_pool_closed_total", origin=url, cause="dns_changed") == gone.opened, 45, "their end")
    before = gone.opened
    assert clients[0].get(url + "/").status == 200
    assert (gone.opened, stays.opened) == (before, 1)
    for client in clients:
        client.close()
