"""Clients of the service under stress: those that read and check every byte, and those that do harm."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import hashlib
import random
import re
import socket
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit

import aiohttp
import cbor2
import orjson
import zstandard
from multidict import CIMultiDict
from yarl import URL

from data.bent_bytes import bent
from specmux_converters.media_types import CBOR, JSON, PROTOBUF
from stress.service_world import Service

CODINGS = ("identity", "gzip", "zstd")
TIMEOUT = aiohttp.ClientTimeout(total=30)
HOPS = 5
"""Redirects in a row that a document may take while its backend changes all the time."""


def promised_hash(url: str, headers: Mapping[str, str]) -> str:
    """The hash that a body has to have: its URL's. Where a redirect led there and the answer is the current
    document, which nobody may keep under that URL, its entity tag says which."""
    fields = CIMultiDict(headers)
    query = dict(parse_qsl(urlsplit(url).query))
    if "redirected" in query and "no-cache" in fields.get("Cache-Control", ""):
        return fields["ETag"].strip('"').partition("-")[0]
    return query["hash"]


@dataclass(slots=True)
class Findings:
    """What clients saw. Every entry of ``wrong`` is a promise that was broken."""

    answers: Counter[int] = field(default_factory=Counter)
    steady: int = 0
    """Answers for the backend that is always well."""
    unavailable: int = 0
    """503 for documents of backends that fail."""
    wrong: list[str] = field(default_factory=list)
    forms: dict[tuple[str, str], bytes] = field(default_factory=dict)
    """Digest of the bytes by hash and media type: it never changes."""

    def note(self, what: str) -> None:
        if len(self.wrong) < 50:
            self.wrong.append(what)

    def check_body(self, hash: str, media_type: str, body: bytes) -> None:
        """The JSON of every backend here hashes to its URL's hash; other forms of it are always the same."""
        digest = hashlib.sha512(body).digest()
        if media_type == JSON and digest.hex().upper() != hash:
            self.note(f"torn: {len(body)} bytes of JSON are not {hash[:16]}")
        if self.forms.setdefault((hash, media_type), digest) != digest:
            self.note(f"torn: two versions of {hash[:16]} as {media_type}")


class Readers:
    """Keep-alive clients. ``steady``: keys whose every answer has to be a good one."""

    def __init__(
        self, service: Service, findings: Findings, *, steady: frozenset[str], seed: int = 1
    ) -> None:
        self._service = service
        self._findings = findings
        self._steady = steady
        self._choice = random.Random(1)

    async def read(self, count: int) -> None:
        """That many clients, for ever."""
        connector = aiohttp.TCPConnector(limit=count)
        async with aiohttp.ClientSession(
            auto_decompress=False, connector=connector, timeout=TIMEOUT
        ) as session:
            await asyncio.gather(*(self._one(session) for _ in range(count)))

    async def once(self) -> int:
        """Read each steady document once as JSON, whatever else is wrong; how many there are."""
        async with aiohttp.ClientSession(auto_decompress=False, timeout=TIMEOUT) as session:
            paths = await self._root(session)
            for key in self._steady:
                if key not in paths:
                    self._findings.note(f"{key} is missing from the root")
                else:
                    await self._document(session, key, paths[key], JSON, "gzip")
            return len(paths)

    async def _one(self, session: aiohttp.ClientSession) -> None:
        while True:
            paths = await self._root(session)
            for missing in self._steady - paths.keys():
                self._findings.note(f"{missing} is missing from the root")
            for key in self._choice.sample(sorted(paths), min(5, len(paths))):
                media_type, coding = self._choice.choice((JSON, CBOR, PROTOBUF)), self._choice.choice(CODINGS)
                await self._document(session, key, paths[key], media_type, coding)
            await asyncio.sleep(0.01)

    async def _root(self, session: aiohttp.ClientSession) -> dict[str, str]:
        plain = {"Accept-Encoding": "identity"}
        status, headers, body = await self._get(session, "/openapi/v3", plain, is_steady=True)
        if status != 200:
            self._findings.note(f"the root answered {status}")
            return {}
        known = {**plain, "If-None-Match": headers["ETag"]}
        again, _, _ = await self._get(session, "/openapi/v3", known, is_steady=True)
        if again not in (200, 304):
            self._findings.note(f"the root answered {again}")
        return {key: item["serverRelativeURL"] for key, item in orjson.loads(body)["paths"].items()}

    async def _document(
        self, session: aiohttp.ClientSession, key: str, url: str, media_type: str, coding: str
    ) -> None:
        is_steady = key in self._steady
        accept = {"Accept": media_type, "Accept-Encoding": coding}
        for _ in range(HOPS):
            status, headers, body = await self._get(session, url, accept, is_steady=is_steady)
            if status != 301:
                break
            url = f"/openapi/v3/{key}{headers['Location']}"
        if status == 200:
            plain = _decoded(body, headers.get("Content-Encoding", "identity"))
            if media_type == CBOR:
                cbor2.loads(plain)
            self._findings.check_body(promised_hash(url, headers), headers["Content-Type"], plain)
        elif is_steady or status not in (404, 503, 301):
            self._findings.note(f"{key} answered {status}")
        else:
            self._findings.unavailable += status == 503

    async def _get(
        self, session: aiohttp.ClientSession, target: str, fields: dict[str, str], *, is_steady: bool
    ) -> tuple[int, Mapping[str, str], bytes]:
        url = URL(self._service.base + target, encoded=True)
        try:
            async with session.get(url, headers=fields, allow_redirects=False) as answer:
                body = await answer.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self._findings.note(f"{target[:60]}: {type(error).__name__}")
            return 0, CIMultiDict(), b""
        self._findings.answers[answer.status] += 1
        self._findings.steady += is_steady
        return answer.status, answer.headers, body


