"""Last whole ``/openapi/v2`` of each backend, which is served while that backend cannot be asked.

The document of another backend is a part of it, or another cluster's: it never stands in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final

import aiohttp
from aiohttp import hdrs

from specmux_aggregator.http.content_codings import BadCoding, TooLarge, decode_body, encode_body
from specmux_aggregator.http.messages import Coding, ETag, Request
from specmux_aggregator.http.negotiation import CODINGS, SWAGGER_MEDIA_TYPES, coding_for, media_type_for
from specmux_aggregator.http.prepared_answer import (
    FORMATS,
    PreparedAnswer,
    Representation,
    deliver,
    evaluate_preconditions,
)
from specmux_aggregator.model.backend import Backend
from specmux_aggregator.model.failure import Failure
from specmux_aggregator.upstream.responses import too_large
from specmux_converters.media_types import ALIASES, MediaType, essence

STALE: Final = ("Warning", '110 - "the backend cannot be asked"')

_Server = tuple[str, str]
"""Name and URL of a backend: its priority may change."""


@dataclass(frozen=True, slots=True)
class SwaggerCopy:
    """A whole document in one form. ``body`` is in ``coding``, the backend's or gzip."""

    content_type: str
    etag: ETag
    coding: Coding
    body: bytes


_Copying = tuple[_Server, MediaType, SwaggerCopy]
"""The form of a backend that is copied, and the copy without its body."""


class SwaggerBody:
    """The body of one answer on its way to a client: bounded, and copied if the document is a new one.

    A form of a backend has one copy in the making at a time, so slow clients hold no more memory."""

    def __init__(self, copies: SwaggerCopies, max_bytes: int, copying: _Copying | None) -> None:
        self._copies = copies
        self._max_bytes = max_bytes
        self._copying = copying
        self._pieces: list[bytes] = []
        self._size = 0

    def take(self, piece: bytes) -> Failure | None:
        """Count a piece; a Failure if the body is too large."""
        self._size += len(piece)
        if self._size > self._max_bytes:
            return too_large(self._max_bytes)
        if self._copying is not None:
            self._pieces.append(piece)
        return None

    async def end(self, *, is_whole: bool) -> None:
        """Keep the copy if the body is whole."""
        if self._copying is None:
            return
        server, media_type, head = self._copying
        try:
            if is_whole:
                copy = await asyncio.to_thread(_compact, head, b"".join(self._pieces))
                self._copies.keep(server, media_type, copy)
        finally:
            self._copies.end_copying(server, media_type)


class SwaggerCopies:
    """Copies by backend and media type. Lives on one event loop."""

    def __init__(self, *, max_bytes: int, is_private: bool, route: str) -> None:
        self._max_bytes = max_bytes
        self._is_private = is_private
        self._route = route
        self._kept: dict[_Server, dict[MediaType, SwaggerCopy]] = {}
        self._making: set[tuple[_Server, MediaType]] = set()

    def body_of(self, backend: Backend, method: str, answer: aiohttp.ClientResponse) -> SwaggerBody:
        """The body of an answer that is passed on, copied if it can be and is not kept yet."""
        server, headers = _server(backend), answer.headers
        content_type = headers.get(hdrs.CONTENT_TYPE, "")
        named = essence(content_type)
        media_type, etag = ALIASES.get(named, MediaType(named)), headers.get(hdrs.ETAG)
        coding = headers.get(hdrs.CONTENT_ENCODING, Coding.IDENTITY)
        held = self._kept.get(server, {}).get(media_type)
        is_known = held is not None and held.etag == etag
        has_end = hdrs.CONTENT_LENGTH in headers or hdrs.TRANSFER_ENCODING in headers
        copying = None
        if (
            method == "GET"
            and answer.status == 200
            and has_end  # else a broken connection may look like the end
            and not is_known
            and media_type in SWAGGER_MEDIA_TYPES
            and coding in CODINGS
            and (server, media_type) not in self._making
        ):
            head = SwaggerCopy(content_type, ETag(etag or ""), Coding(coding), b"")
            copying = server, media_type, head
            self._making.add((server, media_type))
        return SwaggerBody(self, self._max_bytes, copying)

    def keep(self, server: _Server, media_type: MediaType, copy: SwaggerCopy) -> None:
        self._kept.setdefault(server, {})[media_type] = copy

    def end_copying(self, server: _Server, media_type: MediaType) -> None:
        self._making.discard((server, media_type))

    def keep_only(self, backends: Iterable[Backend]) -> None:
        """Drop the copies of all other backends."""
        servers = {_server(backend) for backend in backends}
        for server in self._kept.keys() - servers:
            del self._kept[server]

    def forget(self, backend: Backend) -> None:
        """Drop the copies of a backend that has no document any more."""
        self._kept.pop(_server(backend), None)

    async def answer(self, backend: Backend, request: Request) -> PreparedAnswer | None:
        """The answer from the copy, marked stale; None if there is none that the client accepts."""
        kept = self._kept.get(_server(backend), {})
        media_type = media_type_for(
            request.accept, tuple(each for each in SWAGGER_MEDIA_TYPES if each in kept)
        )
        if media_type is None:
            return None
        copy, coding = kept[media_type], coding_for(request.accept_encoding)
        representation = Representation(
            content_type=copy.content_type,
            etag=copy.etag,
            route=self._route,
            format=FORMATS[media_type],
            coding=coding,
            is_private=self._is_private,
            is_head=request.method == "HEAD",
            is_stale=True,
            fields=(STALE,),
        )
        if (ready := evaluate_preconditions(representation, request)) is not None:
            return ready
        if coding is not copy.coding:
            # Bytes that are coded here need not be the backend's.
            representation = replace(representation, etag=ETag(f"W/{copy.etag.removeprefix('W/')}"))
        try:
            return deliver(representation, await asyncio.to_thread(_recode, copy, coding, self._max_bytes))
        except (BadCoding, TooLarge, ValueError):
            return None  # what the backend sent cannot be sent otherwise


def _server(backend: Backend) -> _Server:
    return backend.name, backend.url


def _compact(head: SwaggerCopy, body: bytes) -> SwaggerCopy:
    """The copy to keep: compressed, with a tag if the backend gave none."""
    etag = head.etag or ETag(f'"{sha256(body).hexdigest()}"')
    if head.coding is Coding.IDENTITY:
        return SwaggerCopy(head.content_type, etag, Coding.GZIP, encode_body(body, Coding.GZIP))
    return SwaggerCopy(head.content_type, etag, head.coding, body)


def _recode(copy: SwaggerCopy, coding: Coding, max_bytes: int) -> bytes:
    if coding is copy.coding:
        return copy.body
    return encode_body(decode_body(copy.body, copy.coding, max_bytes=max_bytes), coding)
