"""HTTP/1.1 read from and written to a socket without a library: the test sees exactly what arrived."""
import dataclasses
import socket

LIMIT = 20  # seconds that any single read may take


@dataclasses.dataclass
class Message:
    first: str                      # request line or status line
    headers: list                   # [(lower-case name, value)]
    body: bytes = b""
    trailers: list = dataclasses.field(default_factory=list)
    interim: list = dataclasses.field(default_factory=list)   # 1xx before it
    complete: bool = True

    @property
    def status(self):
        return int(self.first.split(" ", 2)[1])

    @property
    def method(self):
        return self.first.split(" ")[0]

    @property
    def target(self):
        return self.first.split(" ")[1]

    def get(self, name, default=None):
        return next((v for n, v in self.headers if n == name), default)

    def all(self, name):
        return [v for n, v in self.headers if n == name]

    def keeps_alive(self):
        return "close" not in self.get("connection", "").lower()


class Gone(Exception):
    """The other side closed the connection before the message was complete."""


def received(sock):
    """Returns the next bytes; nothing once the connection has ended, however it ended."""
    try:
        return sock.recv(65536)
    except ConnectionError:
        return b""


class Stream:
    """A socket with a buffer and the three ways a body can end."""

    def __init__(self, sock):
        self.sock = sock
        self.sock.settimeout(LIMIT)
        self.buffer = b""

    def send(self, data):
        self.sock.sendall(data)

    def close(self):
        self.sock.close()

    def reset(self):
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        self.sock.close()

    def more(self):
        """Returns False at the end of the stream."""
        data = received(self.sock)
        self.buffer += data
        return bool(data)

    def at_end(self):
        """Returns whether the other side has closed, with nothing unread before it."""
        return not self.buffer and not self.more()

    def line(self):
        while b"\n" not in self.buffer:
            if not self.more():
                raise Gone("inside a line: %r" % self.buffer[:200])
        line, self.buffer = self.buffer.split(b"\n", 1)
        return line.rstrip(b"\r").decode("latin-1")

    def exactly(self, count):
        pieces, size = [self.buffer], len(self.buffer)  # one text that grows would be copied with each piece
        try:
            while size < count:
                pieces.append(received(self.sock))
                size += len(pieces[-1])
                if not pieces[-1]:
                    raise Gone("%d of %d bytes" % (size, count))
        finally:
            self.buffer = b"".join(pieces)
        data, self.buffer = self.buffer[:count], self.buffer[count:]
        return data

    def fields(self):
        found = []
        while line := self.line():
            name, _, value = line.partition(":")
            found.append((name.lower(), value.strip()))
        return found

    def head(self):
        first = self.line()
        return Message(first, self.fields())

    def body_of(self, message, until_close):
        """Reads the body; complete is False if the connection ended first."""
        try:
            if "chunked" in message.get("transfer-encoding", "").lower():
                self._chunks(message)
            elif message.get("content-length") is not None:
                message.body = self.exactly(int(message.get("content-length")))
            elif until_close:
                while self.more():
                    pass
                message.body, self.buffer = self.buffer, b""
        except Gone:
            message.body += self.buffer
            self.buffer, message.complete = b"", False
        return message

    def _chunks(self, message):
        while size := int(self.line().split(";")[0], 16):
            message.body += self.exactly(size)
            self.line()
        message.trailers = self.fields()


class Client(Stream):
    """One client connection to carpool."""

    def __init__(self, address=None, tls=None, host="origin.test", sock=None):
        if sock is not None:
            pass  # connected already
        elif isinstance(address, str):
            sock = socket.socket(socket.AF_UNIX)
            sock.settimeout(LIMIT)
            sock.connect(address)
        else:
            sock = socket.create_connection(address, LIMIT)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().__init__(tls.wrap_socket(sock, server_hostname=host) if tls else sock)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def request(self, method, target, headers=(), body=b"", host="origin.test"):
        """Sends a request and reads its response."""
        self.ask(method, target, headers, body, host)
        return self.response(method)

    def ask(self, method, target, headers=(), body=b"", host="origin.test"):
        lines = ["%s %s HTTP/1.1" % (method, target), "Host: " + host] + ["%s: %s" % h for h in headers]
        if body:
            lines.append("Content-Length: %d" % len(body))
        self.send("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)

    def get(self, target, *headers, host="origin.test"):
        return self.request("GET", target, headers, host=host)

    def response(self, method="GET"):
        interim = []
        while (message := self.head()).status < 200 and message.status != 101:
            interim.append(message)
        message.interim = interim
        if method == "HEAD" or message.status in (101, 204, 304):
            return message
        return self.body_of(message, until_close=True)
