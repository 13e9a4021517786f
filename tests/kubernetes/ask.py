"""Runs inside an application's container: TIMES requests for URL through the proxy that the environment names. Prints
one line each: the status and Proxy-Status."""
import http.client
import os
import sys
import urllib.parse

TIMES, URL = int(sys.argv[1]), sys.argv[2]
proxy = urllib.parse.urlsplit(os.environ["http_proxy"])
for _ in range(TIMES):
    try:
        wire = http.client.HTTPConnection(proxy.hostname, proxy.port, timeout=10)
        wire.request("GET", URL)
        response = wire.getresponse()
        response.read()
        print(response.status, response.getheader("Proxy-Status", "-"))
    except (OSError, http.client.HTTPException) as error:
        print("none", error)
