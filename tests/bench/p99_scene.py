"""Helpers of the p99 benchmarks: an nginx, a carpool with many origins on it, a load of 2,000 requests a second, and a
request that is sent once a second meanwhile."""
import contextlib
import http.client
import pathlib
import socket
import subprocess
import tempfile
import threading

CLIENTS, RATE = 20, 2000
# Of each program's configuration: its ports, and no access log.
LISTENERS = """[[listen]]
address = "127.0.0.1:%(fixed)d"
origin = "http://127.0.0.1:%(origin)d"
[[listen]]
address = "127.0.0.1:%(any)d"
[admin]
address = "127.0.0.1:%(admin)d"
[log]
access = false
"""
NGINX = """daemon off; worker_processes 1; pid %(dir)s/pid; error_log %(dir)s/error;
events { worker_connections 4096; }
http { access_log off; keepalive_requests 1000000; client_body_temp_path %(dir)s/body;
  server { listen 0.0.0.0:%(port)d backlog=1024; location / { return 200 "hello"; } } }
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def until_open(port):
    while True:
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) == 0:
                return


def ask(port, path, method="GET"):
    client = http.client.HTTPConnection("127.0.0.1", port)
    client.request(method, path)
    body = client.getresponse().read()
    client.close()
    return body


@contextlib.contextmanager
def scene():
    """Returns (folder, port of nginx, processes to end)."""
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as ends:
        folder, port = pathlib.Path(name), free_port()
        (folder / "nginx.conf").write_text(NGINX % {"dir": folder, "port": port})
        end_with(ends, subprocess.Popen(["nginx", "-c", folder / "nginx.conf", "-p", folder], stderr=subprocess.DEVNULL))
        until_open(port)
        yield folder, port, ends


def end_with(ends, process):
    ends.callback(process.wait)
    ends.callback(process.terminate)


class Program:
    """Starts carpool with a configuration that leaves its ports open, and sends one request to each origin."""

    def __init__(self, program, config, text, values, origins):
        ports = {name: free_port() for name in ("fixed", "any", "admin")}
        config.write_text(text % {**ports, **values})
        self.fixed, self.admin = ports["fixed"], ports["admin"]
        self.process = subprocess.Popen([program, "--config", config], stderr=subprocess.PIPE, text=True)
        assert any("carpool ready" in line for line in self.process.stderr), "it ended"
        client = http.client.HTTPConnection("127.0.0.1", ports["any"])
        for uri in origins:
            client.request("GET", uri)
            response = client.getresponse()
            assert response.status == 200 and response.read()

    def load(self, log, seconds):
        """Returns (start, duration) of each request, in microseconds."""
        log.unlink(missing_ok=True)
        subprocess.run(["h2load", "--h1", "-c%d" % CLIENTS, "--rps=%d" % (RATE // CLIENTS), "-D%d" % seconds, "--log-file=%s" % log,
                        "http://127.0.0.1:%d/" % self.fixed], check=True, stdout=subprocess.DEVNULL)
        rows = [line.split() for line in log.read_text().splitlines()]
        assert all(row[1] == "200" for row in rows), "a request was lost"
        return [(int(row[0]), int(row[2])) for row in rows]


@contextlib.contextmanager
def each_second(work):
    stop = threading.Event()

    def run():
        while not stop.wait(1):
            work()
    worker = threading.Thread(target=run)
    worker.start()
    yield
    stop.set()
    worker.join()


def percentiles(us):
    us = sorted(us)
    return [us[int(len(us) * share)] for share in (0.5, 0.99, 0.999)]
