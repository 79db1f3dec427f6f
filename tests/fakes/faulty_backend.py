"""A backend on a real socket that serves OpenAPI properly until it is told to misbehave.

Raw asyncio streams rather than an HTTP library: most of these answers no library would send.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import hashlib
import socket
import ssl
import struct
import zlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Self

import orjson

from fakes.listening import StreamServer
from fakes.sending import send

DRIP_INTERVAL = 0.02
"""Seconds between the bytes of a drip."""

BOMB_BYTES = 1024**3

REBINDS = 200


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request, and where its answer goes."""

    target: str
    fields: dict[str, str]
    """Header fields by lower-case name."""
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        await send(self.writer, data)

    async def answer(
        self, status: int, body: bytes = b"", *, length: int | None = None, **extra: str
    ) -> None:
        """A whole answer with these header fields; ``length`` to claim another Content-Length."""
        await self.send(head(status, len(body) if length is None else length, **extra) + body)

    def reset(self) -> None:
        """End the connection with RST instead of FIN."""
        peer = self.writer.get_extra_info("socket")
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


Fault = Callable[[Exchange], Awaitable[None]]


def head(status: int, length: int | None, **extra: str) -> bytes:
    names = {name.replace("_", "-"): value for name, value in extra.items()}
    lines = [f"HTTP/1.1 {status} Status", *(f"{name}: {value}" for name, value in names.items())]
    if length is not None:
        lines.append(f"Content-Length: {length}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def document(group_version: str, marker: str = "") -> bytes:
    """A small OpenAPI v3 document, as the bytes of its canonical JSON."""
    tree = {
        "openapi": "3.0.0",
        "info": {"title": f"faulty {marker}".strip(), "version": "v1"},
        "paths": {f"/{group_version}/": {"get": {"responses": {"200": {"description": "OK"}}}}},
    }
    return orjson.dumps(tree, option=orjson.OPT_SORT_KEYS)


def document_hash(body: bytes) -> str:
    return hashlib.sha512(body).hexdigest().upper()


@dataclass(slots=True)
class FaultyBackend:
    """An ``async with`` block is its life; everything it started ends with the block."""

    documents: dict[str, bytes] = field(default_factory=dict)
    """Key -> JSON; may be changed while it runs."""
    swagger: bytes | None = None
    """Swagger 2.0; with it, the backend knows no v3."""
    tls: ssl.SSLContext | None = None
    fault: Fault | None = None
    requests: list[Exchange] = field(default_factory=list)
    root: bytes | None = None
    """Sent in place of the true root."""
    _server: StreamServer | None = None
    _port: int = 0

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self._port}"

    async def __aenter__(self) -> Self:
        await self.listen()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.refuse()

    async def listen(self) -> None:
        """Accept connections, on the port of the first time."""
        for _ in range(REBINDS):
            if self._server is not None:
                return
            # While nobody listened, the port may have become the near end of some other connection.
            with contextlib.suppress(OSError):
                server = StreamServer(self._serve, tls=self.tls)
                self._port = await server.start(self._port)
                self._server = server
                return
            await asyncio.sleep(0.05)
        raise AssertionError(f"port {self._port} is not free again")

    async def refuse(self) -> None:
        """Refuse connections, and drop those that are open."""
        if self._server is not None:
            server, self._server = self._server, None
            await server.stop()

    async def drop(self) -> None:
        """Drop the open connections."""
        if self._server is not None:
            await self._server.cut()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while not writer.is_closing():
                exchange = await _exchange(reader, writer)
                self.requests.append(exchange)
                await (self.fault or self.behave)(exchange)
                if self.fault is not None:
                    break

    async def behave(self, exchange: Exchange) -> None:
        """Answer as an apiserver would."""
        path, _, query = exchange.target.partition("?")
        if path == "/openapi/v2" and self.swagger is not None:
            await _answer_tagged(exchange, self.swagger)
        elif path == "/openapi/v3" and self.swagger is None:
            await _answer_tagged(exchange, self.root if self.root is not None else self._true_root())
        elif (key := path.removeprefix("/openapi/v3/")) in self.documents and self.swagger is None:
            await self._answer_document(exchange, key, query)
        else:
            await exchange.answer(404, b"404 page not found", Content_Type="text/plain")

    async def _answer_document(self, exchange: Exchange, key: str, query: str) -> None:
        body = self.documents[key]
        current = document_hash(body)
        if query not in ("", f"hash={current}"):
            await exchange.answer(301, Location=f"/openapi/v3/{key}?hash={current}")
        else:
            await _answer_tagged(exchange, body)

    def _true_root(self) -> bytes:
        return root_of({key: document_hash(body) for key, body in self.documents.items()})


