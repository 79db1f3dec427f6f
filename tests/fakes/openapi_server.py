"""An HTTP server for tests whose every byte a test decides, and one that answers as the Go reference does.

The reference's header fields are those recorded in ``../shared/golden/http`` (Kubernetes 0.34.1).
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from fakes.listening import StreamServer
from fakes.sending import send

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator

PROTOBUF = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
IMMUTABLE = [("Cache-Control", "no-cache, private"), ("Cache-Control", "public, immutable")]
EXPIRES = ("Expires", "Sun, 21 Nov 2027 05:02:55 UTC")
"""Not a date by RFC 9110: the reference formats it in the local zone."""


@dataclass(frozen=True)
class Request:
    method: str
    target: str
    headers: dict[str, str]

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, str]:
        return {name: values[-1] for name, values in parse_qs(urlsplit(self.target).query).items()}


@dataclass(frozen=True)
class Reply:
    status: int = 200
    body: bytes = b""
    headers: list[tuple[str, str]] = field(default_factory=list)
    length: int | None = None
    """Content-Length to claim; None for the true one."""


class Server:
    """Answers on a loopback port, one request per connection. ``requests`` has all that came."""

    def __init__(self, answer: Any, *, tls: ssl.SSLContext | None = None) -> None:
        self.answer = answer
        self.requests: list[Request] = []
        self.port = 0
        self._scheme = "https" if tls else "http"
        self._server = StreamServer(self._serve, tls=tls)

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self.port}"

    def seen(self, path: str) -> list[Request]:
        return [request for request in self.requests if request.path == path]

    async def start(self) -> None:
        self.port = await self._server.start(self.port)

    async def stop(self) -> None:
        await self._server.stop()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            method, target, _ = head[0].split(" ")
            pairs = (line.split(":", 1) for line in head[1:] if line)
            request = Request(method, target, {name.lower(): value.strip() for name, value in pairs})
            self.requests.append(request)
            reply = self.answer(request)
            if asyncio.iscoroutine(reply):
                reply = await reply
            if isinstance(reply, bytes):  # an answer as it goes over the wire
                await send(writer, reply)
                return
            length = len(reply.body) if reply.length is None else reply.length
            fields = [*reply.headers, ("Connection", "close")]
            if reply.status != 304:
                fields.append(("Content-Length", str(length)))
            lines = [f"HTTP/1.1 {reply.status} X", *(f"{name}: {value}" for name, value in fields), "", ""]
            await send(writer, "\r\n".join(lines).encode("latin-1") + reply.body)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the other side has gone


@asynccontextmanager
async def serving(answer: Any, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    server = Server(answer, tls=tls)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


def document(title: str, **more: Any) -> bytes:
    return json.dumps(
        {"openapi": "3.0.0", "info": {"title": title, "version": "1"}, "paths": {}, **more}
    ).encode()


def hash_of(body: bytes) -> str:
    return hashlib.sha512(body).hexdigest().upper()


class Reference:
    """The answers of kube-apiserver (``with_root_etag``) or kube-aggregator, for documents that a test
    changes."""

    def __init__(self, documents: dict[str, bytes], *, with_root_etag: bool = True, prefix: str = "") -> None:
        self.documents = documents
        self.with_root_etag = with_root_etag
        self.prefix = prefix

    def hash(self, name: str) -> str:
        """That of a document under its name: of its bytes, as apiservers of 1.24 to 1.38 make it."""
        return hash_of(self.documents[name])

    def __call__(self, request: Request) -> Reply:
        path = request.path.removeprefix(self.prefix)
        if path == "/openapi/v3":
            return self._root(request)
        body = self.documents.get(path.removeprefix("/openapi/v3/"))
        if body is None:
            return Reply(404, headers=[("Cache-Control", "no-cache, private")])
        return self._document(request, path, body)

    def root(self) -> bytes:
        return json.dumps(
            {
                "paths": {
                    name: {"serverRelativeURL": f"/openapi/v3/{name}?hash={self.hash(name)}"}
                    for name in sorted(self.documents)
                }
            }
        ).encode()

    def _root(self, request: Request) -> Reply:
        body = self.root()
        if not self.with_root_etag:
            return Reply(
                200,
                body,
                [("Cache-Control", "no-cache, private"), ("Content-Type", "text/plain; charset=utf-8")],
            )
        etag = f'"{hash_of(body)}"'
        if request.headers.get("if-none-match") == etag:
            return Reply(304, headers=[("Etag", etag)])
        return Reply(200, body, [("Content-Type", "application/json"), ("Etag", etag)])

    def _document(self, request: Request, path: str, body: bytes) -> Reply:
        known = self.hash(path.removeprefix("/openapi/v3/"))
        accepted = [
            item.partition(";")[0].strip() for item in request.headers.get("accept", "*/*").split(",")
        ]
        media = next((m for m in accepted if m in ("application/json", "*/*", PROTOBUF)), None)
        if media is None:
            return Reply(406, headers=[("Vary", "Accept")])
        media = "application/json" if media == "*/*" else media
        # One ETag for all media types: this is where caching clients went wrong.
        fields = [("Etag", f'"{known}"'), ("Vary", "Accept"), ("Content-Type", media)]
        hash_ = request.query.get("hash", "")
        if hash_ and hash_ != known:
            return Reply(301, headers=[*fields, ("Location", f"{path}?hash={known}")])
        if request.headers.get("if-none-match") == f'"{known}"':
            return Reply(304, headers=fields[:2])
        cached = [*IMMUTABLE, EXPIRES] if hash_ else [("Cache-Control", "no-cache, private")]
        return Reply(200, b"pb:" + body if media == PROTOBUF else body, [*fields, *cached])
