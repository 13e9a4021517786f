"""A name server on a loopback address of its own, and a mount namespace whose resolv.conf and hosts name it: the test controls every name
that carpool resolves."""
import ipaddress
import os
import pathlib
import socket
import struct
import subprocess
import threading

HOST = "127.77.%d.%d" % (os.getpid() // 250 % 250, os.getpid() % 250 + 1)  # several runs do not meet
A, AAAA = 1, 28


class Resolver:
    """table: name -> addresses. An absent name does not exist; while mute, no query gets a response."""

    def __init__(self, folder, sock):
        self.table, self.asked, self.mute, self.ttl = {}, [], False, 1
        self._sock, self._folder = sock, pathlib.Path(folder)
        (self._folder / "resolv.conf").write_text("nameserver %s\noptions timeout:5 attempts:2\n" % HOST)
        self.hosts("127.0.0.1 localhost\n")
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def hosts(self, text):
        (self._folder / "hosts").write_text(text)

    @property
    def inside(self):
        """Returns the command that runs another one with the test's /etc/resolv.conf and /etc/hosts."""
        script = 'mount --bind "$0/resolv.conf" /etc/resolv.conf && mount --bind "$0/hosts" /etc/hosts && exec "$@"'
        return ["unshare", "-m", "--propagation", "private", "sh", "-c", script, self._folder]

    def _serve(self):
        while True:
            try:
                query, peer = self._sock.recvfrom(512)
                if not query:
                    return
                for datagram in self.responses(query, peer):
                    self._sock.sendto(datagram, peer)
            except OSError:
                return

    def responses(self, query, peer):
        """Returns the datagrams that respond to a query: at most one; a test may override it."""
        response = self._response(query)
        return [response] if response else []

    def _response(self, query):
        labels, at = [], 12
        while size := query[at]:
            labels.append(query[at + 1:at + 1 + size].decode())
            at += 1 + size
        name, kind = ".".join(labels).lower(), struct.unpack(">H", query[at + 1:at + 3])[0]
        self.asked.append(name)
        if self.mute:
            return None
        known = self.table.get(name)
        addresses = [ipaddress.ip_address(a) for a in known or ()]
        records = [a.packed for a in addresses if a.version == {A: 4, AAAA: 6}.get(kind)]
        head = query[:2] + struct.pack(">HHHHH", 0x8180 | (0 if known else 3), 1, len(records), 0, 0)
        body = b"".join(b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, self.ttl, len(r)) + r for r in records)
        return head + query[12:at + 5] + body

    def stop(self):
        try:
            self._sock.shutdown(socket.SHUT_RD)  # says ENOTCONN, and wakes the thread nevertheless
        except OSError:
            pass
        self._thread.join(5)
        self._sock.close()


def start(folder, kind=Resolver):
    """Returns None if this user lacks the rights."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        sock.bind((HOST, 53))
        subprocess.run(["unshare", "-m", "--propagation", "private", "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        sock.close()
        return None
    return kind(folder, sock)
