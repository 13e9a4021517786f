"""Run inside an application's container: IDLE clients that ask nothing, and BUSY ones that ask for what is answered to
all of them at once, so that as many connections to the origin stand. Prints how many were answered with 200, and the
metrics while the clients stay and the connections rest in their pool."""
import os
import socket
import sys
import time
import urllib.parse
import urllib.request

IDLE, BUSY, URL = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
proxy = urllib.parse.urlsplit(os.environ["http_proxy"])
where = (proxy.hostname, proxy.port)
ask = urllib.request.build_opener(urllib.request.ProxyHandler({})).open
host = urllib.parse.urlsplit(URL).netloc

idle = [socket.create_connection(where) for _ in range(IDLE)]
busy = []
for _ in range(BUSY):
    busy.append(socket.create_connection(where))
    busy[-1].settimeout(30)
    busy[-1].sendall(("GET %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (URL, host)).encode())
good = 0
for wire in busy:
    head = b""
    while b"\r\n\r\n" not in head:
        piece = wire.recv(4096)
        if not piece:
            break
        head += piece
    good += head.startswith(b"HTTP/1.1 200 ")
print("answered %d" % good)
end = time.monotonic() + 10
while True:
    text = ask("http://127.0.0.1:9902/metrics").read().decode()
    seen = [float(line.split()[-1]) for line in text.splitlines() if line.startswith("carpool_downstream_connections ")]
    if seen[0] >= IDLE + BUSY or time.monotonic() > end:
        break
print(text)
