"""A connection that a client authenticated by NTLM or Negotiate serves that client alone, to its end."""
import pytest
from harness.wait import until


@pytest.fixture
def guarded(origin):
    """An origin that authenticates connections, not requests: by the token sent on them."""
    def start(scheme):
        owners = {}

        def handler(exchange):
            token = exchange.request.get("authorization", "").removeprefix(scheme + " ")
            if exchange.request.target == "/open":
                return exchange.reply()
            if exchange.request.target == "/drop":
                return False
            if exchange.request.target == "/last":
                exchange.reply(headers=[("Connection", "close")])
                return False
            if exchange.connection not in owners and not token:
                return exchange.reply(401, b"who?", [("WWW-Authenticate", scheme)])
            owner = owners.setdefault(exchange.connection, token)
            return exchange.reply(body=("%s on %d" % (owner, exchange.connection)).encode())
        return origin(handler)
    return start


def log_in(client, o, scheme, name):
    assert client.get(o.url + "/").status == 401
    return client.get(o.url + "/", ("Authorization", "%s %s" % (scheme, name))).body.decode()


@pytest.mark.parametrize("scheme", ["NTLM", "Negotiate"])
def test_two_clients_never_share_an_authenticated_connection(guarded, carpool, scheme):
    o, c = guarded(scheme), carpool(workers=1)
    with c.client() as alice, c.client() as bob:
        a, b = log_in(alice, o, scheme, "alice"), log_in(bob, o, scheme, "bob")
        assert a.startswith("alice on") and b.startswith("bob on") and a.split()[-1] != b.split()[-1]
        for _ in range(5):
            assert alice.get(o.url + "/").body.decode() == a
            assert bob.get(o.url + "/").body.decode() == b
        with c.client() as carol:
            assert carol.get(o.url + "/").status == 401
        assert c.metric("carpool_pool_connections", origin=o.url) >= 2
    until(lambda: c.metric("carpool_pool_closed_total", origin=o.url, cause="private") == 3, what="three private ends")


def test_a_private_connection_counts_in_the_cap(guarded, carpool):
    o, c = guarded("NTLM"), carpool(workers=1, pool={"size": 1, "wait_timeout": "1s"})
    with c.client() as alice:
        log_in(alice, o, "NTLM", "alice")
        with c.client() as bob:
            assert bob.get(o.url + "/open").status == 503
        assert alice.get(o.url + "/").body == b"alice on 1"
    until(lambda: c.metric("carpool_pool_connections", origin=o.url) == 0, what="alice's end")
    with c.client() as bob:
        assert bob.get(o.url + "/open").status == 200


def test_basic_authentication_stays_anonymous_to_the_pool(origin, carpool):
    def basic(exchange):
        if not exchange.request.get("authorization"):
            return exchange.reply(401, b"who?", [("WWW-Authenticate", "Basic realm=x")])
        return exchange.reply()
    o, c = origin(basic), carpool(workers=1)
    with c.client() as alice, c.client() as bob:
        assert alice.get(o.url + "/").status == 401
        assert bob.get(o.url + "/", ("Authorization", "Basic eDp5")).status == 200
    assert o.opened == 1


@pytest.mark.parametrize("scheme", ["NTLM", "Negotiate"])
def test_who_shows_credentials_before_being_asked_owns_the_connection_too(guarded, carpool, scheme):
    o, c = guarded(scheme), carpool(workers=1)
    with c.client() as alice, c.client() as bob:
        assert alice.get(o.url + "/", ("Authorization", scheme + " alice")).body == b"alice on 1"
        assert bob.get(o.url + "/").status == 401
        assert alice.get(o.url + "/").body == b"alice on 1"


