"""OpenSSL itself as a peer, for what Python's ssl does not offer: any number of KeyUpdates of TLS 1.3."""
import ctypes
import ctypes.util

_SSL = ctypes.CDLL(ctypes.util.find_library("ssl"))
for _name in ("TLS_client_method", "TLS_server_method", "SSL_CTX_new", "SSL_new"):
    getattr(_SSL, _name).restype = ctypes.c_void_p
_FILETYPE_PEM = 1
NOT_REQUESTED, REQUESTED = 0, 1


def _pointer(value):
    assert value, "OpenSSL has failed"
    return ctypes.c_void_p(value)


class TlsPeer:
    """One TLS 1.3 connection over a connected socket, blocking."""

    def __init__(self, sock, identity=None, alpn=None):
        """`identity`: certificate and key of a server; None: a client, which verifies nothing."""
        self.sock = sock
        method = _SSL.TLS_server_method if identity else _SSL.TLS_client_method
        self._context = _pointer(_SSL.SSL_CTX_new(_pointer(method())))
        if identity:
            cert, key = (str(path).encode() for path in identity)
            assert _SSL.SSL_CTX_use_certificate_chain_file(self._context, cert) == 1
            assert _SSL.SSL_CTX_use_PrivateKey_file(self._context, key, _FILETYPE_PEM) == 1
        self._ssl = _pointer(_SSL.SSL_new(self._context))
        if alpn:
            wire = bytes([len(alpn)]) + alpn.encode()
            assert _SSL.SSL_set_alpn_protos(self._ssl, wire, len(wire)) == 0
        sock.settimeout(None)
        assert _SSL.SSL_set_fd(self._ssl, sock.fileno()) == 1
        assert (_SSL.SSL_accept if identity else _SSL.SSL_connect)(self._ssl) == 1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, data):
        return _SSL.SSL_write(self._ssl, data, len(data)) == len(data)

    def receive(self, most=65536):
        """Returns b"" at the end of the connection, however it ended."""
        into = ctypes.create_string_buffer(most)
        size = _SSL.SSL_read(self._ssl, into, most)
        return into.raw[:max(size, 0)]

    def until(self, text):
        got = b""
        while text not in got:
            more = self.receive()
            assert more, got
            got += more
        return got

    def update_key(self, request=NOT_REQUESTED):
        """Returns False once the peer has closed the connection."""
        return _SSL.SSL_key_update(self._ssl, request) == 1 and _SSL.SSL_do_handshake(self._ssl) == 1

    def close(self):
        if self._ssl:
            _SSL.SSL_free(self._ssl)
            _SSL.SSL_CTX_free(self._context)
            self._ssl = None
        self.sock.close()
