"""The suite's origins, as carpool and its clients see them."""
import pathlib

UNREACHABLE = ("refused", "hole", "backlog")  # no socket accepts there, so carpool dials them itself
MOVED = 300  # from the port of an origin to that of its TLS


class Route:
    def __init__(self, kind, name, host, port, listen, h2listen):
        self.kind, self.name, self.host, self.port = kind, name, host, int(port)
        self.listen, self.h2listen = int(listen), int(h2listen)
        self.own_tls = kind in ("tls", "h2")
        self.terminated = not self.own_tls and name not in UNREACHABLE
        self.server_name = host if kind == "dns" else "localhost"
        # A name that moves is resolved by carpool, so its origin cannot have an address with another port.
        self.authority_port = self.port + MOVED if kind == "dns" else self.port
        self.authority = "%s:%d" % (self.server_name, self.authority_port)

    def words(self):
        """What the suite writes, and what a client inside the CONNECT would."""
        if self.own_tls:
            return {}
        plain, secure = ("%s:%d" % (self.host, self.port)).encode(), self.authority.encode()
        return {plain: secure, b" http://" + plain: b" https://" + secure}

    def words_back(self):
        return {self.authority.encode(): ("%s:%d" % (self.host, self.port)).encode()}

    def settings(self, ca, own_ca):
        """The [[origin]] of carpool."""
        lines = ['[[origin]]', 'uri = "https://%s"' % self.authority, 'intercept = true']
        if self.kind != "dns":
            port = self.port + MOVED if self.terminated else self.port
            lines.append('addresses = ["%s:%d"]' % (self.host, port))
        lines += ['[origin.upstream.tls]', 'ca_file = "%s"' % (ca if self.own_tls else own_ca)]
        return "\n".join(lines)

    def hosts(self):
        """Where the origin's TLS is accepted; a name that moves does it between two addresses."""
        return ("127.0.0.1", "127.0.0.2") if self.kind == "dns" else (self.host,)


def read_routes(file):
    return [Route(*line.split()) for line in pathlib.Path(file).read_text().splitlines() if line.strip()]
