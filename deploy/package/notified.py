"""notified.py SOCKET SECONDS COMMAND... -- QUESTION...: starts the command, waits for READY=1 as systemd does, asks the
question, ends the command by TERM. Exit status 0: all of it went well."""
import os
import signal
import socket
import subprocess
import sys


def main(path, seconds, command, question):
    told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    told.bind(path)
    os.chmod(path, 0o777)
    told.settimeout(float(seconds))
    process = subprocess.Popen(command)
    try:
        while b"READY=1" not in told.recv(4096):
            pass
        answer = subprocess.run(question, timeout=30).returncode
        process.send_signal(signal.SIGTERM)
        return answer or process.wait(40)
    finally:
        process.kill()


if __name__ == "__main__":
    middle = sys.argv.index("--")
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:middle], sys.argv[middle + 1:]))
