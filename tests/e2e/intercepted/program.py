"""carpool with an authority, and the certificates of the origins that the adapter puts behind TLS."""
import asyncio
import os
import pathlib
import socket
import ssl
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness.pki import Pki  # noqa: E402

# As the suite's own specification of carpool.
SETTINGS = """workers = 2
shutdown_grace = "1s"
[[listen]]
address = "127.0.0.1:%d"
header_timeout = "5s"
idle_timeout = "10s"
[admin]
address = "unix:%s/admin.sock"
[pool]
size = 256
connect_timeout = "2s"
wait_timeout = "8s"
[request]
response_header_timeout = "4s"
idle_timeout = "4s"
[dns]
min_ttl = "1s"
max_ttl = "5s"
[intercept]
ca_dir = "%s"
on_distrust = "fail"
[log]
level = "warn"
access = false
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Program:
    def __init__(self, folder, authority):
        self.folder, self.suites_ca = folder, authority
        self.program = os.environ["CARPOOL"]
        self.address = ("127.0.0.1", free_port())
        (folder / "pki").mkdir()
        self.pki = Pki(folder / "pki")
        self.server, self.server_key = self.pki.issue("origins", ["localhost", "moving.test"])

    def origin_context(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.server, self.server_key)
        context.set_alpn_protocols(["http/1.1"])
        return context

    def client_context(self, protocol):
        """Trusts carpool's authority alone: what passes is intercepted, and no tunnel."""
        context = ssl.create_default_context(cafile=str(self.folder / "ca/ca.pem"))
        context.set_alpn_protocols([protocol])
        return context

    async def start(self, routes):
        names = sorted({route.server_name for route in routes})
        hosts = [word for name in names for word in ("--host", name)]
        subprocess.run([self.program, "ca", "init", self.folder / "ca", *hosts], check=True, stdout=subprocess.DEVNULL)
        config = self.folder / "carpool.toml"
        origins = "\n".join(route.settings(self.suites_ca, self.pki.ca) for route in routes)
        config.write_text(SETTINGS % (self.address[1], self.folder, self.folder / "ca") + origins + "\n")
        self.process = await asyncio.create_subprocess_exec(self.program, "--config", config, stderr=asyncio.subprocess.PIPE)
        while True:
            line = await self.process.stderr.readline()
            if not line:
                sys.exit("carpool did not start")
            sys.stderr.buffer.write(line)
            if b"carpool ready" in line:
                break
        self.reader = asyncio.get_running_loop().create_task(self.copy())

    async def copy(self):
        while line := await self.process.stderr.readline():
            sys.stderr.buffer.write(line)

    async def ended(self):
        await self.process.wait()

    def stop(self):
        if self.process.returncode is None:
            self.process.terminate()
