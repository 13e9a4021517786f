"""pool.max_streams, the limit of requests on one HTTP/2 session, across a reload."""
import concurrent.futures

import pytest
from harness.h2_origin import H2Origin
from harness.origin import Gate
from harness.wait import until


@pytest.mark.parametrize("before, after", [(8, 2), (2, 8)])
def test_a_reload_changes_the_limit_of_streams_of_an_open_session(carpool, before, after):
    gate = Gate()

    def held(stream):
        gate.enter()
        stream.reply()
    o = H2Origin(held)
    c = carpool(workers=2, upstream={"protocols": ["h2"]}, pool={"size": 1, "max_streams": before, "wait_timeout": "20s"})
    gate.let(1)
    with c.client() as client:
        client.get(o.url + "/")
    c.config.write_text(c.config.read_text().replace("max_streams = %d" % before, "max_streams = %d" % after))
    assert c.admin("POST", "/reload").status == 200

    def one(i):
        with c.client() as client:
            return client.get("%s/%d" % (o.url, i)).status
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        responses = [pool.submit(one, i) for i in range(12)]
        gate.wait_for(after)
        until(lambda: c.metric("carpool_pool_waiting", origin=o.url) == 12 - after, what="the others in the queue")
        assert gate.inside == after
        gate.open()
    assert [a.result() for a in responses] == [200] * 12 and o.opened == 1
    o.stop()
