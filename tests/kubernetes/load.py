"""Runs inside an application's container: sends requests at the given rate and for the given time through the proxy
that the environment names, over two kept connections. Prints how many were answered, how many failed, and how long it
took."""
import http.client
import os
import sys
import threading
import time
import urllib.parse

RATE, SECONDS, URL = float(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
CLIENTS = 2
proxy = urllib.parse.urlsplit(os.environ["http_proxy"])
counts = []


def client():
    wire = http.client.HTTPConnection(proxy.hostname, proxy.port, timeout=10)
    good = bad = 0
    pace, start = threading.Event(), time.monotonic()
    while time.monotonic() < start + SECONDS:
        try:
            wire.request("GET", URL)
            response = wire.getresponse()
            response.read()
            good, bad = good + (response.status == 200), bad + (response.status != 200)
        except (OSError, http.client.HTTPException):
            wire.close()
            bad += 1
        ahead = start + (good + bad) * CLIENTS / RATE - time.monotonic()
        if ahead > 0:
            pace.wait(ahead)
    counts.append((good, bad))


began = time.monotonic()
threads = [threading.Thread(target=client) for _ in range(CLIENTS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sum(good for good, _ in counts), sum(bad for _, bad in counts), "%.3f" % (time.monotonic() - began))
