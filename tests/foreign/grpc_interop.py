"""gRPC's interoperability cases: Go's client and server with carpool in between, over h2c and over TLS to the server."""
import subprocess

import fetch
import scene

VERSION = "v1.65.0"
# The cases that need no credentials of a cloud and that this server passes without a proxy: it names no server and sends no load reports.
CASES = ("empty_unary large_unary client_streaming server_streaming ping_pong empty_stream timeout_on_sleeping_server cancel_after_begin "
         "cancel_after_first_response status_code_and_message special_status_message custom_metadata unimplemented_method "
         "unimplemented_service rpc_soak channel_soak").split()
NAME = "foo.test.google.fr"  # in the certificate that the module brings
H2_ONLY = '\n[upstream]\nprotocols = ["h2"]\n'


def testdata():
    done = subprocess.run(["go", "env", "GOMODCACHE"], capture_output=True, text=True, check=True)
    return "%s/google.golang.org/grpc@%s/testdata" % (done.stdout.strip(), VERSION)


def settings(tls, server):
    if not tls:
        return 'origin = "http://127.0.0.1:%d"\n%s' % (server, H2_ONLY)
    return 'origin = "https://%s:%d"\n%s\n[upstream.tls]\nca_file = "%s/ca.pem"\n[[origin]]\nuri = "https://%s:%d"\naddresses = ["127.0.0.1:%d"]\n' % (
        NAME, server, H2_ONLY, testdata(), NAME, server, server)


def cases(report, form, client, port, *more):
    for name in CASES:
        try:
            done = subprocess.run([client, "--server_host=127.0.0.1", "--server_port=%d" % port, "--test_case=" + name, *more],
                                  capture_output=True, text=True, errors="replace", timeout=60, check=False)
            why = (done.stderr.strip().splitlines() or ["exit status %d" % done.returncode])[-1]
            report.case("%s/%s" % (form, name), done.returncode == 0, why)
        except subprocess.TimeoutExpired:
            report.case("%s/%s" % (form, name), False, "no end after 60 s")


def suite(report, peer):
    programs = fetch.go("google.golang.org/grpc", VERSION, "interop/client", "interop/server")
    for form, tls in (("h2c", False), ("tls", True)):
        server, port = scene.free_port(), scene.free_port()
        with scene.program(programs / "server", "--port=%d" % server, *(["--use_tls"] if tls else []), port=server):
            if peer:
                own = ["--use_tls", "--use_test_ca", "--server_host_override=" + NAME] if tls else []
                cases(report, form, programs / "client", server, *own)
                continue
            with scene.carpool(port, settings(tls, server)):
                cases(report, form, programs / "client", port)


if __name__ == "__main__":
    scene.main(suite, peers=["none"])