def _decoded(body: bytes, coding: str) -> bytes:
    match coding:
        case "gzip":
            return gzip.decompress(body)
        case "zstd":
            return zstandard.ZstdDecompressor().decompress(body)
    return body


async def stall(service: Service, target: str, count: int) -> None:
    """Clients that ask for a large document and read nothing, until they are cut off."""
    clients = []
    request = f"GET {target} HTTP/1.1\r\nHost: a\r\n\r\n".encode()
    loop = asyncio.get_running_loop()
    try:
        for _ in range(count):
            client = socket.socket()
            clients.append(client)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.setblocking(False)
            await loop.sock_connect(client, ("127.0.0.1", service.port))
            await loop.sock_sendall(client, request)
        await asyncio.sleep(5)
    finally:
        for client in clients:
            client.close()


async def drip(service: Service, count: int) -> None:
    """Clients whose request never ends, until they are cut off."""
    writers = []
    try:
        for _ in range(count):
            _, writer = await asyncio.open_connection("127.0.0.1", service.port)
            writers.append(writer)
        for byte in b"GET /openapi/v3":
            for writer in writers:
                if not writer.is_closing():
                    writer.write(bytes([byte]))
            await asyncio.sleep(0.25)
    finally:
        for writer in writers:
            writer.close()


async def random_hashes(service: Service, key: str, count: int) -> Counter[int]:
    """Pipelined requests for hashes that nobody knows; the statuses they get."""
    choice, statuses = random.Random(2), Counter[int]()
    reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
    try:
        for _ in range(count // 50):
            hashes = (f"{choice.getrandbits(512):0128X}" for _ in range(50))
            lines = [f"GET /openapi/v3/{key}?hash={value} HTTP/1.1\r\nHost: a\r\n\r\n" for value in hashes]
            writer.write("".join(lines).encode())
            for _ in lines:
                head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 30)
                statuses[int(head[9:12])] += 1
                length = re.search(rb"Content-Length: (\d+)", head)
                await reader.readexactly(int(length[1]) if length else 0)
    finally:
        writer.close()
    return statuses


async def bad_requests(service: Service, requests: list[bytes], findings: Findings) -> Counter[int]:
    """Each on a connection of its own; 0 stands for one that was closed without a word."""
    statuses, waiting = Counter[int](), iter(requests)

    async def send() -> None:
        for request in waiting:
            received = await _exchange(service, request)
            found = [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", received)]
            statuses.update(found or [0])
            if any(status >= 500 and status not in (503, 505) for status in found):
                findings.note(f"{request[:80]!r} got {found}")

    await asyncio.gather(*(send() for _ in range(16)))
    return statuses


async def _exchange(service: Service, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
    try:
        with contextlib.suppress(OSError, TimeoutError):
            writer.write(request)
            writer.write_eof()
            async with asyncio.timeout(10):
                return await reader.read(100_000)
    finally:
        writer.close()
    return b""


def bent_requests(key: str, count: int) -> list[bytes]:
    """Well-formed requests with a few bytes changed, cut or doubled; always the same ones."""
    choice = random.Random(20_26)
    whole = (
        f"GET /openapi/v3/{key}?hash=AB&timeout=32s HTTP/1.1\r\nHost: a\r\nAccept: {CBOR}\r\n"
        f'If-None-Match: "x"\r\nContent-Length: 3\r\n\r\nabcGET /openapi/v3 HTTP/1.1\r\nHost: a\r\n\r\n'
    ).encode()
    return [bent(whole, choice) for _ in range(count)]
