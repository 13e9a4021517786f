"""Names: the results of DNS and /etc/hosts are followed, address by address, and again when they change."""
import pytest
from harness.blackhole import BlackholeServer
from harness.wait import until


def test_a_name_is_resolved_once_while_its_answer_lives(origin, resolver, carpool):
    o = origin()
    resolver.table["one.test"], resolver.ttl = ["127.0.0.1"], 300
    c = carpool(inside=resolver.inside, pool={"max_usage": 1})
    with c.client() as client:
        for _ in range(5):
            assert client.get("http://one.test:%d/" % o.port).status == 200
    assert o.opened == 5 and resolver.asked.count("one.test") <= 2  # A and AAAA


def test_hosts_go_before_the_name_server(origin, resolver, carpool):
    o = origin()
    resolver.hosts("127.0.0.1 localhost\n127.0.0.1 known.test alias-of-known\n")
    c = carpool(inside=resolver.inside)
    with c.client() as client:
        for name in ("known.test", "KNOWN.test.", "alias-of-known"):
            assert client.get("http://%s:%d/" % (name, o.port)).status == 200, name
    assert not {"known.test", "alias-of-known"} & set(resolver.asked)


def test_the_next_address_is_tried_when_one_refuses(origin, resolver, carpool):
    o = origin()
    resolver.table["two.test"] = ["::1", "127.0.0.9", "127.0.0.1"]  # no listener on the first two
    c = carpool(inside=resolver.inside)
    with c.client() as client:
        assert client.get("http://two.test:%d/" % o.port).status == 200
    assert o.opened == 1


def test_an_address_that_does_not_answer_does_not_hold_the_others_up(origin, resolver, carpool, request):
    o = origin()
    blackhole = BlackholeServer("127.0.0.8", o.port)
    request.addfinalizer(blackhole.stop)
    resolver.table["race.test"] = ["127.0.0.8", "127.0.0.1"]
    c = carpool(inside=resolver.inside, pool={"connect_timeout": "10s", "addresses.balance": "none"}, request={"timeout": "5s"})
    for _ in range(3):  # whichever of the two is tried first
        with c.client() as client:
            assert client.get("http://race.test:%d/" % o.port, ("Connection", "close")).status == 200
    assert c.metric("carpool_pool_connections_peak") <= 1  # racing attempts share one place


@pytest.mark.parametrize("address", ["::1", "127.0.0.1"])
def test_either_family_will_do(resolver, carpool, address):
    from harness.origin import Origin
    o = Origin(host=address)
    resolver.table["only.test"] = [address]
    c = carpool(inside=resolver.inside)
    with c.client() as client:
        assert client.get("http://only.test:%d/" % o.port).status == 200
    o.stop()


def test_a_name_that_moves_is_followed_after_its_time(origin, resolver, carpool):
    first, resolver.ttl = origin(), 1
    from harness.origin import Origin
    second = Origin(host="127.0.0.9", port=first.port)
    resolver.table["moving.test"] = ["127.0.0.1"]
    c = carpool(inside=resolver.inside, dns={"min_ttl": "1s", "max_ttl": "1s"}, pool={"max_usage": 1})
    url = "http://moving.test:%d/" % first.port
    with c.client() as client:
        assert client.get(url).status == 200 and len(first.seen) == 1
        resolver.table["moving.test"] = ["127.0.0.9"]
        until(lambda: client.get(url).status == 200 and second.seen, 15, "the move")
    second.stop()


def test_a_known_name_outlives_its_name_server(origin, resolver, carpool):
    o = origin()
    resolver.table["stale.test"] = ["127.0.0.1"]
    c = carpool(inside=resolver.inside, dns={"min_ttl": "1s", "max_ttl": "1s", "stale_for": "10m"}, pool={"max_usage": 1})
    url = "http://stale.test:%d/" % o.port
    with c.client() as client:
        assert client.get(url).status == 200
        resolver.mute = True
        asked = len(resolver.asked)
        until(lambda: client.get(url).status == 200 and len(resolver.asked) > asked, 15, "a question without an answer")
        assert client.get(url).status == 200
