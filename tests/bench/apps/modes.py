"""The ways from an application to the origin, one function each: it runs what stands between them while a with block runs, and yields
what of the application's environment differs, and the processes in between."""
import contextlib
import os
import pathlib
import shutil
import subprocess

from fetch import Absent
from scene import CARPOOL, program

NAME, SIZE = "api.test", 8
CONFIG = """workers = 1
[[listen]]
address = "127.0.0.1:3128"
[admin]
enabled = false
[log]
level = "warn"
access = false
[[origin]]
uri = "https://%(name)s"
alias = ["api"]
%(intercept)s
[origin.pool]
size = %(size)d
[origin.upstream.tls]
ca_file = "%(ca)s"
"""
HAPROXY = """defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  http-reuse always
frontend in
  bind 127.0.0.1:3129
  default_backend out
backend out
  http-request set-header Host %(name)s
  server origin %(name)s:443 ssl verify required ca-file %(ca)s sni str(%(name)s) maxconn %(size)d
"""
NGINX = """daemon off; worker_processes 1; pid %(dir)s/peer.pid; error_log %(dir)s/peer.log; user root;
events { worker_connections 512; }
http { access_log off; client_body_temp_path %(dir)s/b2; fastcgi_temp_path %(dir)s/f2; proxy_temp_path %(dir)s/p2; uwsgi_temp_path %(dir)s/u2; scgi_temp_path %(dir)s/s2;
  upstream out { server %(name)s:443; keepalive %(size)d; }
  server { listen 127.0.0.1:3129; location / { proxy_pass https://out; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host %(name)s;
    proxy_ssl_server_name on; proxy_ssl_name %(name)s; proxy_ssl_verify on; proxy_ssl_trusted_certificate %(ca)s; } } }
"""
THROUGH = "http://127.0.0.1:3128"


@contextlib.contextmanager
def direct(folder, ca):
    yield {"TARGET": "https://%s/hello" % NAME}, []


@contextlib.contextmanager
def _carpool(folder, ca, intercept=""):
    file = pathlib.Path(folder, "carpool.toml")
    table, _, key = intercept.partition("\n")
    file.write_text(CONFIG % {"size": SIZE, "name": NAME, "ca": ca, "intercept": table} + key)
    with program(CARPOOL, "--config", file, port=3128, stderr=None) as process:
        yield process.pid


@contextlib.contextmanager
def connect(folder, ca):
    with _carpool(folder, ca) as pid:
        yield {"TARGET": "https://%s/hello" % NAME, "HTTPS_PROXY": THROUGH, "https_proxy": THROUGH}, [pid]


@contextlib.contextmanager
def intercepted(folder, ca):
    authority = pathlib.Path(folder, "ca")
    for words in (["init", authority, "--host", NAME], ["bundle", authority]):
        done = subprocess.run([CARPOOL, "ca", *words], capture_output=True, text=True)
        if done.returncode:
            raise Absent((done.stderr or done.stdout).strip())
    with _carpool(folder, ca, 'intercept = true\n[intercept]\nca_dir = "%s"\n' % authority) as pid:
        trust = str(authority / "ca.pem")
        yield {"TARGET": "https://%s/hello" % NAME, "HTTPS_PROXY": THROUGH, "https_proxy": THROUGH, "SSL_CERT_FILE": trust, "REQUESTS_CA_BUNDLE": trust,
               "NODE_EXTRA_CA_CERTS": trust}, [pid]


@contextlib.contextmanager
def alias(folder, ca):
    with _carpool(folder, ca) as pid:
        yield {"TARGET": "http://api/hello", "HTTP_PROXY": THROUGH, "http_proxy": THROUGH}, [pid]


@contextlib.contextmanager
def _peer(folder, ca, name, text, *argv):
    if not shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin"):
        raise Absent("there is no " + name)
    file = pathlib.Path(folder, name + ".conf")
    file.write_text(text % {"size": SIZE, "name": NAME, "ca": ca, "dir": folder})
    with program(*[word.format(file=file, dir=folder) for word in argv], port=3129) as process:
        yield {"TARGET": "http://127.0.0.1:3129/hello"}, [process.pid]


def haproxy(folder, ca):
    return _peer(folder, ca, "haproxy", HAPROXY, "haproxy", "-db", "-f", "{file}")


def nginx(folder, ca):
    return _peer(folder, ca, "nginx", NGINX, "/usr/sbin/nginx", "-p", "{dir}", "-c", "{file}", "-e", "{dir}/peer.log")


# By the application's point of view: the URL is unchanged, or names the proxy or an alias.
ALL = {"direct": direct, "CONNECT through carpool": connect, "intercepted by carpool": intercepted, "alias of carpool": alias,
       "URL of HAProxy": haproxy, "URL of nginx": nginx}
