"""Stands for an application: asks one address through the proxy that the environment names, at a steady rate, and says
now and then how it went. After TERM it goes on for a while, sums up and exits with 0."""
import http.client
import os
import signal
import threading
import time
import urllib.request

URL, RATE, LINGER = os.environ["URL"], float(os.environ["RATE"]), float(os.environ["LINGER"])
MOST = int(os.environ.get("REQUESTS", "0")) or float("inf")
good = bad = 0
end = float("inf")


def on_term(*_):
    global end
    end = time.monotonic() + LINGER


def ask():
    """One request; what it answered, or what went wrong."""
    try:
        with urllib.request.urlopen(URL, timeout=10) as answer:
            answer.read()
            return answer.status == 200, answer.status
    except (OSError, http.client.HTTPException) as error:
        return False, error


def say(word, last):
    print("%s: %d answered, %d failed, last: %s" % (word, good, bad, last), flush=True)


signal.signal(signal.SIGTERM, on_term)
pace = threading.Event()
start = spoken = time.monotonic()
last = None
while time.monotonic() < end and good + bad < MOST:
    fine, last = ask()
    good, bad = good + fine, bad + (not fine)
    if not fine or good == 1 or time.monotonic() > spoken + 10:
        spoken = time.monotonic()
        say("so far", last)
    pace.wait(max(0, start + (good + bad) / RATE - time.monotonic()))
say("in all", last)