@pytest.mark.parametrize("fields", [
    [("Authorization", "Basic eDp5"), ("Authorization", "%s alice")],
    [("Authorization", "Basic eDp5, %s alice")],
    [("Authorization", "Basic eDp5"), ("Authorization", "Bearer x, , %s alice")],
    [("Proxy-Authorization", "%s alice")],
], ids=["second-field", "in-a-list", "second-field-in-a-list", "proxy"])
@pytest.mark.parametrize("scheme", ["NTLM", "nEgOtIaTe"])
def test_credentials_of_a_connection_are_found_in_every_field_and_list(origin, carpool, scheme, fields):
    o, c = origin(), carpool(workers=1)
    with c.client() as alice, c.client() as bob:
        assert alice.get(o.url + "/", *[(n, v % scheme if "%s" in v else v) for n, v in fields]).status == 200
        assert bob.get(o.url + "/").status == 200
        assert alice.get(o.url + "/").status == 200
    assert [seen.connection for seen in o.seen] == [1, 2, 1]


@pytest.mark.parametrize("name", ["WWW-Authenticate", "Proxy-Authenticate"])
def test_a_challenge_is_found_in_every_field_and_list(origin, carpool, name):
    o = origin(lambda exchange: exchange.reply(401, b"who?", [(name, "Basic realm=x"), (name, "Digest a=b, NTLM")]))
    c = carpool(workers=1)
    with c.client() as alice, c.client() as bob:
        for client in (alice, bob, alice):
            assert client.get(o.url + "/").status == 401
    assert [seen.connection for seen in o.seen] == [1, 2, 1]


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_bound_connection_that_ends_without_an_answer_ends_the_client_in_the_same_way(guarded, carpool, method):
    o, c = guarded("NTLM"), carpool(workers=1)
    with c.client() as alice:
        log_in(alice, o, "NTLM", "alice")
        alice.ask(method, o.url + "/drop", body=b"x" * 100 if method == "POST" else b"")
        assert alice.at_end(), "no 502: the client decides whether it repeats the request, as without a proxy"
    assert o.targets().count("/drop") == 1, "the origin may have processed it"
    until(lambda: any('/drop"' in line and '"status":444' in line for line in c.output), what="its line")
    assert c.metric("carpool_requests_total", origin=o.url, code="444") == 1
    with c.client() as alice:
        assert log_in(alice, o, "NTLM", "alice").startswith("alice on"), "authenticates anew"


def test_a_bound_connection_that_the_origin_closes_when_idle_ends_the_client(guarded, carpool):
    o, c = guarded("Negotiate"), carpool(workers=1)
    with c.client() as alice, c.client() as bob:
        log_in(alice, o, "Negotiate", "alice")
        assert bob.get(o.url + "/open").status == 200
        o.close_connections()
        assert alice.at_end()
        assert bob.get(o.url + "/open").status == 200, "nobody else"
    until(lambda: c.metric("carpool_downstream_connections") == 0, what="both ends")


def test_the_last_answer_of_a_bound_connection_is_the_clients_last(guarded, carpool):
    o, c = guarded("NTLM"), carpool(workers=1)
    with c.client() as alice:
        log_in(alice, o, "NTLM", "alice")
        response = alice.get(o.url + "/last")
        assert response.status == 200 and not response.keeps_alive() and alice.at_end()
    with c.client() as bob:
        assert bob.get(o.url + "/last").keeps_alive(), "it is bound to nobody"


def test_a_bound_connection_that_times_out_ends_the_client_with_its_error(origin, carpool, gate):
    def handler(exchange):
        if exchange.request.target == "/slow":
            gate.enter()
        exchange.reply()
    o, c = origin(handler), carpool(workers=1, request={"response_header_timeout": "2s"})
    with c.client() as alice:
        assert alice.get(o.url + "/", ("Authorization", "NTLM alice")).status == 200
        response = alice.get(o.url + "/slow")
        assert response.status == 504 and not response.keeps_alive() and alice.at_end()


def test_each_exchange_of_a_bound_connection_is_logged_as_a_further_use_of_it(guarded, carpool):
    o, c = guarded("NTLM"), carpool(workers=1)
    with c.client() as alice:
        log_in(alice, o, "NTLM", "alice")
        for _ in range(2):
            assert alice.get(o.url + "/open").status == 200
    until(lambda: len(c.access_log()) == 4, what="four lines")
    lines = c.access_log()
    assert [line["reuse"] for line in lines] == [0, 1, 2, 3]
    assert [line.get("opened") for line in lines] == ["first", None, None, None]
    assert len({line["connection"] for line in lines}) == 1
