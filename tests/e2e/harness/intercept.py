"""An intercepted origin, and clients that speak TLS inside a CONNECT to it."""
import socket
import ssl

import pytest

from .authority import Authority
from .wire import Client

NAME = "localhost"
CONNECTS = "carpool_intercept_connects_total"


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path / "ca", [NAME])


@pytest.fixture
def scene(origin, carpool, pki, authority):
    """Returns an origin over TLS and carpool that intercepts it."""
    def make(handler=None, alpn=("http/1.1",), request=None, **settings):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pki.server, pki.server_key)
        context.set_alpn_protocols(list(alpn))
        o = origin(handler, tls=context) if handler else origin(tls=context)
        intercept = {"ca_dir": str(authority.folder), **settings.pop("intercept", {})}
        c = carpool(origin=[{"uri": "https://%s:%d" % (NAME, o.port), "intercept": True, "request": request or {},
                             "upstream": {"tls": {"ca_file": pki.ca}}}], intercept=intercept, **settings)
        c.authority = "%s:%d" % (NAME, o.port)
        c.label = "https://" + c.authority
        return o, c
    return make


def trusting(ca, alpn=("http/1.1",)):
    context = ssl.create_default_context(cafile=str(ca))
    context.set_alpn_protocols(list(alpn))
    return context


def connected(c, authority=None, early=b"", agent="test", header=b"", fields=b""):
    """Returns a socket on which CONNECT got 200. `header`: of the PROXY protocol. `fields`: further ones of the CONNECT."""
    sock = socket.create_connection(c.address, 10)
    target = authority or c.authority
    sock.sendall(header + b"CONNECT %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: %s\r\n%s\r\n" % (target.encode(), target.encode(), agent.encode(), fields) + early)
    head = b""
    while b"\r\n\r\n" not in head:
        got = sock.recv(1)
        assert got, head
        head += got
    assert head.startswith(b"HTTP/1.1 200 "), head
    return sock


def inside(c, context, name=NAME, authority=None):
    """Returns a client that speaks HTTP/1.1 over TLS inside a CONNECT."""
    return Client(sock=context.wrap_socket(connected(c, authority), server_hostname=name))
