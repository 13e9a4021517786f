"""TLS of clients: contexts, handshakes step by step, and a server's certificate in files that a test may replace."""
import shutil
import ssl

import pytest


class IdentityFiles:
    """A certificate and its key in files of their own."""

    def __init__(self, folder, cert, key):
        self.cert, self.key = folder / "server.pem", folder / "server.key"
        self.write(cert, key)

    def write(self, cert, key):
        for source, target in ((key, self.key), (cert, self.cert)):
            shutil.copy(source, target.with_suffix(".new"))
            target.with_suffix(".new").rename(target)

    def settings(self, **more):
        return {"cert_file": str(self.cert), "key_file": str(self.key), **more}


@pytest.fixture
def files(tmp_path, pki):
    return IdentityFiles(tmp_path, pki.server, pki.server_key)


def trusting(pki, alpn=(), certificate=False):
    context = ssl.create_default_context(cafile=pki.ca)
    if alpn:
        context.set_alpn_protocols(list(alpn))
    if certificate:
        context.load_cert_chain(pki.client, pki.client_key)
    return context


def shake_hands(tls, incoming, outgoing, sock):
    """Completes the handshake of a client in memory. Its last message stays in `outgoing`."""
    while True:
        try:
            return tls.do_handshake()
        except ssl.SSLWantReadError:
            sock.sendall(outgoing.read())
            incoming.write(sock.recv(65536))
