"""Runs inside an application's container: one request over the Unix socket that the environment names; prints the first
line of the response."""
import os
import socket

with socket.socket(socket.AF_UNIX) as wire:
    wire.settimeout(10)
    wire.connect(os.environ["CARPOOL_SOCKET"])
    wire.sendall(b"GET http://shop/ HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n")
    print(wire.makefile().readline())
