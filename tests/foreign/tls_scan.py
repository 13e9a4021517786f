"""sslyze scans a TLS listener. Each of its findings must be the one that stands here: none is above informational."""
import contextlib
import datetime
import json
import pathlib
import subprocess
import tempfile

import fetch
import scene

VERSION = "6.3.1"
SCANS = """--tlsv1_3 --tlsv1_2 --tlsv1_1 --tlsv1 --sslv3 --sslv2 --reneg --resum --early_data --compression --openssl_ccs --fallback --robot
--heartbleed --ems --elliptic_curves""".split()
SUITES13 = "TLS_AES_128_GCM_SHA256 TLS_AES_256_GCM_SHA384 TLS_CHACHA20_POLY1305_SHA256"
SUITES12 = "TLS_ECDHE_%s_WITH_AES_128_GCM_SHA256 TLS_ECDHE_%s_WITH_AES_256_GCM_SHA384 TLS_ECDHE_%s_WITH_CHACHA20_POLY1305_SHA256"
# What is informational: the versions that are spoken and their suites, the groups, that tickets resume sessions.
EXPECTED = {
    "ssl_2_0_cipher_suites": "", "ssl_3_0_cipher_suites": "", "tls_1_0_cipher_suites": "", "tls_1_1_cipher_suites": "",
    "tls_1_2_cipher_suites": SUITES12, "tls_1_3_cipher_suites": SUITES13,
    "elliptic_curves": "X25519 secp256r1 secp384r1",
    "tls_compression": {"supports_compression": False},
    "tls_1_3_early_data": {"supports_early_data": False},
    "openssl_ccs_injection": {"is_vulnerable_to_ccs_injection": False},
    "tls_fallback_scsv": {"supports_fallback_scsv": True},
    "heartbleed": {"is_vulnerable_to_heartbleed": False},
    "robot": {"robot_result": "NOT_VULNERABLE_RSA_NOT_SUPPORTED"},
    "session_renegotiation": {"supports_secure_renegotiation": True, "is_vulnerable_to_client_renegotiation_dos": False,
                              "client_renegotiations_success_count": 0},
    "session_resumption": {"session_id_resumption_result": "NOT_SUPPORTED", "session_id_attempted_resumptions_count": 5,
                           "session_id_successful_resumptions_count": 0, "tls_ticket_resumption_result": "FULLY_SUPPORTED",
                           "tls_ticket_attempted_resumptions_count": 5, "tls_ticket_successful_resumptions_count": 5},
    "tls_extended_master_secret": {"supports_ems_extension": True},
}
LEFT_OUT = {"certificate_info", "http_headers"}  # of the test's own certificate, and of an origin


def finding(name, result):
    """Returns a finding in the form of EXPECTED."""
    if name.endswith("_cipher_suites"):
        return " ".join(sorted(one["cipher_suite"]["name"] for one in result["accepted_cipher_suites"]))
    if name == "elliptic_curves":
        return " ".join(sorted(one["name"] for one in result["supported_curves"]))
    return result


@contextlib.contextmanager
def listener(key):
    """carpool with a TLS listener; `key`: of its certificate. Yields the port."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    now = datetime.datetime.now(datetime.timezone.utc)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    certificate = (x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
                   .serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(days=1))
                   .not_valid_after(now + datetime.timedelta(days=30))
                   .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), False).sign(key, hashes.SHA256()))
    pem = serialization.Encoding.PEM
    with tempfile.TemporaryDirectory() as folder:
        cert_file, key_file = pathlib.Path(folder, "tls.crt"), pathlib.Path(folder, "tls.key")
        cert_file.write_bytes(certificate.public_bytes(pem))
        key_file.write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
        port = scene.free_port()
        with scene.carpool(port, 'cert_file = "%s"\nkey_file = "%s"\n' % (cert_file, key_file)):
            yield port


def scan(sslyze, port):
    """Returns what sslyze found, by the name of its scan."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        subprocess.run([str(sslyze), "--quiet", "--mozilla_config=disable", "--json_out", out.name, *SCANS, "localhost:%d" % port],
                       timeout=300, check=False, stdout=subprocess.DEVNULL)
        said = json.loads(pathlib.Path(out.name).read_text())
    return said["server_scan_results"][0]["scan_result"] or {}


def judge(report, kind, found):
    wanted = {name: value.replace("%s", kind) if isinstance(value, str) else value for name, value in EXPECTED.items()}
    for name in sorted(set(found) - LEFT_OUT | set(wanted)):
        result = (found.get(name) or {}).get("result")
        got = None if result is None else finding(name, result)
        report.case("%s-%s" % (kind, name), got == wanted.get(name), "found %s, expected %s" % (got, wanted.get(name)))


def suite(report, peer):
    from cryptography.hazmat.primitives.asymmetric import ec, rsa
    sslyze = fetch.python("sslyze", VERSION) / "sslyze"
    for kind, key in (("ECDSA", ec.generate_private_key(ec.SECP256R1())), ("RSA", rsa.generate_private_key(65537, 2048))):
        with listener(key) as port:
            judge(report, kind, scan(sslyze, port))


if __name__ == "__main__":
    scene.main(suite)