def root_of(hashes: dict[str, str]) -> bytes:
    urls = {key: f"/openapi/v3/{key}?hash={value}" for key, value in hashes.items()}
    return root_with(urls)


def root_with(urls: dict[str, str]) -> bytes:
    return orjson.dumps({"paths": {key: {"serverRelativeURL": url} for key, url in urls.items()}})


async def _exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Exchange:
    lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    pairs = (line.split(": ", 1) for line in lines[1:] if line)
    return Exchange(lines[0].split(" ")[1], {name.lower(): value for name, value in pairs}, writer)


async def _answer_tagged(exchange: Exchange, body: bytes) -> None:
    tag = f'"{document_hash(body)}"'
    if exchange.fields.get("if-none-match") == tag:
        await exchange.send(head(304, None, ETag=tag))
        return
    extra = {"ETag": tag, "Content_Type": "application/json"}
    if exchange.fields["accept-encoding"] == "gzip":
        body, extra = gzip.compress(body, 6, mtime=0), {**extra, "Content_Encoding": "gzip"}
    await exchange.answer(200, body, **extra)


def with_root(body: bytes) -> Fault:
    """The answer to everything is this JSON."""

    async def fault(exchange: Exchange) -> None:
        await exchange.answer(200, body, Content_Type="application/json")

    return fault


def with_status(status: int, **extra: str) -> Fault:
    async def fault(exchange: Exchange) -> None:
        await exchange.answer(status, b"no", **extra)

    return fault


async def hang(exchange: Exchange) -> None:
    await asyncio.sleep(3600)


async def drip(exchange: Exchange) -> None:
    await exchange.send(head(200, 1_000_000))
    while True:
        await exchange.send(b" ")
        await asyncio.sleep(DRIP_INTERVAL)


async def stall(exchange: Exchange) -> None:
    """Half an answer, then nothing."""
    await exchange.send(head(200, 1000) + b"{")
    await asyncio.sleep(3600)


async def reset(exchange: Exchange) -> None:
    exchange.reset()


async def reset_mid_body(exchange: Exchange) -> None:
    await exchange.send(head(200, 1000) + b'{"paths"')
    await asyncio.sleep(DRIP_INTERVAL)
    exchange.reset()


async def disconnect(exchange: Exchange) -> None:
    exchange.writer.close()


async def short_body(exchange: Exchange) -> None:
    await exchange.answer(200, b'{"paths": {}}', length=1000)


async def long_body(exchange: Exchange) -> None:
    """Content-Length ends the body inside the JSON."""
    await exchange.answer(200, b'{"paths": {}}', length=6)


async def cut_chunks(exchange: Exchange) -> None:
    await exchange.send(head(200, None, Transfer_Encoding="chunked") + b'9\r\n{"paths":\r\n')


async def bad_chunks(exchange: Exchange) -> None:
    await exchange.send(head(200, None, Transfer_Encoding="chunked") + b'zz\r\n{"paths":\r\n')


async def cut_without_length(exchange: Exchange) -> None:
    await exchange.send(head(200, None, Connection="close") + b'{"paths":')


async def truncated_gzip(exchange: Exchange) -> None:
    await exchange.answer(200, gzip.compress(document("api/v1"))[:-9], Content_Encoding="gzip")


async def not_gzip(exchange: Exchange) -> None:
    await exchange.answer(200, b'{"paths": {}}', Content_Encoding="gzip")


