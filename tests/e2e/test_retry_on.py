"""request.retry_on and request.per_try_timeout: what is sent again by configuration, how often, and what never is."""
import threading

import pytest
from harness.h2_origin import H2Origin
from harness.ports import free_port
from harness.wait import until


def responses(*statuses):
    """An origin's handler: these statuses in turn, then 200; None: the connection ends without a byte."""
    left, lock = list(statuses), threading.Lock()

    def handler(exchange):
        exchange.read_body()
        with lock:
            status = left.pop(0) if left else 200
        if status is None:
            return False
        return exchange.reply(status, b"%d" % status)
    return handler


def asked(c, url, method="GET", body=b""):
    with c.client() as client:
        return client.request(method, url, body=body)


def retries(c, proof):
    return c.metric("carpool_retries_total", proof=proof)


def test_nothing_is_retried_by_a_status_unless_it_is_listed(origin, carpool):
    o, c = origin(responses(503)), carpool()
    assert asked(c, o.url + "/").status == 503
    o, c = origin(responses(503, 409)), carpool(request={"retry_on": ["502", "retriable-4xx"]})
    assert [asked(c, o.url + "/").status for _ in range(2)] == [503, 200], "409 is retriable-4xx"
    assert len(o.seen) == 3 and retries(c, "status") == 1
    # The clients may be served by different loops, so the lines of the log come in any order.
    until(lambda: {row["status"]: row.get("retried") for row in c.access_log()} == {503: None, 200: "status"}, what="the reason in the log")


def test_a_status_is_retried_as_often_as_max_retries_says_and_then_passed_on(origin, carpool):
    o, c = origin(responses(503, 503, 503, 503)), carpool(request={"retry_on": ["503"], "max_retries": 2, "retry_budget": 100})
    response = asked(c, o.url + "/")
    assert (response.status, response.body, len(o.seen)) == (503, b"503", 3)


def test_the_connection_of_a_response_that_is_dropped_serves_the_retry(origin, carpool):
    o, c = origin(responses(503, 503)), carpool(request={"retry_on": ["503"], "max_retries": 2, "retry_budget": 100})
    response = asked(c, o.url + "/")
    assert (response.status, response.body) == (200, b"200")
    assert [one.connection for one in o.seen] == [1, 1, 1]
    assert (c.pool(o.url)["created"], c.pool(o.url)["borrows"], c.pool(o.url)["restores"]) == (1, 3, 3)


def test_a_dropped_response_that_is_long_or_breaks_off_delays_no_retry(origin, carpool):
    def handler(exchange):
        exchange.read_body()
        if exchange.nth > 1 or exchange.connection > 1:
            return exchange.reply()
        exchange.send(b"HTTP/1.1 503 No\r\nContent-Length: %d\r\n\r\nx" % (10 if short else 20000))
        return not short  # False: ends the connection
    c = carpool(request={"retry_on": ["503"], "retry_budget": 100})
    for short in (True, False):
        o = origin(handler)
        response = asked(c, o.url + "/")
        assert (response.status, response.body) == (200, b"ok")
        assert [one.connection for one in o.seen] == [1, 2]


def test_a_response_that_asks_for_a_pause_is_passed_on_and_does_not_wait_for_its_end(origin, carpool):
    def later(exchange):
        exchange.read_body()
        return exchange.reply(503, b"later", headers=[("Retry-After", "20")])
    o, c = origin(later), carpool(pool={"cool_down": True, "wait_timeout": "30s"}, request={"retry_on": ["503"]})
    response = asked(c, o.url + "/")
    assert (response.status, response.body, len(o.seen)) == (503, b"later", 1)
    assert c.pool(o.url)["cooling_down"] and c.pool(o.url)["waiting"] == 0


def test_a_post_and_a_request_with_a_body_are_never_repeated_without_proof(origin, carpool):
    o, c = origin(responses(*[503] * 9)), carpool(request={"retry_on": ["503", "reset"], "per_try_timeout": "10s", "retry_idempotent": True})
    for method, body in (("POST", b""), ("POST", b"x"), ("PATCH", b""), ("GET", b"x"), ("PUT", b"x")):
        assert asked(c, o.url + "/", method, body).status == 503
    assert len(o.seen) == 5
    dies = origin(responses(*[None] * 9))
    assert asked(c, dies.url + "/", "POST").status == 502
    assert len(dies.seen) == 1


def test_a_reset_is_retried_if_it_is_listed(origin, carpool):
    o, plain = origin(responses(None)), origin(responses(None))
    c = carpool(origin=[{"uri": o.url, "request": {"retry_on": ["reset"]}}])
    assert (asked(c, o.url + "/").status, asked(c, plain.url + "/").status) == (200, 502)
    assert retries(c, "reset") == 1


def test_a_reset_stream_is_retried_too(carpool):
    left = [8, 2]  # CANCEL, INTERNAL_ERROR

    def handler(stream):
        return stream.reset(left.pop()) if left else stream.reply()
    o = H2Origin(handler)
    c = carpool(upstream={"protocols": ["h2"]}, request={"retry_on": ["reset"], "max_retries": 2})
    assert asked(c, o.url + "/").status == 200
    assert len(o.seen) == 3
    o.stop()


def test_a_refused_dial_is_tried_again_even_for_a_post(carpool):
    port = free_port()
    c = carpool(request={"retry_on": ["connect-failure"], "max_retries": 3, "retry_budget": 100})
    url = "http://127.0.0.1:%d/" % port
    for method in ("GET", "POST"):
        assert asked(c, url, method, b"x" if method == "POST" else b"").status == 502
    assert retries(c, "connect_failure") == 6


