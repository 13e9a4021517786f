"""An origin for the pods of the test: HTTP/1.1, kept alive, plain on 8080 and over TLS on 8443 and 8444, each with a
certificate of its own. /hold/N answers when N ask for it, so that as many connections stand at once."""
import asyncio
import collections
import ssl

CERTIFICATES = "/certificates/%s.pem"
held = collections.defaultdict(asyncio.Event)
asking = collections.Counter()


async def hold(path):
    """Waits for the last of N."""
    most = int(path.rpartition("/")[2])
    asking[path] += 1
    if asking[path] >= most:
        held[path].set()
    await held[path].wait()


async def serve(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            path = head.split(b" ", 2)[1].decode()
            if "/hold/" in path:
                await hold(path)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n")
            await writer.drain()
    except (asyncio.IncompleteReadError, OSError):
        pass
    finally:
        writer.close()


def context(name):
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(CERTIFICATES % name)
    made.set_alpn_protocols(["http/1.1"])
    return made


async def main():
    for port, name in ((8080, None), (8443, "old"), (8444, "new")):
        await asyncio.start_server(serve, "0.0.0.0", port, ssl=context(name) if name else None, backlog=512)
    print("ready", flush=True)
    await asyncio.Event().wait()


asyncio.run(main())
