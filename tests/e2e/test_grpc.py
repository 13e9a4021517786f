"""gRPC with its own library on both ends: h2c to carpool, h2c or TLS to the origin."""
import concurrent.futures
import pathlib
import threading

import pytest
from harness.h2_client import RST, H2Client, block, frame, headers
from harness.h2_client import request as head_of
from harness.h2_raw import RawClient, RawOrigin
from harness.ports import free_port
from harness.wait import until

grpc = pytest.importorskip("grpc")

STREAMS = 1000


class Echo(grpc.GenericRpcHandler):
    """Bytes in, bytes out; no compiler of interfaces needed."""

    def __init__(self):
        self.arrived, self.release = threading.Semaphore(0), threading.Event()

    def service(self, details):
        name = details.method.rsplit("/", 1)[1]
        return {
            "Unary": grpc.unary_unary_rpc_method_handler(lambda r, _: r[::-1]),
            "Many": grpc.unary_stream_rpc_method_handler(lambda r, _: (b"%d" % i for i in range(int(r)))),
            "Sum": grpc.stream_unary_rpc_method_handler(lambda rs, _: b"%d" % sum(int(r) for r in rs)),
            "Talk": grpc.stream_stream_rpc_method_handler(lambda rs, _: (r.upper() for r in rs)),
            "Fail": grpc.unary_unary_rpc_method_handler(self.fail),
            "Part": grpc.unary_stream_rpc_method_handler(self.part),
            "Wait": grpc.unary_unary_rpc_method_handler(self.wait),
        }.get(name)

    def fail(self, _, context):
        context.set_trailing_metadata((("why", "because"),))
        context.abort(grpc.StatusCode.FAILED_PRECONDITION, "not now")

    def part(self, _, context):
        yield b"1"
        context.set_trailing_metadata((("retry-after", "7"),))

    def wait(self, request, _):
        self.arrived.release()
        self.release.wait(60)
        return request


def serve(credentials=None, threads=8):
    handler = Echo()
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(threads))
    server.add_generic_rpc_handlers((handler,))
    port = server.add_secure_port("127.0.0.1:0", credentials) if credentials else server.add_insecure_port("127.0.0.1:0")
    server.start()
    return server, handler, port


@pytest.fixture(params=["h2c", "tls"])
def service(request, carpool, pki):
    """A server behind carpool, and a channel to it through carpool."""
    tls = request.param == "tls"
    credentials = None
    if tls:
        files = [(pathlib.Path(pki.server_key).read_bytes(), pathlib.Path(pki.server).read_bytes())]
        credentials = grpc.ssl_server_credentials(files)
    server, handler, port = serve(credentials, 32)
    uri = "%s://%s:%d" % ("https" if tls else "http", "localhost" if tls else "127.0.0.1", port)
    c = carpool(listen={"origin": uri}, upstream={"protocols": ["h2"], **({"tls": {"ca_file": pki.ca}} if tls else {})})
    with grpc.insecure_channel("%s:%d" % c.address) as channel:
        yield channel, handler, c
    server.stop(None)


def test_all_four_kinds_of_calls(service):
    channel, _, _ = service
    assert channel.unary_unary("/t.Echo/Unary")(b"abc", timeout=20) == b"cba"
    assert list(channel.unary_stream("/t.Echo/Many")(b"500", timeout=20)) == [b"%d" % i for i in range(500)]
    assert channel.stream_unary("/t.Echo/Sum")((b"%d" % i for i in range(300)), timeout=20) == b"%d" % sum(range(300))
    assert list(channel.stream_stream("/t.Echo/Talk")((b"a%d" % i for i in range(200)), timeout=20))[-1] == b"A199"
    assert channel.unary_unary("/t.Echo/Unary")(b"x" * 3_000_000, timeout=30) == b"x" * 3_000_000


