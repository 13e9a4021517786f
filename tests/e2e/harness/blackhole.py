"""Two origins that never respond: one whose SYNs are dropped (its backlog is full), one that accepts and never reads or writes."""
import socket

from .ports import free_port, tcp_server


class BlackholeServer:
    """connect() to it hangs: the backlog holds as many connections as it can."""

    def __init__(self, host="127.0.0.1", port=0):
        self._server = socket.socket()
        self._server.bind((host, port or free_port()))
        self._server.listen(0)
        self.port = self._server.getsockname()[1]
        self.authority = "%s:%d" % (host, self.port)
        self._fill = []
        for _ in range(4):
            s = socket.socket()
            s.setblocking(False)
            s.connect_ex((host, self.port))
            self._fill.append(s)

    def stop(self):
        for s in (*self._fill, self._server):
            s.close()


class SilentServer:
    """connect() succeeds, in the kernel; no process ever reads or writes, so a TLS handshake does not begin."""

    def __init__(self):
        self._server = tcp_server(backlog=64)
        self.port = self._server.getsockname()[1]
        self.authority = "127.0.0.1:%d" % self.port

    def stop(self):
        self._server.close()
