"""A root, an authority that it issued, and a certificate of localhost that this one issued; each with its own lifetime."""
import datetime
import pathlib

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

HOUR = datetime.timedelta(hours=1)
PEM = serialization.Encoding.PEM


class Certified:
    def __init__(self, name, issuer=None, life=HOUR, authority=True):
        self.key = ec.generate_private_key(ec.SECP256R1())
        issuer = issuer or self
        self.name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        now = datetime.datetime.now(datetime.timezone.utc)
        builder = (x509.CertificateBuilder().subject_name(self.name).issuer_name(issuer.name).public_key(self.key.public_key())
                   .serial_number(x509.random_serial_number()).not_valid_before(now - HOUR).not_valid_after(now + life)
                   .add_extension(x509.BasicConstraints(authority, None), True)
                   .add_extension(x509.SubjectKeyIdentifier.from_public_key(self.key.public_key()), False)
                   .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.key.public_key()), False))
        if not authority:
            builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), False)
        self.certificate = builder.sign(issuer.key, hashes.SHA256())

    def pem(self):
        return self.certificate.public_bytes(PEM)

    def revoking(self, *certified, life=HOUR):
        """Its revocation list, in PEM."""
        now = datetime.datetime.now(datetime.timezone.utc)
        builder = x509.CertificateRevocationListBuilder().issuer_name(self.name).last_update(now - HOUR).next_update(now + life)
        for one in certified:
            number = one.certificate.serial_number
            builder = builder.add_revoked_certificate(x509.RevokedCertificateBuilder().serial_number(number).revocation_date(now - HOUR).build())
        return builder.sign(self.key, hashes.SHA256()).public_bytes(PEM)


class Chain:
    def __init__(self, folder, middle_life=HOUR):
        self.folder = pathlib.Path(folder)
        self.root = Certified("root")
        self.middle = Certified("middle", self.root, middle_life)
        self.leaf = Certified("leaf", self.middle, authority=False)
        self.cert, self.key = self.folder / "chain.pem", self.folder / "chain.key"
        self.cert.write_bytes(self.leaf.pem() + self.middle.pem())
        self.key.write_bytes(self.leaf.key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))

    def trusted(self, *lists):
        """A file with the root and these lists."""
        path = self.folder / "trusted.pem"
        path.write_bytes(self.root.pem() + b"".join(lists))
        return str(path)
