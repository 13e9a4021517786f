"""An HTTP/2 client with prior knowledge: a library for valid messages, and raw frames for invalid ones."""
import collections
import socket
import struct

import h2.config
import h2.connection
import h2.events
import h2.settings

from .wire import received

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
END_STREAM, END_HEADERS = 1, 4

# The library takes every GOAWAY for the end; streams below its number continue (RFC 9113 6.8), even in the same read.
_OPEN = h2.connection.ConnectionState.CLIENT_OPEN
h2.connection.H2ConnectionStateMachine._transitions[(_OPEN, h2.connection.ConnectionInputs.RECV_GOAWAY)] = (None, _OPEN)


class Answer:
    def __init__(self):
        self.headers, self.interim, self.trailers, self.body = [], [], [], b""
        self.ended, self.reset = False, None

    @property
    def status(self):
        return int(self.get(":status"))

    def get(self, name, default=None):
        return next((v for n, v in self.headers if n == name), default)


class H2Client:
    """One connection; not for several threads."""

    def __init__(self, address, sock=None):
        self.sock = sock or socket.create_connection(address, 20)
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True, header_encoding="utf-8"))
        self.h2.initiate_connection()
        self.responses = collections.defaultdict(Answer)
        self.goaways, self.closed, self.settings = [], False, {}
        self.pongs = self.last_pong = 0
        self.flush()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def flush(self):
        data = self.h2.data_to_send()
        if data:
            self.sock.sendall(data)

    def ask(self, path="/", method="GET", authority="a.test", headers=(), end=True, scheme="http", pseudo=()):
        """Returns the number of the stream."""
        stream = self.h2.get_next_available_stream_id()
        first = [(":method", method), (":scheme", scheme), (":authority", authority), (":path", path), *pseudo]
        if method == "CONNECT" and not pseudo:
            first = [(":method", method), (":authority", authority)]
        self.h2.send_headers(stream, first + list(headers), end_stream=end)
        self.flush()
        return stream

    def send(self, stream, data, end=False):
        """Sends all of it, as the windows allow."""
        while data or end:
            size = min(len(data), self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size)
            if size or not data:
                self.h2.send_data(stream, data[:size], end_stream=end and size == len(data))
                data = data[size:]
                self.flush()
                if not data:
                    return
            else:
                self.read()

    def read(self):
        """Handles the next input; False at the end of the connection."""
        data = received(self.sock)
        if not data:
            self.closed = True
            return False
        for event in self.h2.receive_data(data):
            self.note(event)
        self.flush()
        return True

    def note(self, event):
        response = self.responses[event.stream_id] if getattr(event, "stream_id", None) else None
        if isinstance(event, h2.events.InformationalResponseReceived):
            response.interim.append(event.headers)
        elif isinstance(event, h2.events.ResponseReceived):
            response.headers = event.headers
        elif isinstance(event, h2.events.TrailersReceived):
            response.trailers = event.headers
        elif isinstance(event, h2.events.DataReceived):
            response.body += event.data
            self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.StreamEnded):
            response.ended = True
        elif isinstance(event, h2.events.StreamReset):
            response.reset = event.error_code
        elif isinstance(event, h2.events.ConnectionTerminated):
            self.goaways.append((event.last_stream_id, event.error_code))
        elif isinstance(event, h2.events.PingAckReceived):
            self.last_pong = int.from_bytes(event.ping_data, "big")
        elif isinstance(event, h2.events.RemoteSettingsChanged):
            self.settings.update({code: change.new_value for code, change in event.changed_settings.items()})

    def until(self, look):
        """Reads until look() is true, or nothing more arrives."""
        while not look():
            if not self.read():
                break
        return look()

    def response(self, stream):
        response = self.responses[stream]
        assert self.until(lambda: response.ended or response.reset is not None), "the connection ended first"
        return response

    def ping(self):
        """Reads until carpool has processed all that was sent, and its replies have arrived."""
        self.pongs += 1
        self.h2.ping(self.pongs.to_bytes(8, "big"))
        self.flush()
        assert self.until(lambda: self.last_pong == self.pongs), "the connection ended first"

    def get(self, *args, **more):
        return self.response(self.ask(*args, **more))


# ---- raw frames ----

def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def text(value):
    size, out = len(value), b""
    if size < 127:
        return bytes([size]) + value
    size -= 127
    while size >= 128:
        out, size = out + bytes([size % 128 + 128]), size // 128
    return b"\x7f" + out + bytes([size]) + value


def block(fields, kind=b"\x00"):
    """HPACK literals without indexing and without Huffman coding."""
    return b"".join(kind + text(n) + text(v) for n, v in fields)


def never_indexed(fields):
    """As block(); the recipient must forward the fields in the same form (RFC 7541 6.2.3)."""
    return block(fields, b"\x10")


def request(authority, path=b"/", method=b"GET", more=()):
    return block([(b":method", method), (b":scheme", b"http"), (b":authority", authority), (b":path", path), *more])


def headers(stream, fields, end=True):
    return frame(HEADERS, END_HEADERS | (END_STREAM if end else 0), stream, fields)


class Attacker:
    """Writes raw bytes and records how the connection ends."""

    def __init__(self, address, settings=b""):
        self.sock = socket.create_connection(address, 20)
        self.sock.sendall(PREFACE + frame(SETTINGS, 0, 0, settings))
        self.buffer = b""

    def send(self, data):
        """Returns False if the connection is closed."""
        try:
            self.sock.sendall(data)
            return True
        except OSError:
            return False

    def goaway(self, seconds=20):
        """Reads to the end; returns the error code of the last GOAWAY, None if there was none."""
        self.sock.settimeout(seconds)
        code = None
        while True:
            data = received(self.sock)
            if not data:
                self.sock.close()
                return code
            self.buffer += data
            while len(self.buffer) >= 9 and len(self.buffer) >= 9 + int.from_bytes(self.buffer[:3], "big"):
                size = int.from_bytes(self.buffer[:3], "big")
                if self.buffer[3] == GOAWAY:
                    code = int.from_bytes(self.buffer[13:17], "big")
                self.buffer = self.buffer[9 + size:]
