"""A real nginx on free ports, plain and TLS, with the locations that tests use."""
import pathlib
import shutil
import socket
import subprocess

from .ports import free_port
from .wait import until

CONFIG = """
daemon off; worker_processes 1; pid {dir}/nginx.pid; error_log {dir}/error.log;
{user}
events {{ worker_connections 1024; }}
http {{
  access_log {dir}/access.log; client_max_body_size 0; keepalive_requests 100000;
  client_body_temp_path {dir}/body; proxy_temp_path {dir}/p; fastcgi_temp_path {dir}/f; uwsgi_temp_path {dir}/u; scgi_temp_path {dir}/s;
  server {{
    listen 127.0.0.1:{port}; listen 127.0.0.1:{tls_port} ssl;
    listen 127.0.0.1:{h2_port} ssl http2;
    server_name origin.test; ssl_certificate {pki.server}; ssl_certificate_key {pki.server_key};
    ssl_client_certificate {pki.ca}; ssl_verify_client optional;
    root {dir}/www;
    location = /hello {{ default_type text/plain; return 200 "hello over $scheme\\n"; }}
    location = /whoami {{ default_type text/plain; return 200 "$host $ssl_client_s_dn $ssl_server_name"; }}
    location = /gzip {{ gzip on; gzip_min_length 1; gzip_types text/plain; default_type text/plain; return 200 "{text}\n"; }}
    location = /redirect {{ return 302 /hello; }}
    location = /sink {{ proxy_pass http://127.0.0.1:{port}/sunk; }}  # reads all of the body before it answers
    location = /sunk {{ default_type text/plain; return 200 "got $http_content_length via $http_via\\n"; }}
  }}
}}
"""


def available():
    return shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")


class Nginx:
    def __init__(self, folder, pki):
        self.dir = pathlib.Path(folder)
        self.dir.chmod(0o755)
        (self.dir / "www").mkdir()
        (self.dir / "www" / "big").write_bytes(bytes(range(256)) * 4096)  # 1 MiB
        self.port, self.tls_port, self.h2_port = free_port(), free_port(), free_port()
        config = self.dir / "nginx.conf"
        user = "user root;" if pathlib.Path("/proc/self").stat().st_uid == 0 else ""
        config.write_text(CONFIG.format(dir=self.dir, port=self.port, tls_port=self.tls_port, h2_port=self.h2_port, pki=pki, user=user, text="again " * 100))
        self._process = subprocess.Popen([available(), "-p", self.dir, "-c", config, "-e", self.dir / "error.log"],
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(self._responses, what="nginx's listener")

    def _responses(self):
        if self._process.poll() is not None:
            raise AssertionError("nginx ended: " + (self.dir / "error.log").read_text())
        try:
            socket.create_connection(("127.0.0.1", self.tls_port), 1).close()
            return True
        except OSError:
            return False

    def stop(self):
        self._process.terminate()
        self._process.wait(10)
