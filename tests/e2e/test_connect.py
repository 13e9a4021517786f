"""CONNECT: bytes both ways until both sides have closed; the slot is held meanwhile, and the same rules guard the target."""
import contextlib
import socket
import threading
from urllib.parse import quote

import pytest
from harness.ports import free_port
from harness.wait import until


def echo(stream):
    while stream.more():
        stream.send(stream.buffer)
        stream.buffer = b""
    stream.send(b"bye")
    stream.close()


def tunnel(client, port, behind=b""):
    client.send(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n%s" % (port, port, behind))
    return client.head()


def test_bytes_pass_unchanged_and_a_half_close_is_kept(peer, carpool):
    c = carpool()
    with c.client() as client:
        response = tunnel(client, peer(echo), b"sent right behind; ")
        assert response.status == 200
        assert response.get("content-length") is None and response.get("transfer-encoding") is None
        blob = bytes(range(256)) * 4096
        threading.Thread(target=client.send, args=(blob,), daemon=True).start()
        assert client.exactly(19 + len(blob)) == b"sent right behind; " + blob
        client.sock.shutdown(socket.SHUT_WR)
        assert client.exactly(3) == b"bye"
        assert client.at_end()
    until(lambda: c.metric("carpool_pool_closed_total", cause="tunnel_ended") == 1, what="tunnel_ended")
    assert c.metric("carpool_pool_connections") == 0


def test_whoever_speaks_first_is_heard(peer, carpool):
    def greet(stream):
        stream.send(b"220 hello\r\n")
        stream.close()
    c = carpool()
    with c.client() as client:
        assert tunnel(client, peer(greet)).status == 200
        assert client.line() == "220 hello"
        assert client.at_end()


def test_a_tunnel_holds_its_slot_under_the_cap(peer, carpool):
    c, port = carpool(pool={"size": 1, "wait_timeout": "1s"}), peer(echo)
    with c.client() as first, c.client() as second:
        assert tunnel(first, port).status == 200
        assert c.metric("carpool_pool_connections", origin="tcp://127.0.0.1:%d" % port, state="tunnel") == 1
        refused = tunnel(second, port)
        assert refused.status == 503 and refused.get("retry-after")


def test_a_client_may_have_more_tunnels_to_one_host_than_an_origin_has_connections(peer, carpool):
    c, port = carpool(), peer(echo)
    clients = [c.client() for _ in range(150)]
    for client in clients:
        assert tunnel(client, port).status == 200
    assert c.metric("carpool_pool_size", origin="tcp://127.0.0.1:%d" % port) > 150
    for client in clients:
        client.close()


def test_a_size_that_is_written_limits_tunnels_also_if_it_is_the_default(peer, carpool):
    port = peer(echo)
    label = "tcp://127.0.0.1:%d" % port
    c = carpool(origin=[{"uri": label, "pool": {"size": 64, "wait_timeout": "1s"}}])
    declared = c.get_json("/pools/" + quote(label, safe=""))["size"]
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(c.client()) for _ in range(65)]
        assert [tunnel(client, port).status for client in clients] == [200] * 64 + [503]
        assert (declared, c.pool(label)["size"]) == (64, 64)


def test_a_declared_tcp_origin_shows_the_limit_that_it_will_have(peer, carpool):
    port = peer(echo)
    label = "tcp://127.0.0.1:%d" % port
    c = carpool(origin=[{"uri": label}])
    declared = c.get_json("/pools/" + quote(label, safe=""))["size"]
    with c.client() as client:
        assert tunnel(client, port).status == 200
        assert c.pool(label)["size"] == declared > 64


def test_a_tunnel_beyond_the_limit_waits_in_line_for_the_next_one_that_ends(peer, carpool):
    c, port = carpool(pool={"max_tunnels": 2, "wait_timeout": "20s"}), peer(echo)
    with c.client() as first, c.client() as second, c.client() as third, c.client() as fourth:
        assert tunnel(first, port).status == 200 and tunnel(second, port).status == 200
        for client in (third, fourth):
            client.send(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % (port, port))
            until(lambda n=3 if client is third else 4: c.metric("carpool_pool_waiting") == n - 2, what="its place in line")
        first.close()
        assert third.head().status == 200
        second.close()
        assert fourth.head().status == 200