async def unknown_coding(exchange: Exchange) -> None:
    await exchange.answer(200, b'{"paths": {}}', Content_Encoding="br")


async def not_json(exchange: Exchange) -> None:
    await exchange.answer(200, b"<html>It works!</html>", Content_Type="text/html")


async def not_http(exchange: Exchange) -> None:
    await exchange.send(b"SSH-2.0-OpenSSH_9.7\r\n")


async def endless_header(exchange: Exchange) -> None:
    await exchange.send(b"HTTP/1.1 200 OK\r\n")
    for number in range(2_000):
        await exchange.send(f"X-{number}: y\r\n".encode() * 500)


async def endless_body(exchange: Exchange) -> None:
    await exchange.send(head(200, None, Transfer_Encoding="chunked"))
    while True:
        await exchange.send(b"10000\r\n" + b" " * 0x10000 + b"\r\n")


async def huge_length(exchange: Exchange) -> None:
    await exchange.send(head(200, 10**15))
    await asyncio.sleep(3600)


async def bomb(exchange: Exchange) -> None:
    await exchange.answer(200, gzip_bomb(), Content_Encoding="gzip")


def gzip_bomb(size: int = BOMB_BYTES) -> bytes:
    """A gzip stream of ``size`` zeros (whole MiB), made without compressing them all; its CRC is false."""
    mib = 1024 * 1024
    compressor = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = compressor.compress(bytes(mib)) + compressor.flush(zlib.Z_FULL_FLUSH)
    trailer = struct.pack("<II", 0, size % 2**32)
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + block * (size // mib) + compressor.flush() + trailer


FAULTS: dict[str, tuple[Fault, set[str]]] = {
    "reset": (reset, {"reset"}),
    "reset_mid_body": (reset_mid_body, {"truncated", "reset"}),
    "disconnect": (disconnect, {"reset"}),
    "drip": (drip, {"timeout"}),
    "hang": (hang, {"timeout"}),
    "stall": (stall, {"timeout"}),
    "error_500": (with_status(500), {"server_error"}),
    "error_503": (with_status(503), {"server_error"}),
    "throttled_429": (with_status(429, Retry_After="1"), {"throttled"}),
    "forbidden_403": (with_status(403), {"credentials"}),
    "redirect_302": (with_status(302, Location="http://127.0.0.1:1/evil"), {"redirected"}),
    "truncated_gzip": (truncated_gzip, {"truncated"}),
    "not_gzip": (not_gzip, {"truncated", "bad_body"}),
    "unknown_coding": (unknown_coding, {"bad_body"}),
    "short_body": (short_body, {"truncated"}),
    "long_body": (long_body, {"bad_body"}),
    "cut_chunks": (cut_chunks, {"truncated"}),
    "bad_chunks": (bad_chunks, {"truncated", "bad_body"}),
    "cut_without_length": (cut_without_length, {"truncated"}),
    "not_json": (not_json, {"bad_body"}),
    "wrong_shape": (with_root(b'{"paths": []}'), {"bad_root"}),
    "not_http": (not_http, {"bad_body"}),
    "endless_header": (endless_header, {"bad_body"}),
    "endless_body": (endless_body, {"too_large"}),
    "huge_length": (huge_length, {"too_large"}),
    "bomb": (bomb, {"too_large"}),
    "evil_host": (with_root(root_with({"apis/a/v1": "//evil/openapi/v3/apis/a/v1"})), {"bad_root"}),
    "evil_dots": (with_root(root_with({"apis/a/v1": "/openapi/v3/../../secrets"})), {"bad_root"}),
    "evil_url": (with_root(root_with({"apis/a/v1": "https://evil/openapi/v3/apis/a/v1"})), {"bad_root"}),
    "many_paths": (with_root(root_of({f"apis/g{n}/v1": "AB" for n in range(20_000)})), {"bad_root"}),
}
"""What a root request meets, and the causes (model.Cause values) that describe it."""

SLOW_FAULTS = {"drip", "hang", "stall"}
"""Those that only a timeout ends; with all others a test can be patient."""
