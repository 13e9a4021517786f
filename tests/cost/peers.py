"""A client and an origin in one thread, so that every request takes the same path through carpool: it is sent while carpool waits, and the
next one follows when its response has arrived."""
import socket
import ssl

import h2.config
import h2.connection
import h2.events
import h2.settings

LIMIT = 60  # seconds that a single read may take
BODY = b"x" * 1024
AUTHORITY = "127.0.0.1:%d"
REQUEST = "GET /1k HTTP/1.1\r\nHost: %s\r\nUser-Agent: cost/1\r\nAccept: */*\r\n\r\n"
FIELDS = [("server", "cost/1"), ("date", "Mon, 23 Nov 2026 12:00:00 GMT"), ("content-type", "text/plain"), ("content-length", str(len(BODY))),
          ("last-modified", "Mon, 23 Nov 2026 11:00:00 GMT"), ("connection", "keep-alive"), ("etag", '"6a1b2c3d-400"'), ("accept-ranges", "bytes")]
RESPONSE = "".join(["HTTP/1.1 200 OK\r\n", *("%s: %s\r\n" % (name.title(), value) for name, value in FIELDS), "\r\n"]).encode() + BODY


def received(sock):
    data = sock.recv(65536)
    assert data, "carpool closed a connection"
    return data


def without_delay(sock):
    sock.settimeout(LIMIT)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


class Listening:
    def __init__(self, host="127.0.0.1"):
        self.listener = socket.create_server((host, 0))
        self.listener.settimeout(LIMIT)
        self.port = self.listener.getsockname()[1]
        self.sock = None

    def connection(self):
        if self.sock is None:
            self.sock = self.begin(without_delay(self.listener.accept()[0]))
        return self.sock

    def close(self):
        self.listener.close()
        if self.sock is not None:
            self.sock.close()


class H1Origin(Listening):
    def begin(self, sock):
        return sock

    def respond(self):
        sock, head = self.connection(), b""
        while not head.endswith(b"\r\n\r\n"):
            head += received(sock)
        sock.sendall(RESPONSE)


def server_context(certificate, key, protocol):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.set_alpn_protocols([protocol])
    return context


class H1TlsOrigin(H1Origin):
    """A response is one TLS record."""

    def __init__(self, certificate, key):
        super().__init__()
        self.context = server_context(certificate, key, "http/1.1")

    def begin(self, sock):
        return self.context.wrap_socket(sock, server_side=True)


class H2Origin(Listening):
    """HTTP/2 over TLS; a response is one TLS record."""

    def __init__(self, certificate, key):
        super().__init__()
        self.context = server_context(certificate, key, "h2")
        self.codec = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))

    def begin(self, sock):
        sock = self.context.wrap_socket(sock, server_side=True)
        self.codec.initiate_connection()
        sock.sendall(self.codec.data_to_send())
        return sock

    def respond(self):
        sock, streams = self.connection(), []
        while not streams:
            events = self.codec.receive_data(received(sock))
            streams = [event.stream_id for event in events if isinstance(event, h2.events.StreamEnded)]
        for stream in streams:
            self.codec.send_headers(stream, [(":status", "200"), *(field for field in FIELDS if field[0] != "connection")])
            self.codec.send_data(stream, BODY, end_stream=True)
        sock.sendall(self.codec.data_to_send())


class H1Client:
    """All requests on one connection."""

    def __init__(self, address, origin):
        self.address, self.origin, self.sock = address, origin, None
        self.request = (REQUEST % AUTHORITY % origin.port).encode()

    def send(self):
        if self.sock is None:
            self.sock = without_delay(socket.create_connection(self.address, LIMIT))
        self.sock.sendall(self.request)

    def ask(self):
        self.send()
        self.origin.respond()
        self.receive()

    def receive(self):
        reply = b""
        while not (reply.endswith(BODY) and b"\r\n\r\n" in reply):
            reply += received(self.sock)
        assert reply.startswith(b"HTTP/1.1 200 "), reply[:200]

    def close(self):
        self.sock.close()
        self.sock = None


class BriefClient(H1Client):
    """Each request on a connection of its own, which the client closes after the response. carpool sees the connection and its request at
    once, and its end in another turn than the next connection."""

    def __init__(self, address, origin, program):
        super().__init__(address, origin)
        self.program = program

    def send(self):
        with self.program.stopped():
            super().send()

    def ask(self):
        super().ask()
        self.program.rest()
        self.close()
        self.program.rest()


class WaitingClients:
    """Two clients of an origin that has one connection: while the response of one is out, the request of the other waits."""

    def __init__(self, address, origin, program):
        self.origin, self.program = origin, program
        self.served, self.waits = H1Client(address, origin), H1Client(address, origin)
        self._send(self.served)

    def _send(self, client):
        client.send()
        self.program.rest()

    def ask(self):
        self._send(self.waits)
        self.origin.respond()
        self.served.receive()
        self.served, self.waits = self.waits, self.served


class H2Client:
    """Prior knowledge, one stream after the other."""

    def __init__(self, address, origin):
        self.origin = origin
        self.codec = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
        self.codec.initiate_connection()
        self.codec.increment_flow_control_window(2**30)  # so that no request needs to give window back
        self.sock = without_delay(socket.create_connection(address, LIMIT))
        self.sock.sendall(self.codec.data_to_send())

    def ask(self):
        stream = self.codec.get_next_available_stream_id()
        self.codec.send_headers(stream, [(":method", "GET"), (":scheme", "http"), (":path", "/1k"), (":authority", AUTHORITY % self.origin.port),
                                         ("user-agent", "cost/1"), ("accept", "*/*")], end_stream=True)
        self.sock.sendall(self.codec.data_to_send())
        self.origin.respond()
        body = b""
        while True:
            for event in self.codec.receive_data(received(self.sock)):
                if isinstance(event, h2.events.DataReceived):
                    body += event.data
                elif isinstance(event, h2.events.StreamEnded):
                    assert body == BODY, "a response that is not the origin's"
                    return self.send_acknowledgements()

    def send_acknowledgements(self):
        if data := self.codec.data_to_send():  # of settings
            self.sock.sendall(data)

    def close(self):
        self.sock.close()
