"""Streams of bytes as clients could send them: whole requests, bent ones, and cuts anywhere between reads."""

from __future__ import annotations

import itertools
import random

END = b"GET /end HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

METHODS = ("GET", "GET", "GET", "HEAD", "POST", "PUT", "OPTIONS", "BREW", "get", "CONNECT", "G ET", "")
TARGETS = (
    "/a",
    "/a?hash=1",
    "/bad",
    "/slow",
    "/a#f",
    "*",
    "http://o/a",
    "//a",
    "/%zz",
    "a",
    "/\x7f",
    "",
)
VERSIONS = ("HTTP/1.1",) * 8 + ("HTTP/1.0", "HTTP/2.0", "HTTP/1.2", "http/1.1", "HTTP/1.10", "")
FIELDS = (
    "Accept: application/json",
    "Accept: a/b;q=0.5, */*",
    "Accept-Encoding: gzip",
    'If-None-Match: "v"',
    'If-Match: "x"',
    "Connection: close",
    "Connection: keep-alive",
    "Connection: close, upgrade",
    "Upgrade: websocket",
    "Expect: 100-continue",
    "Expect: tea",
    "Content-Length: 0",
    "Content-Length: 3",
    "Content-Length: 03",
    "Content-Length: +3",
    "Content-Length: 3, 3",
    "Content-Length: -1",
    "Transfer-Encoding: chunked",
    "Transfer-Encoding: gzip, chunked",
    "Transfer-Encoding: identity",
    "Transfer-Encoding: Chunked",
    "Transfer-Encoding:\tchunked",
    "Host: other",
    "Host: a b",
    "X: \x00",
    "X: \xff",
    "X : y",
    " X: y",
    "X",
    ": y",
    "X-Long: " + "y" * 3_000,
    "Authorization: Bearer t",
    "X-Forwarded-Host: evil",
    "Trailer: X",
    "Audit-Id: 1",
    "audit-id:2 ",
    "X-Request-Id:\t3",
    "Cookie: a=b",
    "Folded: 1\r\n 2",
    "User-Agent: k",
    "Sec-WebSocket-Key1: x",
)
NAMES = ("Audit-Id", "X-Request-Id", "traceparent", "X")
"""Of fields that nobody reads."""
BODIES = (
    b"abc",
    b"3\r\nabc\r\n0\r\n\r\n",
    b"3;x=y\r\nabc\r\n0\r\nX: y\r\n\r\n",
    b"0\r\n\r\n",
    b"3\nabc\n0\n\n",
    b"ffffffffffffffffff\r\n",
    b"-1\r\n",
    b"GET /inner HTTP/1.1\r\nHost: a\r\n\r\n",
)
BENDS = (b"\r", b"\n", b"\r\n", b"\x00", b" ", b"\t", b":", b"\xff", b"\r\n ", b"\n\n")


def stream(seed: int) -> list[bytes]:
    """The pieces of one connection, in order. One seed, one stream."""
    chance = random.Random(seed)
    return _cut(chance, _requests(chance))


def cuts_of(seed: int) -> list[list[bytes]]:
    """One stream in pieces of several kinds: whole, byte by byte, and cut at random; good requests come
    before what is bent."""
    chance = random.Random(-1 - seed)
    good = b"".join(_good(chance) for _ in range(chance.choice((0, 1, 3, 20, 40))))
    data = good + _requests(chance)
    return [[data], [data[at : at + 1] for at in range(len(data))], *(_cut(chance, data) for _ in range(3))]


def _requests(chance: random.Random) -> bytes:
    data = b"".join(_request(chance) for _ in range(chance.choice((1, 1, 2, 3, 8))))
    if chance.randrange(3) == 0:
        data = _bent(chance, data)
    if chance.randrange(4):
        data += END
    return data


def _good(chance: random.Random) -> bytes:
    target = chance.choice(("/a", "/a", "/b", "/slow"))
    match chance.randrange(4):
        case 0:
            return f"GET {target} HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\n\r\nx\r\n\r\ny\n".encode()
        case 1:
            return f"GET {target} HTTP/1.1\r\nHost: a\r\nX: {chance.randrange(10**6)}\r\n\r\n".encode()
    return f"GET {target} HTTP/1.1\r\nHost: a\r\n\r\n".encode()


def _request(chance: random.Random) -> bytes:
    match chance.randrange(6):
        case 0 | 1:
            return b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n"
        case 2:
            fields = "".join(f"{chance.choice(NAMES)}: {chance.randrange(10**6)}\r\n" for _ in range(3))
            return f"GET /a HTTP/1.1\r\nHost: a\r\n{fields}\r\n".encode()
    fields = [] if chance.randrange(12) == 0 else ["Host: a"]
    fields += chance.sample(FIELDS, chance.choice((0, 0, 1, 2, 4)))
    line = f"{chance.choice(METHODS)} {chance.choice(TARGETS)} {chance.choice(VERSIONS)}"
    head = "\r\n".join([line, *fields, "", ""]).encode("latin-1")
    has_body = any(field.startswith(("Content-Length", "Transfer")) for field in fields)
    return head + (chance.choice(BODIES) if has_body or chance.randrange(20) == 0 else b"")


def _bent(chance: random.Random, data: bytes) -> bytes:
    at = chance.randrange(len(data) + 1)
    match chance.randrange(3):
        case 0:
            return data[:at] + chance.choice(BENDS) + data[at:]
        case 1:
            return data[:at] + data[at + chance.choice((1, 2, 5)) :]
        case _:
            return data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]


def _cut(chance: random.Random, data: bytes) -> list[bytes]:
    cuts = sorted(chance.randrange(len(data) + 1) for _ in range(chance.choice((0, 0, 1, 2, 5))))
    edges = [0, *cuts, len(data)]
    return [piece for start, end in itertools.pairwise(edges) if (piece := data[start:end])]
