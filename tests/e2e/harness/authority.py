"""An authority for intercepted origins, as `carpool ca init` makes it."""
import datetime
import ipaddress
import pathlib

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519


class Authority:
    """Writes ca.pem and ca.key into a folder, for these names. `key`: a private key instead of a new one; `more`: further extensions."""

    def __init__(self, folder, names, days=1, refused=("0.0.0.0/0", "::/0"), key=None, more=()):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(exist_ok=True)
        key = key or ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "intercept %s" % id(self))])
        now = datetime.datetime.now(datetime.timezone.utc)
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        permitted = [x509.DNSName(n) for n in names]
        excluded = [x509.IPAddress(ipaddress.ip_network(n)) for n in refused]
        builder = (x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
                   .serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(days=2))
                   .not_valid_after(now + datetime.timedelta(days=days))
                   .add_extension(x509.BasicConstraints(True, 0), True).add_extension(usage, True)
                   .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
                   .add_extension(x509.NameConstraints(permitted or None, excluded or None), True))
        for extension in more:
            builder = builder.add_extension(extension, False)
        certificate = builder.sign(key, None if isinstance(key, (ed25519.Ed25519PrivateKey, ed448.Ed448PrivateKey)) else hashes.SHA256())
        self.ca, secret = self.folder / "ca.pem", self.folder / "ca.key"
        self.ca.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        secret.touch(0o600)
        secret.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