def test_a_tcp_origin_has_a_cap_an_address_and_a_warm_up_of_its_own(peer, carpool):
    port = peer(echo)
    c = carpool(origin=[{"uri": "tcp://db.example.internal:5432", "addresses": ["127.0.0.1:%d" % port],
                         "pool": {"size": 1, "wait_timeout": "1s", "warm_up": {"enabled": True, "size": 1}}}])
    until(lambda: c.metric("carpool_pool_opened_total", cause="warm_up") == 1, what="a warm connection")
    with c.client() as first, c.client() as second:
        for client in (first, second):
            client.send(b"CONNECT db.example.internal:5432 HTTP/1.1\r\nHost: db.example.internal:5432\r\n\r\n")
            if client is first:
                assert client.head().status == 200
                client.send(b"select 1")
                assert client.exactly(8) == b"select 1"
        assert second.head().status == 503
        row, = c.get_json("/pools")["pools"]
        assert (row["origin"], row["size"], row["active"]) == ("tcp://db.example.internal:5432", 1, 1)
    assert c.metric("carpool_pool_opened_total") == 1


def test_a_target_that_refuses_is_502(carpool):
    with carpool().client() as client:
        assert tunnel(client, free_port()).status == 502


def test_what_follows_a_refused_connect_is_no_request(origin, carpool):
    o, c, port = origin(), carpool(), free_port()
    with c.client() as client:
        client.send(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n"
                    b"GET %s/meant-for-the-tunnel HTTP/1.1\r\nHost: x\r\n\r\n" % (port, port, o.url.encode()))
        refused = client.response()
        assert refused.status == 502 and not refused.keeps_alive()
        assert client.at_end()
    assert o.opened == 0


@pytest.mark.parametrize("target", ["127.0.0.1", "/x", "127.0.0.1:0", "127.0.0.1:99999", "u@127.0.0.1:80", ":80"])
def test_targets_that_are_no_authority_are_400(carpool, target):
    with carpool().client() as client:
        client.send(("CONNECT %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % target).encode())
        assert client.head().status == 400


def test_a_listener_without_connect_and_ports_that_are_not_listed_are_403(peer, carpool):
    port = peer(echo)
    for listen in ({"connect": False}, {"connect_ports": [port + 1]}):
        with carpool(listen=listen).client() as client:
            assert tunnel(client, port).status == 403
    with carpool(listen={"connect_ports": [port]}).client() as client:
        assert tunnel(client, port).status == 200


def test_aliases_do_not_apply(origin, carpool):
    o = origin()
    c = carpool(origin=[{"uri": o.url, "alias": ["name.invalid"]}])
    with c.client() as client:
        client.send(b"CONNECT name.invalid:80 HTTP/1.1\r\nHost: name.invalid:80\r\n\r\n")
        assert client.head().status in (502, 504)
    assert o.opened == 0


def test_metadata_addresses_are_403_without_a_packet(carpool):
    with carpool().client() as client:
        client.send(b"CONNECT 169.254.169.254:80 HTTP/1.1\r\nHost: 169.254.169.254:80\r\n\r\n")
        assert client.head().status == 403


def test_a_silent_tunnel_ends_after_the_idle_timeout(peer, carpool):
    c = carpool(request={"idle_timeout": "300ms"})
    with c.client() as client:
        assert tunnel(client, peer(echo)).status == 200
        assert client.at_end()
    until(lambda: c.metric("carpool_pool_connections") == 0, what="an empty pool")


def test_what_a_client_sends_after_its_peer_ended_arrives_whole(peer, carpool):
    arrived, sent = {}, threading.Event()

    def hears_late(stream):
        size = int(stream.line())
        stream.sock.shutdown(socket.SHUT_WR)
        sent.wait(10)
        count = 0
        while stream.more():
            count += len(stream.buffer)
            stream.buffer = b""
        arrived[size] = count
        stream.close()
    c, port = carpool(), peer(hears_late)
    sizes = range(1_000_000, 4_000_000, 150_000)  # some of it is buffered in the proxy when the end comes
    clients = []
    for size in sizes:
        clients.append(client := c.client())
        assert tunnel(client, port, b"%d\n" % size).status == 200
        assert client.at_end()

    def give(client, size):
        client.send(b"x" * size)
        client.sock.shutdown(socket.SHUT_WR)
    threads = [threading.Thread(target=give, args=pair) for pair in zip(clients, sizes)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(0.05)  # a client that no longer reads is kept until the peer closes
    sent.set()
    until(lambda: len(arrived) == len(sizes), what="every end")
    assert arrived == {size: size for size in sizes}
    for client in clients:
        client.close()
