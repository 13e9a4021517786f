"""HTTP/2 frame by frame, on either side: output is exactly as the test says, input is recorded and never judged."""
import collections
import contextlib
import socket
import threading

import hpack

from .acceptor import Acceptor
from .h2_client import CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PING, PREFACE, RST, SETTINGS, WINDOW, frame
from .ports import tcp_server
from .wire import received

ACK = 1
PADDED = 8


class Peer:
    """One end of a connection: acknowledges SETTINGS and PING, returns windows if `generous`, records everything else."""

    def __init__(self, sock, generous=True):
        self.sock, self.generous, self.buffer, self.closed = sock, generous, b"", False
        self.sock.settimeout(20)
        self.decoder, self.blocks = hpack.Decoder(max_header_list_size=1 << 20), {}
        self.heads = collections.defaultdict(list)     # of a stream: its header blocks, each a list of fields
        self.data = collections.defaultdict(bytes)
        self.never_indexed = collections.defaultdict(set)   # of a stream: names of its never-indexed fields (RFC 7541 7.1.3)
        self.ended, self.resets, self.goaways, self.windows, self.acks = set(), {}, [], collections.Counter(), 0
        self.frames = []                               # (type, flags, stream)

    def send(self, *frames):
        """Returns False if the connection is closed."""
        try:
            self.sock.sendall(b"".join(frames))
            return True
        except OSError:
            return False

    def step(self):
        """Returns the next frame; False at the end of the connection."""
        while len(self.buffer) < 9 or len(self.buffer) < 9 + int.from_bytes(self.buffer[:3], "big"):
            more = received(self.sock)
            if not more:
                self.closed = True
                return False
            self.buffer += more
        size = int.from_bytes(self.buffer[:3], "big")
        kind, flags, stream = self.buffer[3], self.buffer[4], int.from_bytes(self.buffer[5:9], "big")
        payload, self.buffer = self.buffer[9:9 + size], self.buffer[9 + size:]
        self.note(kind, flags, stream, payload)
        self.frames.append((kind, flags, stream))
        return True

    def note(self, kind, flags, stream, payload):
        if kind == SETTINGS and not flags & ACK:
            self.send(frame(SETTINGS, ACK, 0))
        elif kind == SETTINGS:
            self.acks += 1
        elif kind == PING and not flags & ACK:
            self.send(frame(PING, ACK, 0, payload))
        elif kind == DATA:
            self.data[stream] += payload
            if self.generous and payload:
                give = len(payload).to_bytes(4, "big")
                self.send(frame(WINDOW, 0, 0, give), frame(WINDOW, 0, stream, give))
        elif kind in (HEADERS, CONTINUATION):
            self.blocks[stream] = self.blocks.get(stream, b"") + payload
            if flags & END_HEADERS:
                fields = self.decoder.decode(self.blocks.pop(stream))
                self.heads[stream].append([(n, v) for n, v in fields])
                self.never_indexed[stream] |= {field[0] for field in fields if not field.indexable}
        elif kind == RST:
            self.resets[stream] = int.from_bytes(payload, "big")
        elif kind == GOAWAY:
            self.goaways.append((int.from_bytes(payload[:4], "big"), int.from_bytes(payload[4:8], "big")))
        elif kind == WINDOW:
            self.windows[stream] += int.from_bytes(payload, "big")
        if kind in (DATA, HEADERS) and flags & END_STREAM:
            self.ended.add(stream)

    def until(self, look):
        while not look() and self.step():
            pass
        return look()

    def over(self, stream):
        """Reads until the stream ends: True if it is complete."""
        assert self.until(lambda: stream in self.ended or stream in self.resets) or self.closed
        return stream in self.ended

    def status(self, stream):
        return next((int(dict(h)[":status"]) for h in self.heads[stream] if not dict(h)[":status"].startswith("1")), None)

    def close(self):
        self.sock.close()


class RawClient(Peer):
    def __init__(self, address, settings=b"", generous=True):
        super().__init__(socket.create_connection(address, 20), generous)
        self.send(PREFACE, frame(SETTINGS, 0, 0, settings))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class RawOrigin:
    """script(peer, stream) runs for each header block that begins a stream, on the connection's own thread."""

    def __init__(self, script, settings=b"", generous=True, script_at_start=None):
        self.script, self.settings, self.generous, self.script_at_start = script, settings, generous, script_at_start
        self.peers, self.asked = [], []                # asked: (connection, stream, fields)
        server = tcp_server()
        self.authority = "127.0.0.1:%d" % server.getsockname()[1]
        self.url = "http://" + self.authority
        self.acceptor = Acceptor(server, self.accept)

    def accept(self, sock):
        peer = Peer(sock, self.generous)
        self.peers.append(peer)
        threading.Thread(target=self.serve, args=(peer, len(self.peers)), daemon=True).start()

    def serve(self, peer, number):
        try:
            while len(peer.buffer) < len(PREFACE):
                peer.buffer += peer.sock.recv(len(PREFACE) - len(peer.buffer))
            peer.buffer = b""
            peer.send(frame(SETTINGS, 0, 0, self.settings))
            if self.script_at_start:
                self.script_at_start(peer)
            seen = set()
            while peer.step():
                for stream in set(peer.heads) - seen:
                    seen.add(stream)
                    self.asked.append((number, stream, dict(peer.heads[stream][0])))
                    self.script(peer, stream)
        except OSError:
            pass
        finally:
            peer.close()

    def stop(self):
        self.acceptor.stop()
        for peer in self.peers:
            with contextlib.suppress(OSError):  # its own thread closes it
                peer.sock.shutdown(socket.SHUT_RDWR)
