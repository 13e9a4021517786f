"""A listening socket whose connections a thread accepts. Neither outlives stop(): a thread that is about to accept when its socket is
closed would accept from the next socket with the same number, which belongs to another server of the tests."""
import contextlib
import socket
import threading


class Acceptor:
    def __init__(self, server, take):
        """take(sock) is called for each connection, one after the other."""
        self.server, self._take = server, take
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self):
        while True:
            try:
                sock, _ = self.server.accept()
            except OSError:
                return
            self._take(sock)

    def stop(self):
        with contextlib.suppress(OSError):
            self.server.shutdown(socket.SHUT_RDWR)  # accept() fails from now on
        self._thread.join()
        self.server.close()
