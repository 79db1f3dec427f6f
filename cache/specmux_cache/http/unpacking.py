"""Decompress bodies with the content codings that a client requests.

Invariant: no body is decompressed beyond its limit, however small it was when sent.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

import zstandard

from specmux_cache.errors import BadAnswer
from specmux_cache.http.messages import Answer, listed

ACCEPT_ENCODING: Final = "zstd, gzip"
ZSTD_PIECE: Final = 512
"""Bytes decompressed at a time: four of them can represent a block of 128 KiB, before anything is counted."""


def is_packed(answer: Answer) -> bool:
    """Whether its body has one of the requested codings."""
    return bool(answer.body) and listed(answer.fields, "content-encoding") in UNPACKERS


def unpack_body(answer: Answer, limit: int, url: str) -> Answer:
    """The answer with its body decompressed, without header fields about the coding. Raises BadAnswer for
    ``url``; ``limit`` in bytes."""
    unpack = UNPACKERS[listed(answer.fields, "content-encoding")]
    try:
        body = unpack(answer.body, limit)
    except (zlib.error, zstandard.ZstdError, EOFError) as error:
        raise BadAnswer("the body could not be decompressed", url=url) from error
    except OverflowError as error:
        raise BadAnswer("the body unpacks to more than max_body_bytes", url=url) from error
    fields = tuple(pair for pair in answer.fields if pair[0] not in ("content-encoding", "content-length"))
    return replace(answer, fields=fields, body=body)


def _gunzip(data: bytes, limit: int) -> bytes:
    """Raises OverflowError beyond the limit, EOFError for truncated input, zlib.error."""
    unpacker = zlib.decompressobj(wbits=31)
    body = unpacker.decompress(data, limit + 1)
    if len(body) > limit:
        raise OverflowError
    if not unpacker.eof:
        raise EOFError
    return body


def _unzstd(data: bytes, limit: int) -> bytes:
    """Raises OverflowError beyond the limit, EOFError for truncated input, zstandard.ZstdError."""
    # The window bounds what a frame can allocate before any output is seen.
    unpacker = zstandard.ZstdDecompressor(max_window_size=8 * 1024 * 1024).decompressobj()
    pieces, size = [], 0
    for start in range(0, len(data), ZSTD_PIECE):
        piece = unpacker.decompress(data[start : start + ZSTD_PIECE])
        size += len(piece)
        if size > limit:
            raise OverflowError
        pieces.append(piece)
    if not unpacker.eof:
        raise EOFError
    return b"".join(pieces)


UNPACKERS: Final[Mapping[tuple[str, ...], Callable[[bytes, int], bytes]]] = {
    ("gzip",): _gunzip,
    ("x-gzip",): _gunzip,
    ("zstd",): _unzstd,
}
