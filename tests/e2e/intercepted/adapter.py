"""Stands between an acceptance suite and carpool: accepts the suite's plain requests, makes a CONNECT to carpool and speaks TLS inside it;
accepts carpool's TLS in the place of the suite's plain origins.

adapter.py ROUTES FOLDER CA: a file with a line for each of the suite's origins, a folder for files, the authority of those that speak TLS
themselves. CARPOOL in the environment names the program. Ends with carpool, and ends carpool when it ends.
"""
import asyncio
import pathlib
import signal
import sys

import origins
from clients import Client
from program import Program
from routes import read_routes
from turns import Turns


async def serve(routes, program):
    loop = asyncio.get_running_loop()
    servers = []
    for route in routes:
        servers += await origins.serve(loop, route, program.origin_context())
    await program.start(routes)
    trusting = {protocol: program.client_context(protocol) for protocol in ("http/1.1", "h2")}
    turns = Turns()
    for route in routes:
        def client(route=route):
            return Client(loop, route, program.address, trusting, turns).plain
        for port in (route.listen, route.h2listen):
            servers.append(await loop.create_server(client, "127.0.0.1", port, backlog=1024))
    return servers


async def run(routes, folder, authority):
    loop = asyncio.get_running_loop()
    program = Program(folder, authority)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    servers = await serve(routes, program)
    ended = loop.create_task(program.ended())
    await asyncio.wait([ended, loop.create_task(stop.wait())], return_when=asyncio.FIRST_COMPLETED)
    for server in servers:
        server.close()
    program.stop()


if __name__ == "__main__":
    asyncio.run(run(read_routes(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]))
