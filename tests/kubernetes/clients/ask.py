"""An application that nobody changed: a connection for each request. ask.py URL TIMES"""
import sys
import urllib.request

for _ in range(int(sys.argv[2])):
    with urllib.request.urlopen(sys.argv[1], timeout=20) as response:
        print(response.status, response.headers["Via"], flush=True)
