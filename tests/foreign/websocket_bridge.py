"""Passes WebSocket clients of HTTP/1.1 on to a proxy as streams of HTTP/2 (RFC 8441), one connection each: the clients of the suites
know only the former."""
import base64
import contextlib
import hashlib
import select
import socket
import socketserver
import threading

from harness.h2_client import H2Client
from harness.wire import received

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
OF_THE_UPGRADE = {"host", "upgrade", "connection", "sec-websocket-key", "pragma", "cache-control"}


def head_of(client):
    data = b""
    while b"\r\n\r\n" not in data:
        more = received(client)
        if not more:
            return None
        data += more
    head, rest = data.split(b"\r\n\r\n", 1)
    lines = head.decode("latin-1").split("\r\n")
    fields = [tuple(part.strip() for part in line.split(":", 1)) for line in lines[1:]]
    return lines[0].split()[1], [(name.lower(), value) for name, value in fields], rest


class Session(socketserver.BaseRequestHandler):
    def handle(self):
        head = head_of(self.request)
        if head:
            with contextlib.suppress(OSError), H2Client(self.server.proxy) as h2:
                self.bridge(h2, *head)

    def bridge(self, h2, path, fields, early):
        stream = h2.ask(path, "CONNECT", self.server.origin, [f for f in fields if f[0] not in OF_THE_UPGRADE], end=False,
                        pseudo=[(":protocol", "websocket")])
        response = h2.responses[stream]
        if not h2.until(lambda: response.headers or response.reset is not None) or response.status != 200:
            return
        key = dict(fields)["sec-websocket-key"].encode()
        accept = base64.b64encode(hashlib.sha1(key + GUID).digest()).decode()
        told = [(n, v) for n, v in response.headers if not n.startswith(":")]
        self.request.sendall("".join(["HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n",
                                      "Sec-WebSocket-Accept: %s\r\n" % accept, *("%s: %s\r\n" % pair for pair in told), "\r\n"]).encode())
        if early:
            h2.send(stream, early)
        self.pump(h2, stream, response)

    def pump(self, h2, stream, response):
        """Runs until the origin has ended; a client that ends first ends its half of the stream."""
        open_sides = [h2.sock, self.request]
        while True:
            if response.body:
                self.request.sendall(response.body)
                response.body = b""
            if response.ended or response.reset is not None or h2.closed:
                return
            for ready in select.select(open_sides, [], [])[0]:
                if ready is h2.sock:
                    h2.read()
                    continue
                data = received(self.request)
                h2.send(stream, data, end=not data)
                if not data:
                    open_sides.remove(self.request)


class Bridge(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True

    def __init__(self, proxy_port, origin_port):
        super().__init__(("127.0.0.1", 0), Session)
        self.proxy, self.origin = ("127.0.0.1", proxy_port), "127.0.0.1:%d" % origin_port
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def port(self):
        return self.server_address[1]

    def __exit__(self, *error):
        self.shutdown()
        super().__exit__(*error)
