"""slowhttptest: a thousand clients send heads or bodies slowly, read responses slowly or ask for many ranges. Its own probe, a client of
its own, must be answered within five seconds all the time, and carpool's memory stays within a limit."""
import concurrent.futures
import contextlib
import pathlib
import re
import subprocess
import tempfile

import fetch
import scene

CLIENTS, SECONDS = 1000, 30
MODES = {
    "slow-head": ["-H", "-i", "2"],
    "slow-body": ["-B", "-i", "2", "-s", "8192"],
    "ranges": ["-R", "-a", "5", "-b", "3000"],
    "slow-read": ["-X", "-w", "512", "-y", "1024", "-n", "2", "-z", "32", "-k", "3"],
}
MEMORY = 96 << 10  # KiB
NGINX = """daemon off; master_process off; pid %(folder)s/pid; error_log /dev/null;
events { worker_connections 4096; }
http { access_log off; client_body_temp_path %(folder)s/b; proxy_temp_path %(folder)s/p; fastcgi_temp_path %(folder)s/f;
uwsgi_temp_path %(folder)s/u; scgi_temp_path %(folder)s/s;
server { listen 127.0.0.1:%(port)d; location / { root %(folder)s/www; error_page 405 =200 $uri; } } }
"""


@contextlib.contextmanager
def origin():
    """nginx with a file of 64 KiB."""
    with tempfile.TemporaryDirectory() as folder:
        port = scene.free_port()
        file = pathlib.Path(folder, "www", "index.html")
        file.parent.mkdir()
        file.write_bytes(b"x" * 65536)
        pathlib.Path(folder).chmod(0o755)
        pathlib.Path(folder, "nginx.conf").write_text(NGINX % {"folder": folder, "port": port})
        with scene.program("nginx", "-c", folder + "/nginx.conf", port=port):
            yield port


def attack(program, environment, mode, port):
    """Returns whether the service was available all the time, and the last status line."""
    done = subprocess.run([str(program), "-c", str(CLIENTS), "-r", "500", "-l", str(SECONDS), "-p", "5", "-u", "http://127.0.0.1:%d/" % port,
                           *MODES[mode]], capture_output=True, text=True, errors="replace", env=environment, timeout=120, check=False)
    said = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)
    responses = re.findall(r"service available:\s+(\w+)", said)
    ending = re.findall(r"Exit status:\s*(.*)", said)
    return bool(responses) and set(responses) == {"YES"}, "%d of %d probes answered, %s" % (responses.count("YES"), len(responses), "".join(ending[-1:]))


def most_memory(process):
    return int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path("/proc/%d/status" % process.pid).read_text())[1])


def one_mode(program, environment, peer, mode):
    with origin() as server:
        if peer:
            return attack(program, environment, mode, server)
        port = scene.free_port()
        with scene.carpool(port, 'origin = "http://127.0.0.1:%d"' % server) as process:
            available, why = attack(program, environment, mode, port)
            memory = most_memory(process)
            return available and memory <= MEMORY, "%s, %d MiB" % (why, memory >> 10)


def suite(report, peer):
    program, environment = fetch.debian("slowhttptest", "slowhttptest")
    with concurrent.futures.ThreadPoolExecutor(len(MODES)) as pool:
        ended = pool.map(lambda mode: one_mode(program, environment, peer, mode), MODES)
        for mode, (passed, why) in zip(MODES, ended):
            report.case(mode, passed, why)
            print("      " + why)


if __name__ == "__main__":
    scene.main(suite, peers=["nginx"])