def test_a_conversation_needs_no_end_of_the_request(service):
    channel, _, _ = service
    turn = threading.Semaphore(1)

    def ask():
        for word in (b"one", b"two", b"three"):
            turn.acquire()
            yield word
    for got, word in zip(channel.stream_stream("/t.Echo/Talk")(ask(), timeout=20), (b"ONE", b"TWO", b"THREE")):
        assert got == word
        turn.release()


def test_errors_trailers_and_deadlines_arrive(service):
    channel, handler, _ = service
    with pytest.raises(grpc.RpcError) as raised:
        channel.unary_unary("/t.Echo/Fail")(b"", timeout=20)
    assert raised.value.code() == grpc.StatusCode.FAILED_PRECONDITION
    assert dict(raised.value.trailing_metadata())["why"] == "because"
    with pytest.raises(grpc.RpcError) as raised:
        channel.unary_unary("/t.Echo/Missing")(b"", timeout=20)
    assert raised.value.code() == grpc.StatusCode.UNIMPLEMENTED
    with pytest.raises(grpc.RpcError) as raised:
        channel.unary_unary("/t.Echo/Wait")(b"", timeout=0.5)
    assert raised.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    handler.release.set()


def test_metadata_behind_a_message_arrives_also_under_a_name_that_http_permits_in_no_trailer(service):
    call = service[0].unary_stream("/t.Echo/Part")(b"", timeout=20)
    assert list(call) == [b"1"] and dict(call.trailing_metadata())["retry-after"] == "7"


def test_a_thousand_streams_share_few_connections(carpool):
    server, handler, port = serve(threads=STREAMS + 8)
    c = carpool(listen={"origin": "http://127.0.0.1:%d" % port}, upstream={"protocols": ["h2"]},
                pool={"size": 4, "max_streams": 250, "wait_timeout": "60s"})
    channels = [grpc.insecure_channel("%s:%d" % c.address, [("grpc.use_local_subchannel_pool", 1)]) for _ in range(8)]
    calls = [channels[i % 8].unary_unary("/t.Echo/Wait").future(b"%d" % i, timeout=60) for i in range(STREAMS)]
    for _ in range(STREAMS):
        assert handler.arrived.acquire(timeout=60), "every stream reaches the origin at once"
    assert c.metric("carpool_pool_connections", origin="http://127.0.0.1:%d" % port) <= 4
    handler.release.set()
    assert [f.result() for f in calls] == [b"%d" % i for i in range(STREAMS)]
    for channel in channels:
        channel.close()
    server.stop(None)


def fails(channel, path="/t.Echo/Unary", timeout=20):
    with pytest.raises(grpc.RpcError) as raised:
        channel.unary_unary(path)(b"", timeout=timeout)
    return raised.value


def test_an_origin_that_refuses_is_unavailable_and_the_text_says_why(carpool):
    port = free_port()
    c = carpool(listen={"origin": "http://127.0.0.1:%d" % port}, upstream={"protocols": ["h2"]})
    with grpc.insecure_channel("%s:%d" % c.address) as channel:
        error = fails(channel)
    assert error.code() == grpc.StatusCode.UNAVAILABLE
    assert error.details().startswith("carpool: connection_refused: TCP connect to 127.0.0.1:%d: " % port), error.details()
    told = dict(error.initial_metadata()) | dict(error.trailing_metadata())
    assert told["proxy-status"].startswith("carpool; error=connection_refused; details="), told
    until(lambda: [(r["status"], r.get("grpc_status")) for r in c.access_log()] == [(502, 14)], what="both codes in the log")
    assert c.metric("carpool_requests_total", code="502") == 1
    with H2Client(c.address) as client:  # the same origin and another kind of request
        assert client.get(authority="127.0.0.1:%d" % port).status == 502


