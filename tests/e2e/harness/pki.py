"""Certificates of one test run: an authority, a server's and a client's."""
import datetime
import ipaddress
import pathlib

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

DAY = datetime.timedelta(days=1)
NAMES = ["origin.test", "localhost"]


class Pki:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._ca = self._sign("e2e authority", self._key.public_key(), "e2e authority", True, [])
        self.ca = self._write("ca.pem", self._ca)
        self.server, self.server_key = self.issue("server", NAMES)
        self.wrong_name, self.wrong_name_key = self.issue("wrong-name", ["other.test"])
        self.client, self.client_key = self.issue("client", ["client.test"])

    def _sign(self, name, public, issuer, authority, names):
        now = datetime.datetime.now(datetime.timezone.utc)
        builder = (x509.CertificateBuilder().subject_name(_name(name)).issuer_name(_name(issuer)).public_key(public)
                   .serial_number(x509.random_serial_number()).not_valid_before(now - DAY).not_valid_after(now + 30 * DAY)
                   .add_extension(x509.BasicConstraints(authority, None), True)
                   .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), False)
                   .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), False))
        if names:
            alternatives = [x509.DNSName(n) for n in names] + [x509.IPAddress(ipaddress.ip_address("127.0.0.1"))] * ("localhost" in names)
            builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), False)
        return builder.sign(self._key, hashes.SHA256())

    def issue(self, label, names):
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._sign(names[0], key.public_key(), "e2e authority", False, names)
        return self._write(label + ".pem", certificate), self._write(label + ".key", key)

    def revoking(self, *paths, name="revoking.pem", until=DAY):
        """Returns a file with the authority and its list of the certificates in these files, which expires after `until`."""
        now = datetime.datetime.now(datetime.timezone.utc)
        builder = (x509.CertificateRevocationListBuilder().issuer_name(self._ca.subject).last_update(now - 2 * DAY).next_update(now + until))
        for path in paths:
            number = x509.load_pem_x509_certificate(pathlib.Path(path).read_bytes()).serial_number
            builder = builder.add_revoked_certificate(x509.RevokedCertificateBuilder().serial_number(number).revocation_date(now - DAY).build())
        text = builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        path = self.folder / name
        path.write_bytes(pathlib.Path(self.ca).read_bytes() + text)
        return str(path)

    def _write(self, name, thing):
        path = self.folder / name
        pem = serialization.Encoding.PEM
        path.write_bytes(thing.public_bytes(pem) if hasattr(thing, "public_bytes") else
                         thing.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
        return str(path)


def _name(text):
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])
