"""The program under test: started from a configuration, queried over its admin address, stopped with TERM."""
import json
import os
import pathlib
import re
import signal
import subprocess
import threading
import urllib.parse

from prometheus_client.parser import text_string_to_metric_families

from . import late, toml
from .ports import free_port
from .wait import ended, until
from .wire import Client

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAM = pathlib.Path(os.environ.get("CARPOOL", ROOT / "build/release/carpool")).resolve()


def built_with(pattern):
    return PROGRAM.exists() and re.search(pattern, PROGRAM.read_bytes()) is not None


SANITIZED = built_with(b"__[at]san_init")
TSAN = built_with(b"__tsan_init")
READY = 20  # seconds; a sanitizer build is slow to start


class Carpool:
    """settings: tables as in config.toml, merged over the defaults of a test; `listen` is merged into the one listener, `inside` is a
    command that runs carpool's own."""

    def __init__(self, folder, listen=None, start=True, inside=(), **settings):
        self.folder, self._inside = pathlib.Path(folder), list(inside)
        self.address = ("127.0.0.1", free_port())
        self.admin_address = ("127.0.0.1", free_port())
        base = {"workers": 2, "shutdown_grace": "5s",
                "listen": [{"address": "%s:%d" % self.address}],
                "admin": {"address": "%s:%d" % self.admin_address},
                "log": {"level": "info"}}
        settings = dict(settings)
        listeners = settings.pop("listeners", None)
        if listeners is not None:
            base["listen"] = listeners
        elif listen:
            base["listen"][0].update(listen)
        self.config = self.folder / "config.toml"
        self.config.write_text(toml.dumps(toml.merge(base, settings)))
        self.process, self.output, self._reader = None, [], None
        if start:
            self.start()

    # ---- start and stop ----

    def start(self, *arguments):
        self.launch(*arguments)
        until(self._is_ready, READY, "the line `carpool ready`")
        return self

    def launch(self, *arguments):
        """Starts the process and does not wait until it is ready."""
        self.output = []
        self.process = subprocess.Popen([*self._inside, PROGRAM, "--config", self.config, *arguments], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=self.folder)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def check(self):
        """Returns the result of --check for this configuration."""
        done = subprocess.run([PROGRAM, "--config", self.config, "--check"], capture_output=True, text=True, timeout=20)
        return done.stdout + done.stderr

    def _read(self):
        for line in late.lines(self.process.stdout):
            self.output.append(line.decode(errors="replace").rstrip("\n"))

    def _is_ready(self):
        if any("carpool ready" in line for line in list(self.output)):
            return True
        if self.process.poll() is not None:
            self._reader.join(5)
            raise AssertionError("carpool ended with %d:\n%s" % (self.process.returncode, "\n".join(self.output)))
        return False

    def signal(self, number):
        self.process.send_signal(number)
        if number == signal.SIGSTOP:  # a thread that runs or is woken stops later than kill() returns
            until(self._is_stopped, what="the stop of every thread")

    def _is_stopped(self):  # "t" is a thread that a tracer stopped
        stats = pathlib.Path("/proc/%d/task" % self.process.pid).glob("*/stat")
        return all(stat.read_text().rpartition(")")[2].split()[0] in "Tt" for stat in stats)

    def wait(self, seconds=20):
        status = ended(self.process, seconds)
        self._reader.join(5)
        return status

    def stop(self):
        """Sends TERM; the exit status and the output must be clean."""
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            status = self.wait()
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError("carpool did not end after TERM:\n" + self.tail()) from None
        text = "\n".join(self.output)
        assert status == 0, "carpool ended with %d:\n%s" % (status, self.tail())
        assert "Sanitizer" not in text and "runtime error" not in text, text

    def tail(self, count=40):
        return "\n".join(self.output[-count:])

    def rss(self):
        """Returns the resident bytes."""
        status = pathlib.Path("/proc/%d/status" % self.process.pid).read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) * 1024

    # ---- its interfaces ----

    def client(self):
        return Client(self.address)

    def admin(self, method, path, headers=(), host=None):
        with Client(self.admin_address) as c:
            return c.request(method, path, headers, host=host or "127.0.0.1:%d" % self.admin_address[1])

    def get_json(self, path):
        response = self.admin("GET", path)
        assert response.status == 200, (path, response)
        return json.loads(response.body)

    def metrics(self, name=""):
        """{(name, frozenset of labels): value}, of all whose names begin so; the parser is Prometheus's own, which takes
        milliseconds for all of them."""
        response = self.admin("GET", "/metrics")
        assert response.status == 200, response
        text = "".join(line for line in response.body.decode().splitlines(True) if line.startswith(name))
        return {(s.name, frozenset(s.labels.items())): s.value for family in text_string_to_metric_families(text) for s in family.samples}

    def metric(self, name, **labels):
        """Returns the sum of the samples that have these labels."""
        want = set(labels.items())
        return sum(v for (n, ls), v in self.metrics(name).items() if n == name and want <= ls)

    def replace_config(self, text):
        """As an editor does: renames a new file over the old one."""
        fresh = self.config.with_suffix(".new")
        fresh.write_text(text)
        fresh.rename(self.config)

    @staticmethod
    def pool_path(label):
        """Returns the path of one origin's pool at the admin endpoint."""
        return "/pools/" + urllib.parse.quote(label, safe="")

    def pool(self, label):
        """Returns the entry of one origin in /pools."""
        data = self.get_json("/pools")
        rows = data.get("pools", data) if isinstance(data, dict) else data
        if isinstance(rows, dict):
            return rows[label]
        return next(r for r in rows if label in (r.get("origin"), r.get("uri"), r.get("label")))

    def access_log(self):
        """Returns the access log so far, one dict per request."""
        found = []
        for line in list(self.output):
            if line.startswith("{"):
                try:
                    row = json.loads(line)
                except ValueError:
                    continue
                if "status" in row:
                    found.append(row)
        return found
