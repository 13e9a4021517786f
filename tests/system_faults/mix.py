"""A fixed mix of requests, one after the other; each ends with one of four results."""
import contextlib
import dataclasses
import itertools
import socket
import ssl

import h2.exceptions
from harness.h2_client import H2Client
from harness.wire import Client, Gone

DEADLINE = 5  # seconds that a client waits: more than the longest of the program's own deadlines
OK, VISIBLE, CUT, WRONG = "ok", "visible error", "cut", "WRONG"
BODY, LONG = 3000, 90000
_tags = itertools.count()


@dataclasses.dataclass
class Result:
    kind: str      # of request
    end: str
    detail: str = ""


def judge(kind, tag, body, status, got, field, complete):
    """Judges what one client received; field(name) is of the response's head."""
    if not complete:
        return Result(kind, CUT, "status %d, %d bytes" % (status, len(got)))
    if status == 200:
        good = got == (body or tag.encode()) and field("x-tag") == tag
        return Result(kind, OK if good else WRONG, "" if good else "bytes of another message: %r" % got[:60])
    reason = field("proxy-status") or ""
    named = status >= 500 and "error=" in reason
    return Result(kind, VISIBLE if named else WRONG, "%d %s" % (status, reason))


def over_h1(client, kind, url, method="GET", size=0):
    tag, body = "/%s/%d" % (kind, next(_tags)), b"b" * size
    message = client.request(method, url + tag, body=body)
    return judge(kind, tag, body, message.status, message.body, message.get, message.complete)


def guarded(kind, work):
    """Returns the results of work(); a connection that ends early is a cut, one that makes no progress is an error."""
    results = []
    try:
        for result in work():
            results.append(result)
    except (TimeoutError, socket.timeout):
        results.append(Result(kind, WRONG, "nothing within %d s" % DEADLINE))
    except (Gone, ConnectionError, AssertionError, ssl.SSLError, h2.exceptions.ProtocolError, h2.exceptions.StreamClosedError) as error:
        results.append(Result(kind, CUT, "%s: %s" % (type(error).__name__, error)))
    return results


@contextlib.contextmanager
def h1_client(program):
    with program.client() as client:
        client.sock.settimeout(DEADLINE)
        yield client


def keep_alive(scene):
    """Several requests on one connection, as long as it is kept."""
    with h1_client(scene.program) as client:
        for kind, method, size in (("get", "GET", 0), ("post", "POST", BODY), ("long", "POST", LONG), ("again", "GET", 0)):
            yield over_h1(client, kind, scene.plain.url, method, size)


def one(kind, origin):
    """One request on a connection of its own."""
    def work(scene):
        with h1_client(scene.program) as client:
            yield over_h1(client, kind, getattr(scene, origin).url)
    return work


def over_h2(scene):
    """Two streams at once."""
    with H2Client(scene.program.address) as client:
        client.sock.settimeout(DEADLINE)
        asked = []
        for kind, size in (("h2-get", 0), ("h2-post", BODY)):
            tag, body = "/%s/%d" % (kind, next(_tags)), b"b" * size
            stream = client.ask(tag, "POST" if size else "GET", scene.plain.authority, end=not size)
            if size:
                client.send(stream, body, end=True)
            asked.append((kind, tag, body, stream))
        for kind, tag, body, stream in asked:
            response = client.response(stream)
            status = response.status if response.headers else 0
            yield judge(kind, tag, body, status, response.body, response.get, response.ended and status)


def tunnel(scene):
    with h1_client(scene.program) as client:
        client.ask("CONNECT", scene.plain.authority, host=scene.plain.authority)
        response = client.head()
        if response.status != 200:
            yield judge("connect", "", b"", response.status, b"", response.get, True)
            return
        tag = "/tunnel/%d" % next(_tags)
        message = client.request("GET", tag, host=scene.plain.authority)
        yield judge("tunnel", tag, b"", message.status, message.body, message.get, message.complete)


def reload(scene):
    """An operator's reload, whose response states whether it succeeded; the fault may also concern a file or the admin socket."""
    with Client(scene.program.admin_address) as client:
        client.sock.settimeout(DEADLINE)
        response = client.request("POST", "/reload", host="%s:%d" % scene.program.admin_address)
        told = response.status == 200 or response.status >= 400 and response.body
        yield Result("reload", OK if response.status == 200 else VISIBLE if told else WRONG, "%d %s" % (response.status, response.body[:200]))


KINDS = [("keep-alive", keep_alive), ("secure", one("secure", "secure")), ("secure-h2", one("secure-h2", "h2")), ("h2", over_h2),
         ("tunnel", tunnel), ("fresh", one("fresh", "plain")), ("h2-again", one("h2-again", "h2")), ("reload", reload)]


def run(scene):
    return [result for kind, work in KINDS for result in guarded(kind, lambda: work(scene))]
