"""carpool with an nginx as its origin, started from the text of their configurations."""
import subprocess
import threading

from p99_scene import end_with, until_open
from process_use import Process

SIZE = 1024  # of the file /kib


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
