"""An HTTP/2 origin that a test scripts: handler(stream) handles each complete request on a thread of its own. Prior
knowledge without `tls`, ALPN with it."""
import collections
import contextlib
import socket
import ssl
import threading

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.settings

from .acceptor import Acceptor
from .ports import tcp_server

SETTINGS = h2.settings.SettingCodes
# Events after which a stream that waits for room may send, or learns that it has ended.
MAKES_ROOM = (h2.events.WindowUpdated, h2.events.RemoteSettingsChanged, h2.events.StreamReset, h2.events.ConnectionTerminated)


class Stream:
    """One complete request, and the means to respond."""

    def __init__(self, connection, stream_id, headers):
        self.connection, self.id = connection, stream_id
        self.headers, self.trailers, self.body = headers, [], b""
        self.pseudo = {n: v for n, v in headers if n.startswith(":")}
        self.fields = [(n, v) for n, v in headers if not n.startswith(":")]

    def field(self, name):
        return [v for n, v in self.fields if n == name]

    def head(self, status=200, headers=(), end=False):
        with self.connection.talk() as c:
            c.send_headers(self.id, [(":status", str(status)), *headers], end_stream=end)

    def data(self, body, end=False):
        """Sends all of it, as far as the windows allow."""
        body = memoryview(body)  # its rest is no copy
        while True:
            with self.connection.room:
                if self.connection.gone:
                    return
                with self.connection.talk() as c:
                    size = min(c.local_flow_control_window(self.id), c.max_outbound_frame_size, len(body))
                    if size or not body:
                        c.send_data(self.id, bytes(body[:size]), end_stream=end and size == len(body))
                        body = body[size:]
                        if not body:
                            return
                        continue
                self.connection.room.wait(20)

    def reply(self, status=200, body=b"ok", headers=()):
        self.head(status, [("content-length", str(len(body))), *headers], end=not body)
        if body:
            self.data(body, end=True)

    def end(self, trailers):
        with self.connection.talk() as c:
            c.send_headers(self.id, trailers, end_stream=True)

    def reset(self, code):
        with self.connection.talk() as c:
            c.reset_stream(self.id, code)


class Connection:
    def __init__(self, origin, sock, number):
        self.origin, self.sock, self.number = origin, sock, number
        self.lock = threading.RLock()
        self.room = threading.Condition(self.lock)
        self.gone, self.pings, self.streams, self.resets = False, 0, {}, []
        self.c = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))

    def talk(self):
        return Talk(self)

    def serve(self):
        with self.talk() as c:
            c.initiate_connection()
            if self.origin.settings:
                c.update_settings(self.origin.settings)
            if self.origin.greet:  # in one write
                self.origin.greet(self)
        while data := self.sock.recv(65536):
            with self.room:
                with self.talk() as c:
                    events = c.receive_data(data)
                for event in events:
                    self.on(event)
                if any(isinstance(event, MAKES_ROOM) for event in events):  # not each event: hundreds of streams may wait
                    self.room.notify_all()

    def on(self, event):
        if isinstance(event, h2.events.RequestReceived):
            self.streams[event.stream_id] = Stream(self, event.stream_id, event.headers)
            if self.origin.early:
                self.run(self.origin.early, self.streams[event.stream_id])
        elif isinstance(event, h2.events.DataReceived):
            self.streams[event.stream_id].body += event.data
            with self.talk() as c:
                c.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.TrailersReceived):
            self.streams[event.stream_id].trailers = event.headers
        elif isinstance(event, h2.events.StreamReset):
            self.resets.append(event.error_code)
            self.origin.note(resets=(self.number, event.error_code))
        elif isinstance(event, h2.events.PingReceived):
            self.pings += 1
        elif isinstance(event, h2.events.StreamEnded):
            stream = self.streams[event.stream_id]
            self.origin.note(seen=stream)
            if not self.origin.early:
                self.run(self.origin.handler, stream)

    def run(self, handler, stream):
        def work():
            try:
                handler(stream)
            except (OSError, h2.exceptions.ProtocolError):
                pass
        threading.Thread(target=work, daemon=True).start()

    def goaway(self, last):
        with self.talk() as c:
            c.close_connection(last_stream_id=last)

    def close(self):
        """Ends the connection; its own thread closes the socket, so that it reads from no other one with the same number."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)


class Talk:
    """Output of the library within this block is sent at its end."""

    def __init__(self, connection):
        self.connection = connection

    def __enter__(self):
        self.connection.lock.acquire()
        return self.connection.c

    def __exit__(self, kind, error, trace):
        try:
            if data := self.connection.c.data_to_send():
                self.connection.sock.sendall(data)
        finally:
            self.connection.lock.release()


def hello(stream):
    stream.reply()


class H2Origin:
    """`early`: called with the head alone, instead of `handler`; `path`: of a Unix socket, instead of a port;
    `greet`: called with each connection behind its SETTINGS."""

    def __init__(self, handler=hello, tls=None, settings=None, early=None, path=None, greet=None):
        self.handler, self.early, self.settings, self.greet = handler, early, settings or {}, greet
        self.tls, self.lock = tls, threading.Condition()
        self.seen, self.resets, self.opened, self.connections = [], [], 0, collections.OrderedDict()
        if path is not None:
            server = socket.socket(socket.AF_UNIX)
            server.bind(path)
            server.listen(512)
            self.port, self.authority = None, "unix:" + path
        else:
            server = tcp_server(backlog=512)
            self.port = server.getsockname()[1]
            self.authority = "127.0.0.1:%d" % self.port
        self.url = "%s://%s" % ("https" if tls else "http", self.authority)
        self._acceptor = Acceptor(server, lambda sock: threading.Thread(target=self._serve, args=(sock,), daemon=True).start())

    def note(self, seen=None, resets=None):
        with self.lock:
            if seen:
                self.seen.append(seen)
            if resets:
                self.resets.append(resets)
            self.lock.notify_all()

    def wait_for(self, what, seconds=15):
        with self.lock:
            if not self.lock.wait_for(what, seconds):
                raise AssertionError("the origin waited in vain")

    def _serve(self, sock):
        connection = None
        try:
            if self.port is not None:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.tls:
                sock = self.tls.wrap_socket(sock, server_side=True)
            with self.lock:
                self.opened += 1
                connection = Connection(self, sock, self.opened)
                self.connections[self.opened] = connection
            connection.serve()
        except (OSError, ssl.SSLError, h2.exceptions.ProtocolError):
            pass
        finally:
            if connection:
                with connection.room:
                    connection.gone = True
                    connection.room.notify_all()
            with self.lock:
                self.connections.pop(connection.number if connection else 0, None)
                self.lock.notify_all()
            sock.close()

    def stop(self):
        self._acceptor.stop()
        for connection in list(self.connections.values()):
            connection.close()