def test_each_own_refusal_has_its_own_code(carpool):
    server, handler, port = serve()
    there = "http://127.0.0.1:%d" % port
    c = carpool(listen={"origin": there}, upstream={"protocols": ["h2"]}, pool={"size": 1, "max_streams": 1, "wait_timeout": "300ms"},
                origin=[{"uri": there, "allow": ["POST /t.Echo/*"]}], request={"timeout": "5s"})
    with grpc.insecure_channel("%s:%d" % c.address) as channel:
        held = channel.unary_unary("/t.Echo/Wait").future(b"", timeout=20)
        assert handler.arrived.acquire(timeout=10)
        full, denied = fails(channel), fails(channel, "/other/Unary")
        assert (full.code(), full.details()) == (grpc.StatusCode.UNAVAILABLE, "carpool: connection_limit_reached: wait timed out")
        assert denied.code() == grpc.StatusCode.PERMISSION_DENIED, denied.details()
        assert held.exception(20).code() == grpc.StatusCode.DEADLINE_EXCEEDED, "request.timeout"
        assert held.details().startswith("carpool: http_response_timeout: request.timeout passed while"), held.details()
        handler.release.set()
        assert fails(channel, "/t.Echo/Fail").code() == grpc.StatusCode.FAILED_PRECONDITION
    seen = {503: 14, 403: 7, 504: 4, 200: 9}  # the last is the origin's own, in its trailers
    until(lambda: {r["status"]: r.get("grpc_status") for r in c.access_log()} == seen, what="both codes in the log")
    server.stop(None)


@pytest.mark.parametrize("order", [1, -1], ids=["type-first", "type-behind"])
def test_a_call_whose_head_is_too_large_is_told_so_in_grpcs_form(carpool, order):
    c = carpool(listen={"max_header_bytes": "4KiB"})
    fields = [(b"content-type", b"application/grpc"), (b"x-large", b"y" * 8000)]
    with RawClient(c.address) as client:
        client.send(headers(1, head_of(b"a.test", b"/t.Echo/Unary", method=b"POST", more=fields[::order])))
        assert client.over(1) and not client.data[1]
    told = dict(client.heads[1][0])
    assert (told[":status"], told["grpc-status"]) == ("200", "8")
    assert told["grpc-message"] == "carpool: http_request_error: the request head exceeds a limit"
    until(lambda: [(r["status"], r["grpc_status"]) for r in c.access_log()] == [(431, 8)], what="both codes in the log")


# After 14, UNAVAILABLE, the library may repeat a call; the origin has read these.
@pytest.mark.parametrize("error,code", [(0, "13"), (2, "13"), (7, "14"), (8, "1"), (11, "8"), (12, "7")])
def test_a_call_that_its_origin_resets_has_the_code_of_grpcs_own_mapping(carpool, error, code):
    o = RawOrigin(lambda peer, stream: peer.send(frame(RST, 0, stream, error.to_bytes(4, "big"))))
    c = carpool(upstream={"protocols": ["h2"]})
    with RawClient(c.address) as client:
        kind = [(b"content-type", b"application/grpc")]
        client.send(headers(1, head_of(o.authority.encode(), b"/t.Echo/Unary", method=b"POST", more=kind)))
        assert client.over(1)
    told = dict(client.heads[1][0])
    assert (told[":status"], told["grpc-status"]) == ("200", code)
    until(lambda: [r["grpc_status"] for r in c.access_log()] == [int(code)], what="the code in the log")
    o.stop()


# The same after the head of the response, when only a reset is left; none that lets the library repeat the call.
@pytest.mark.parametrize("error,passed", [(0, 2), (2, 2), (7, 2), (8, 8), (11, 11), (12, 12)])
def test_a_call_that_its_origin_resets_inside_the_response_is_reset_for_the_same_reason(carpool, error, passed):
    def reset(peer, stream):
        peer.send(headers(stream, block([(b":status", b"200"), (b"content-type", b"application/grpc")]), end=False),
                  frame(RST, 0, stream, error.to_bytes(4, "big")))
    o = RawOrigin(reset)
    c = carpool(upstream={"protocols": ["h2"]})
    with RawClient(c.address) as client:
        kind = [(b"content-type", b"application/grpc")]
        client.send(headers(1, head_of(o.authority.encode(), b"/t.Echo/Unary", method=b"POST", more=kind)))
        assert not client.over(1) and client.resets[1] == passed
    o.stop()
