"""What differs between plain text to a proxy and requests inside a CONNECT: the scheme and the name of the authority. Names have
the length of the address that they stand for, so no length in a message changes."""
import re
import struct

FRAME_HEAD, HEADERS = 9, 1
SCHEME, SECURE = b"\x07:scheme\x04http", b"\x07:scheme\x05https"


class Bytes:
    """Replaces words in a stream. `whole`: a word never continues in the next piece; else what may be the beginning of one is held back."""

    def __init__(self, words, whole=False):
        self.words, self.whole = words, whole
        self.longest_first = re.compile(b"|".join(re.escape(w) for w in sorted(words, key=len, reverse=True)))
        self.starts = {w[:n] for w in words for n in range(1, len(w))}
        self.most = max(map(len, words)) - 1
        self.held = b""

    def feed(self, data):
        if self.whole:
            return self.longest_first.sub(lambda m: self.words[m.group()], data)
        data = self.held + data
        end = max([0, *(m.end() for m in self.longest_first.finditer(data))])
        tail = next((n for n in range(min(self.most, len(data) - end), 0, -1) if data[-n:] in self.starts), 0)
        whole, self.held = data[:len(data) - tail], data[len(data) - tail:]
        return self.longest_first.sub(lambda m: self.words[m.group()], whole)

    def rest(self):
        rest, self.held = self.held, b""
        return rest


class Frames:
    """As Bytes, in the HEADERS frames of an HTTP/2 client that encodes each field as a literal."""

    def __init__(self, words, preface):
        self.words = {w: to for w, to in words.items() if len(w) == len(to)}
        self.preface, self.buffer, self.passing = preface, b"", 0

    def feed(self, data):
        self.buffer += data
        out = []
        if self.preface:
            if len(self.buffer) < self.preface:
                return b""
            out.append(self.take(self.preface))
            self.preface = 0
        while self.buffer:
            if self.passing:
                part = self.take(min(self.passing, len(self.buffer)))
                self.passing -= len(part)
                out.append(part)
                continue
            if len(self.buffer) < FRAME_HEAD:
                break
            size = int.from_bytes(self.buffer[:3], "big")
            if self.buffer[3] != HEADERS:
                self.passing = FRAME_HEAD + size
                continue
            if len(self.buffer) < FRAME_HEAD + size:
                break
            out.append(self.head(self.take(FRAME_HEAD + size)))
        return b"".join(out)

    def take(self, size):
        part, self.buffer = self.buffer[:size], self.buffer[size:]
        return part

    def head(self, frame):
        block = frame[FRAME_HEAD:].replace(SCHEME, SECURE, 1)
        for word, to in self.words.items():
            block = block.replace(word, to)
        return struct.pack(">I", len(block))[1:] + frame[3:FRAME_HEAD] + block

    def rest(self):
        return self.take(len(self.buffer))


class Nothing:
    """Passes all bytes as they are."""

    def feed(self, data):
        return data

    def rest(self):
        return b""
