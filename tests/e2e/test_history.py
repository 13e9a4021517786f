"""GET /history: the sums over all origins."""
import json
import re
import socket
import subprocess

from harness.carpool import PROGRAM
from harness.wait import until


def requests(c, origin=""):
    seen = c.get_json("/history" + ("?origin=" + origin if origin else ""))
    return round(sum(seen["requests_per_second"]) * seen["every_seconds"])


def run(c, *arguments):
    return subprocess.run([PROGRAM, *arguments, "--config", c.config], capture_output=True, text=True, timeout=20)


def rows(c, named):
    """The cells of the table, with their units."""
    done = run(c, "history", *([named] if named else []))
    assert (done.returncode, done.stderr) == (0, ""), done
    return [] if done.stdout == "none\n" else [re.split(r" {2,}", line.strip()) for line in done.stdout.splitlines()]


def test_the_sum_counts_origins_without_a_label_of_their_own_and_no_request_without_an_origin(carpool, origin):
    first, second, c = origin(), origin(), carpool(metrics={"max_origins": 1})
    until(lambda: c.get_json("/history")["ago_seconds"], 20, "a first point")
    for _ in range(7):
        with socket.create_connection(c.address) as refused:
            refused.sendall(b"GET http://a b/ HTTP/1.1\r\n\r\n")
            assert b" 400 " in refused.recv(4096)
    with c.client() as client:
        for o in (first, second):
            for _ in range(20):
                assert client.get(o.url + "/").status == 200
    until(lambda: requests(c) >= 36 and requests(c, first.url) >= 18, 20, "a point with the requests")
    # A point lasts for five seconds and the time that its timer is late, for which requests() counts too few.
    assert 36 <= requests(c) <= 42
    assert 18 <= requests(c, first.url) <= 21 and requests(c, second.url) == 0


def test_the_command_shows_the_points_of_all_origins_or_of_one_by_its_alias(carpool, origin):
    first, second = origin(), origin()
    c = carpool(origin=[{"uri": first.url, "alias": ["orders"]}])
    with c.client() as client:
        for o in (first, second, second):
            assert client.get(o.url + "/").status == 200
    rate = {first.url: 0.2, second.url: 0.4, "": 0.6}
    for named, key in (("orders", first.url), (second.url, second.url), (None, "")):
        def complete():
            """The rows, once they have all requests: two points may share them."""
            seen = rows(c, named)
            total = sum(float(row[1].removesuffix("/s")) for row in seen[1:])
            assert total < rate[key] + 0.02, (named, seen)
            return seen if total > rate[key] * 0.85 else None  # a part has two thirds; a point is longer if its timer is late
        seen = until(complete, 20, "the requests of %s" % named)
        assert seen[0] == ["AGO", "REQUESTS", "FAILED", "P50", "P99", "WAITING", "BUSY", "OPEN"] and all(len(row) == 8 for row in seen)
    done = run(c, "history", "orders", "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["origin"] == first.url
    for unknown in ("http://nobody.example", "https://127.0.0.1:1"):
        refused = run(c, "history", unknown)
        assert (refused.returncode, refused.stdout, refused.stderr) == (3, "", "carpool: no pool of %s\n" % unknown), refused
    spelt = run(c, "history", second.url + "/", "--json")
    assert spelt.returncode == 0 and json.loads(spelt.stdout)["origin"] == second.url
    refused = run(c, "history", "ordres")
    assert (refused.returncode, refused.stdout) == (3, "") and "did you mean `orders`?" in refused.stderr and refused.stderr.count("\n") == 1
