"""An origin whose TCP is scripted, so that a response crosses a request on the wire: run inside a network namespace of its own, it
gives the namespace an origin at 10.9.0.2:9100 and becomes the program that its arguments name.

Each connection answers with its number and acknowledges what it receives, except a request for /crossed/STATUS/OPTION that follows
another one: it gets a response that acknowledges no byte of it, as if it had been sent before."""
import ctypes
import fcntl
import os
import signal
import socket
import struct
import subprocess
import sys

ORIGIN = "http://10.9.0.2:9100"
OURS, PEER, PORT = socket.inet_aton("10.9.0.2"), socket.inet_aton("10.9.0.1"), 9100
SYN, ACK, PSH = 2, 16, 8
TUNSETIFF, TUN_WITHOUT_HEADER, PR_SET_PDEATHSIG = 0x400454CA, 0x1001, 1


def available():
    if os.geteuid() != 0 or not os.path.exists("/dev/net/tun"):
        return False
    return subprocess.run(["unshare", "-n", "true"], capture_output=True).returncode == 0


def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total >> 16) + (total & 0xFFFF)
    return ~total & 0xFFFF


class Connection:
    def __init__(self, device, port, sequence, number):
        self.device, self.port, self.number, self.requests = device, port, number, 0
        self.sent, self.received = 1000, sequence + 1
        self.send(SYN | ACK)
        self.sent += 1

    def send(self, flags, data=b""):
        tcp = struct.pack("!HHIIBBHHH", PORT, self.port, self.sent, self.received, 5 << 4, flags, 65000, 0, 0) + data
        check = checksum(OURS + PEER + struct.pack("!BBH", 0, socket.IPPROTO_TCP, len(tcp)) + tcp)
        tcp = tcp[:16] + struct.pack("!H", check) + tcp[18:]
        ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), 1, 0, 64, socket.IPPROTO_TCP, 0, OURS, PEER)
        os.write(self.device, ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:] + tcp)
        self.sent += len(data)

    def reply(self, status, body, option=""):
        self.send(ACK | PSH, ("HTTP/1.1 %s Whatever\r\n%sContent-Length: %d\r\n\r\n%s" % (status, option, len(body), body)).encode())

    def take(self, sequence, data):
        if sequence != self.received:
            return  # sent again
        target = data.split(b" ", 2)[1].decode()
        self.requests += 1
        if target.startswith("/crossed/") and self.number == 1:
            if self.requests == 2:
                _, _, status, option = target.split("/")
                self.reply(status, "crossed", "Connection: close\r\n" if option == "close" else "")
            return
        self.received += len(data)
        self.reply("200", str(self.number))


def serve(device):
    connections = {}
    while True:
        packet = os.read(device, 65536)
        if packet[0] >> 4 != 4 or packet[9] != socket.IPPROTO_TCP:
            continue
        at = (packet[0] & 15) * 4
        port, _, sequence, _, offset, flags = struct.unpack("!HHIIBB", packet[at:at + 14])
        data = packet[at + (offset >> 4) * 4:]
        if flags & SYN and port in connections:
            continue  # sent again
        if flags & SYN:
            connections[port] = Connection(device, port, sequence, len(connections) + 1)
        elif data and port in connections:
            connections[port].take(sequence, data)


def main():
    device = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH", b"origin", TUN_WITHOUT_HEADER))
    for command in ("link set lo up", "addr add 10.9.0.1/24 dev origin", "link set origin up"):
        subprocess.run(["ip", *command.split()], check=True)
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        serve(device)
    os.execv(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
