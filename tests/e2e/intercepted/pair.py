"""A TCP connection in plain text and one in TLS, joined: bytes, ends, resets and backpressure pass from one to the other."""
import asyncio
import contextlib
import socket
import ssl
import struct

LIMIT = 65536
RESET = struct.pack("ii", 1, 0)


class Plain(asyncio.Protocol):
    """The side without TLS."""

    def __init__(self, pair):
        self.pair = pair
        self.transport = None
        self.ended = False

    def connection_made(self, transport):
        self.transport = transport
        transport.set_write_buffer_limits(LIMIT)
        self.pair.on_made(self)

    def data_received(self, data):
        self.pair.on_plain(data)

    def eof_received(self):
        self.pair.on_plain_end()
        return True  # the other direction goes on

    def connection_lost(self, failure):
        self.pair.on_lost(self)

    def pause_writing(self):
        self.pair.other(self).hold(True)

    def resume_writing(self):
        self.pair.other(self).hold(False)

    def hold(self, paused):
        if self.transport and not self.transport.is_closing():
            with contextlib.suppress(RuntimeError):
                self.transport.pause_reading() if paused else self.transport.resume_reading()

    def write(self, data):
        if data and self.transport and not self.transport.is_closing() and not self.ended:
            self.transport.write(data)

    def end(self):
        """Nothing more will be written."""
        if self.transport and not self.ended and not self.transport.is_closing():
            self.ended = True
            with contextlib.suppress(OSError):
                self.transport.write_eof()

    def close(self):
        if self.transport:
            self.transport.close()

    def reset(self):
        if self.transport and not self.transport.is_closing():
            with contextlib.suppress(OSError):
                self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            self.transport.abort()


class Secure(Plain):
    """The side with TLS; it is the server's without a name to verify."""

    def __init__(self, pair, context, name=None):
        super().__init__(pair)
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_side=name is None, server_hostname=name)
        self.established, self.waiting, self.read_end = False, [], False
        self.end_waits = False  # for the handshake, as what is in `waiting`

    def data_received(self, data):
        data = self.pair.before_tls(data)
        if data:
            self.incoming.write(data)
            self.step()

    def eof_received(self):
        self.incoming.write_eof()
        if not self.read_end:
            self.step()
        if not self.read_end:
            self.pair.fail()  # there was no close_notify
        return True

    def step(self):
        """Continues with the input that has arrived."""
        try:
            if not self.established:
                self.tls.do_handshake()
                self.established = True
                self.pair.on_established()
                self.flush()
                for late in self.waiting:
                    self.write(late)
                if self.end_waits:
                    self.end()
            while not self.read_end:
                data = self.tls.read(LIMIT)
                if not data:
                    self.read_end = True
                    self.pair.on_secure_end()
                    break
                self.pair.on_secure(data)
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self.read_end = True
            self.pair.on_secure_end()
        except ssl.SSLError:
            self.flush()
            self.pair.fail()
        self.flush()

    def flush(self):
        data = self.outgoing.read()
        if data:
            Plain.write(self, data)

    def write(self, data):
        if not data or self.ended:
            return
        if not self.established:
            self.waiting.append(data)
            return
        with contextlib.suppress(ssl.SSLError):
            self.tls.write(data)
        self.flush()

    def end(self):
        if not self.established:
            self.end_waits = True
            return
        with contextlib.suppress(ssl.SSLError):
            self.tls.unwrap()
        self.flush()
        super().end()


class Pair:
    """A derived class makes the two sides. `to_secure` and `to_plain` rewrite bytes."""

    def __init__(self, to_secure, to_plain):
        self.to_secure, self.to_plain = to_secure, to_plain
        self.plain = self.secure = None
        self.plain_ended = self.secure_ended = False

    def other(self, side):
        return self.secure if side is self.plain else self.plain

    def on_made(self, side):
        pass

    def on_established(self):
        pass

    def before_tls(self, data):
        return data

    def on_plain(self, data):
        self.secure.write(self.to_secure.feed(data))

    def on_plain_end(self):
        self.plain_ended = True
        self.secure.write(self.to_secure.rest())
        self.secure.end()
        self.close_if_over()

    def on_secure(self, data):
        self.plain.write(self.to_plain.feed(data))

    def on_secure_end(self):
        self.secure_ended = True
        self.plain.write(self.to_plain.rest())
        self.plain.end()
        self.close_if_over()

    def close_if_over(self):
        if self.plain_ended and self.secure_ended:
            self.plain.close()
            self.secure.close()

    def on_lost(self, side):
        """A connection has ended: in order if both directions had ended, otherwise the other one is reset."""
        other = self.other(side)
        if other and not (self.plain_ended and self.secure_ended):
            other.reset()

    def fail(self):
        for side in (self.plain, self.secure):
            if side:
                side.reset()
