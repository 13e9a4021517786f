"""The applications of the scene, unchanged in each mode: only their environment differs. Each is a function (folder, port, environment)
that runs the application while a with block runs, and yields the processes whose CPU time is the application's."""
import contextlib
import os
import pathlib
import sys

import fetch
from scene import program, wait

HERE = pathlib.Path(__file__).resolve().parent
PYTHON, NODE = fetch.ROOT / "build/bench-apps/python", fetch.ROOT / "build/bench-apps/node"
WORKERS = 8
PHP_PACKAGES = ["php8.2-fpm", "php8.2-common", "php8.2-curl", "libargon2-1", "libsodium23", "libxml2", "libcurl4", "libapparmor1", "libonig5", "libicu72",
                "libnghttp2-14", "librtmp1", "libssh2-1", "libpsl5", "libldap-2.5-0", "libsasl2-2", "libbrotli1", "libgssapi-krb5-2", "libkrb5-3", "libk5crypto3",
                "libkrb5support0", "libkeyutils1"]
FRONT = """daemon off; worker_processes 1; pid %(dir)s/front.pid; error_log %(dir)s/front.log; user root;
events { worker_connections 512; }
http { access_log off; client_body_temp_path %(dir)s/b; fastcgi_temp_path %(dir)s/f; proxy_temp_path %(dir)s/p; uwsgi_temp_path %(dir)s/u; scgi_temp_path %(dir)s/s;
  server { listen 127.0.0.1:%(port)d; location / { fastcgi_pass unix:%(dir)s/php.sock; fastcgi_param REQUEST_METHOD GET; fastcgi_param SCRIPT_FILENAME %(script)s; } } }
"""
PHP = """[global]
error_log = %(dir)s/fpm.log
daemonize = no
[www]
user = root
listen = %(dir)s/php.sock
pm = static
pm.max_children = %(workers)d
clear_env = no
"""


def get_php():
    return fetch.debian("php-fpm8.2", *PHP_PACKAGES)


def get_gunicorn():
    if not (PYTHON / "gunicorn").exists():
        fetch.command(sys.executable, "-m", "pip", "install", "-q", "--target", PYTHON, "gunicorn", "requests")


def get_node():
    if not (NODE / "node_modules/undici").exists():
        NODE.mkdir(parents=True, exist_ok=True)
        fetch.command("npm", "install", "--silent", "--no-audit", "--prefix", NODE, "undici@6")


@contextlib.contextmanager
def gunicorn(folder, port, environment):
    with program(sys.executable, "-m", "gunicorn", "-w", WORKERS, "-b", "127.0.0.1:%d" % port, "--chdir", HERE, "gunicorn_app:app",
                 env={**environment, "PYTHONPATH": str(PYTHON)}, port=port) as process:
        yield [process.pid]


@contextlib.contextmanager
def php_fpm(folder, port, environment):
    _, libraries = get_php()
    root = fetch.FOLDER / "php-fpm8.2"
    extensions = next((root / "usr/lib/php").glob("2*"))
    values = {"dir": folder, "port": port, "script": HERE / "php_app.php", "workers": WORKERS}
    pathlib.Path(folder, "front.conf").write_text(FRONT % values)
    pathlib.Path(folder, "fpm.conf").write_text(PHP % values)
    settings = ["-d", "extension=%s/curl.so" % extensions, "-d", "curl.cainfo=" + environment["SSL_CERT_FILE"]]
    with program(root / "usr/sbin/php-fpm8.2", "-R", "-n", *settings, "-y", pathlib.Path(folder, "fpm.conf"), "-p", folder,
                 env={**environment, **libraries}) as process:
        wait.until(pathlib.Path(folder, "php.sock").exists, 20, "PHP-FPM's socket")
        with program("/usr/sbin/nginx", "-p", folder, "-c", pathlib.Path(folder, "front.conf"), "-e", pathlib.Path(folder, "front.log"), port=port):
            yield [process.pid]


@contextlib.contextmanager
def node(folder, port, environment):
    script = NODE / "node_app.mjs"  # imports are looked for beside the file
    script.write_text((HERE / "node_app.mjs").read_text())
    with program("node", script, env={**environment, "PORT": str(port)}, port=port) as process:
        yield [process.pid]


# By name: what gets the application, and what runs it.
ALL = {"PHP-FPM, curl": (get_php, php_fpm), "gunicorn, requests": (get_gunicorn, gunicorn), "Node, undici": (get_node, node)}


def cpu_seconds(roots):
    """Returns the CPU time of these processes and of all their descendants, ended ones included."""
    parents, times = {}, {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            parents[int(entry.name)] = int(fields[1])
            times[int(entry.name)] = sum(map(int, fields[11:15]))
    family, grown = set(roots), True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in family} - family
        family, grown = family | more, bool(more)
    return sum(times.get(pid, 0) for pid in family) / os.sysconf("SC_CLK_TCK")
