"""Other proxies in carpool's place: a case that fails through each of them too is no failure of carpool. HAProxy and nginx are made
forward proxies by their rules, HAProxy for addresses alone."""
import contextlib
import os
import pathlib
import tempfile

import fetch
import scene

NGINX = """daemon off; master_process off; pid %(folder)s/pid; error_log %(folder)s/log; events { worker_connections 1024; }
http { access_log off; client_max_body_size 0; large_client_header_buffers 4 64k; client_body_temp_path %(folder)s/b;
proxy_temp_path %(folder)s/p; fastcgi_temp_path %(folder)s/f; uwsgi_temp_path %(folder)s/u; scgi_temp_path %(folder)s/s;
server { listen 127.0.0.1:%(port)d; location / { proxy_pass http://$host:$proxied_port$request_uri; proxy_http_version 1.1;
proxy_set_header Connection ""; proxy_set_header Host $http_host; proxy_buffering off; proxy_request_buffering off;
proxy_pass_header Server; proxy_pass_header Date; proxy_read_timeout 10s; proxy_ignore_headers X-Accel-Redirect; } }
map $http_host $proxied_port { "~:(?<p>\\d+)$" $p; default 80; } }
"""
HAPROXY = """defaults
  mode http
  timeout connect 5s
  timeout client 10s
  timeout server 10s
frontend in
  bind 127.0.0.1:%(port)d
  http-request set-dst url_ip
  http-request set-dst-port url_port
  http-request set-uri %%[url,regsub(^http://[^/]*,)]
  default_backend out
backend out
  server any 0.0.0.0:0
"""
TINYPROXY = 'Port %(port)d\nListen 127.0.0.1\nTimeout 10\nAllow 127.0.0.1\nMaxClients 100\nLogFile "%(folder)s/log"\nLogLevel Error\n'
SQUID = """http_port 127.0.0.1:%(port)d
http_access allow localhost
cache deny all
pid_filename none
access_log none
cache_log %(folder)s/log
netdb_filename none
unlinkd_program %(root)s/usr/lib/squid/unlinkd
logfile_daemon %(root)s/usr/lib/squid/log_file_daemon
pinger_enable off
coredump_dir %(folder)s
error_directory %(root)s/usr/share/squid/errors/en
icon_directory %(root)s/usr/share/squid/icons
mime_table %(root)s/usr/share/squid/mime.conf
forwarded_for delete
read_timeout 10 seconds
request_header_access Cache-Control deny all
reply_header_access X-Cache deny all
reply_header_access X-Cache-Lookup deny all
reply_header_access Cache-Status deny all
"""
PACKAGES = {
    "haproxy": "haproxy liblua5.3-0 libopentracing-c-wrapper0 libopentracing1",
    "tinyproxy": "tinyproxy-bin",
    "squid": "squid squid-common libecap3 libtdb1 libltdl7 libdb5.3 libldap-2.5-0 libsasl2-2 libnetfilter-conntrack3 libnfnetlink0 libmnl0",
}
NAMES = ["haproxy", "nginx", "squid", "tinyproxy"]


@contextlib.contextmanager
def peer(name, port):
    """Runs this proxy on a port while the block runs."""
    program, environment = (name, {}) if name == "nginx" else fetch.debian(name, *PACKAGES[name].split())
    text, argv = {"nginx": (NGINX, ["-c"]), "haproxy": (HAPROXY, ["-db", "-f"]), "tinyproxy": (TINYPROXY, ["-d", "-c"]),
                  "squid": (SQUID, ["-N", "-f"])}[name]
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder).chmod(0o777)
        file = pathlib.Path(folder, "configuration")
        file.write_text(text % {"folder": folder, "port": port, "root": fetch.FOLDER / name})
        with scene.program(program, *argv, file, port=port, env={**os.environ, **environment}):
            yield