def test_an_attempt_that_is_late_is_repeated_and_one_that_must_not_be_is_504(origin, carpool, gate):
    late = threading.Semaphore(2)

    def handler(exchange):
        exchange.read_body()
        if late.acquire(blocking=False):
            gate.enter()
        return exchange.reply()
    o, c = origin(handler), carpool(request={"per_try_timeout": "1s", "max_retries": 1})
    assert asked(c, o.url + "/", "POST", b"x").status == 504
    assert asked(c, o.url + "/").status == 200
    assert [seen.message.method for seen in o.seen] == ["POST", "GET", "GET"]
    assert retries(c, "per_try_timeout") == 1
    until(lambda: len(c.access_log()) == 2, what="two lines")
    posted = next(row for row in c.access_log() if row["status"] == 504)
    assert posted["fault"].startswith("request.per_try_timeout passed while waiting for the response head; not repeated: ")


def hedging(carpool, **tables):
    return carpool(request={"per_try_timeout": "300ms", "hedge": True, "retry_budget": 100}, **tables)


def hedged(c, result):
    return c.metric("carpool_hedged_attempts_total", result=result)


BODY = bytes(range(256)) * 1000


@pytest.mark.parametrize("first_wins", [False, True], ids=["second", "first"])
def test_of_two_attempts_the_client_gets_the_response_that_begins_first(origin, carpool, gate, first_wins):
    both = threading.Barrier(2)

    def handler(exchange):
        exchange.read_body()
        late = exchange.connection == 1
        both.wait(10)  # each attempt has arrived: the first one was not given up
        if late != first_wins:
            gate.enter()
        return exchange.reply(200, BODY, headers=[("X-Attempt", "first" if late else "second")])
    o, c = origin(handler), hedging(carpool)
    response = asked(c, o.url + "/")
    assert (response.status, response.body) == (200, BODY)
    assert response.get("x-attempt") == ("first" if first_wins else "second")
    result = "lost" if first_wins else "won"
    assert hedged(c, result) == 1 and retries(c, "per_try_timeout") == 1
    until(lambda: [row.get("hedge") for row in c.access_log()] == [result], what="the line of the log")
    until(lambda: (c.pool(o.url)["borrowed"], c.pool(o.url)["borrowable"]) == (0, 1), what="one connection is left")


def test_hedged_requests_over_one_session_get_one_response_each(carpool, gate):
    lock, late = threading.Lock(), set()

    def handler(stream):
        path = stream.pseudo[":path"]
        with lock:
            first = path not in late
            late.add(path)
        if first:
            gate.enter()
        return stream.reply(200, path.encode())
    o = H2Origin(handler)
    c = hedging(carpool, upstream={"protocols": ["h2"]})
    for n in range(5):
        response = asked(c, o.url + "/%d" % n)
        assert (response.status, response.body) == (200, b"/%d" % n)
    assert hedged(c, "won") == 5
    o.stop()


def answered_while_the_second_attempt_waits(origin, carpool, gate, handler):
    """Opens the gate of the first attempt, which has the only connection, once the second one waits. Returns the answers of the client, too."""
    o, c, answers = origin(handler), hedging(carpool, pool={"size": 1}), []
    client = threading.Thread(target=lambda: answers.append(asked(c, o.url + "/")))
    client.start()
    gate.wait_for(1)
    until(lambda: c.pool(o.url)["waiting"] == 1, what="the second attempt waits")
    gate.open()
    client.join(10)
    return o, c, answers


def test_a_second_attempt_waits_in_the_queue_of_a_full_pool(origin, carpool, gate):
    def handler(exchange):
        exchange.read_body()
        gate.enter()
        return exchange.reply(200, b"first")
    o, c, answers = answered_while_the_second_attempt_waits(origin, carpool, gate, handler)
    assert [(one.status, one.body) for one in answers] == [(200, b"first")]
    assert hedged(c, "lost") == 1 and c.pool(o.url)["waiting"] == 0 and len(o.seen) == 1


def test_a_second_attempt_without_a_connection_has_failed_when_the_first_one_fails(origin, carpool, gate):
    def handler(exchange):
        exchange.read_body()
        if exchange.connection == 1:
            gate.enter()
            return False
        return exchange.reply(200, b"again")
    o, c, answers = answered_while_the_second_attempt_waits(origin, carpool, gate, handler)
    assert [(one.status, one.body) for one in answers] == [(200, b"again")]
    assert (hedged(c, "failed"), hedged(c, "lost")) == (1, 0), "the client got no response of the late attempt"
    until(lambda: [row.get("hedge") for row in c.access_log()] == ["failed"], what="the line of the log")


def test_hedging_without_a_limit_of_an_attempt_is_refused_at_the_start(carpool):
    c = carpool(start=False, request={"hedge": True})
    assert "request.hedge: is set without per_try_timeout, expected both or none" in c.check()


def test_the_budget_bounds_what_conditions_repeat(origin, carpool):
    o = origin(responses(*[503] * 1000))
    c = carpool(pool={"size": 10, "max_streams": 1}, request={"retry_on": ["503"], "retry_budget": 10})
    with c.client() as client:
        for _ in range(200):
            assert client.get(o.url + "/").status == 503
    repeated = retries(c, "status")
    assert 20 <= repeated <= 10 + 200 / 10 + 2, "the burst, and a tenth"
    assert len(o.seen) == 200 + repeated
    assert c.metric("carpool_retries_denied_total") == 200 - repeated


@pytest.mark.parametrize("word, said", [("418x", "418x"), ("302", "302"), ("5xx", "5xx"), ("", "")])
def test_a_condition_that_is_none_is_refused_at_the_start(carpool, word, said):
    c = carpool(start=False, request={"retry_on": [word]})
    assert "request.retry_on" in c.check() and "`%s` is neither a condition nor a status" % said in c.check()
