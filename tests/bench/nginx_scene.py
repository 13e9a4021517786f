"""carpool with an nginx as its origin, started from the text of their configurations."""
import subprocess
import threading

from p99_scene import end_with, until_open
from process_use import Process

SIZE = 1024  # of the file /kib
# Names of the values: dir, origin (its port), cert and key.
TLS_ORIGIN = """daemon off; worker_processes 1; pid %(dir)s/pid%(origin)d; error_log %(dir)s/error;
events { worker_connections 4096; }
http { access_log off; keepalive_requests 100000000; keepalive_timeout 300s; client_body_temp_path %(dir)s/body;
  fastcgi_temp_path %(dir)s/f; proxy_temp_path %(dir)s/p; uwsgi_temp_path %(dir)s/u; scgi_temp_path %(dir)s/s;
  server { listen 127.0.0.1:%(origin)d ssl backlog=1024; ssl_certificate %(cert)s; ssl_certificate_key %(key)s; root %(dir)s/www; } }
"""
# Listeners, in plain text and for CONNECT, of carpool with that origin, which it intercepts. More values: proxy, plain, admin (ports) and ca.
INTERCEPTING = """[[listen]]
address = "127.0.0.1:%(proxy)d"
[[listen]]
address = "127.0.0.1:%(plain)d"
origin = "https://localhost:%(origin)d"
[admin]
address = "127.0.0.1:%(admin)d"
[upstream]
protocols = ["h1"]
[upstream.tls]
ca_file = "%(ca)s"
[intercept]
ca_dir = "%(dir)s/ca"
on_distrust = "fail"
[[origin]]
uri = "https://localhost:%(origin)d"
intercept = true
[log]
access = false
"""


def start(ends, folder, program, nginx, carpool, values):
    """Starts both; `values` fill the configurations and have the origin's port. They end with `ends`. Returns carpool's process."""
    (folder / "www").mkdir()
    (folder / "www/kib").write_bytes(b"x" * SIZE)
    folder.chmod(0o755)
    (folder / "nginx.conf").write_text(nginx % values)
    (folder / "carpool.toml").write_text(carpool % values)
    end_with(ends, subprocess.Popen(["nginx", "-c", folder / "nginx.conf", "-p", folder], stderr=subprocess.DEVNULL))
    until_open(values["origin"])
    process = subprocess.Popen([program, "--config", folder / "carpool.toml"], stderr=subprocess.PIPE, text=True)
    end_with(ends, process)
    assert any("carpool ready" in line for line in process.stderr)
    threading.Thread(target=process.stderr.read, daemon=True).start()
    return Process(process.pid)
