"""`carpool webhook` as a process, the API server's requests to it, and its files."""
import http.client
import json
import os
import re
import select
import ssl
import subprocess
import time

from harness.carpool import PROGRAM

INJECTION = {
    "initContainers": [{"name": "carpool", "image": "carpool:1", "restartPolicy": "Always"}],
    "volumes": [{"name": "carpool-config", "downwardAPI": {"items": []}}],
    "env": [{"name": "http_proxy", "value": "http://127.0.0.1:3128"}],
    "config": "[[origin]]\nuri = \"https://api.example.com\"\nalias = [\"api\"]\n",
}


def certificate(folder, name):
    """Writes a new self-signed certificate, under the names that the webhook reads."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                    "/CN=" + name, "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", folder / "new.key", "-out",
                    folder / "new.crt"], check=True, capture_output=True)
    for ending in ("key", "crt"):
        (folder / ("new." + ending)).rename(folder / ("tls." + ending))


class Webhook:
    def __init__(self, folder, *flags):
        self.folder = folder
        certificate(folder, "first")
        (folder / "injection.json").write_text(json.dumps(INJECTION))
        self.unread = b""  # a buffer of the pipe's file object would hide lines from select()
        self.process = subprocess.Popen([PROGRAM, "webhook", "--listen=127.0.0.1:0", "--certificate", folder / "tls.crt", "--key",
                                         folder / "tls.key", "--injection", folder / "injection.json", *flags], stderr=subprocess.PIPE)
        self.port = int(re.search(r"listen=127\.0\.0\.1:(\d+)", self.line("webhook ready")).group(1))

    def stop(self):
        self.process.kill()
        self.process.wait()

    def line(self, word, seconds=20):
        """Returns the next line of its log that contains the word."""
        end, pipe = time.monotonic() + seconds, self.process.stderr.fileno()
        while True:
            while b"\n" in self.unread:
                line, _, self.unread = self.unread.partition(b"\n")
                if word in line.decode():
                    return line.decode()
            assert select.select([pipe], [], [], max(0, end - time.monotonic()))[0], "no line with " + word
            more = os.read(pipe, 65536)
            assert more, "it has ended"
            self.unread += more

    def wire(self, trust=None):
        context = ssl.create_default_context(cafile=trust or self.folder / "tls.crt")
        return http.client.HTTPSConnection("127.0.0.1", self.port, context=context, timeout=10)

    def ask(self, method, path, body=None, wire=None):
        wire = wire or self.wire()
        wire.request(method, path, body)
        response = wire.getresponse()
        return response.status, response.read().decode()

    def review(self, pod, wire=None):
        request = {"uid": "1", "kind": {"kind": "Pod"}, "namespace": "shop", "operation": "CREATE", "object": pod}
        status, text = self.ask("POST", "/inject?timeout=5s", json.dumps(
            {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}), wire)
        assert status == 200
        return json.loads(text)["response"]


def pod(**annotations):
    return {"metadata": {"name": "app", "labels": {"carpool.io/inject": "true"}, "annotations": annotations},
            "spec": {"containers": [{"name": "app"}]}}
