"""Content codings made and undone. Pure; undoing is bounded while it runs, since the bytes may be a bomb."""

from __future__ import annotations

import zlib
from typing import Final

import zstandard

from specmux_aggregator.model import Coding

GZIP_LEVEL: Final = 6
ZSTD_LEVEL: Final = 3
GZIP_WINDOW: Final = 31
"""zlib's way to say: a 32 KiB window in a gzip frame (and with it a zero modification time: equal in, equal
out)."""

STEP: Final = 1024 * 1024
"""Bytes decoded at a time, so that a bomb costs one step more than the bound."""


class BadCoding(ValueError):
    """The bytes are not whole and well-formed in the coding they claim."""


class TooLarge(ValueError):
    """Decoded, the bytes are more than the caller takes."""


def encoded(body: bytes, coding: Coding) -> bytes:
    """``body`` in the coding; the same bytes for the same body, on every replica with the same libraries."""
    match coding:
        case Coding.IDENTITY:
            return body
        case Coding.GZIP:
            compressor = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, GZIP_WINDOW)
            return compressor.compress(body) + compressor.flush()
        case Coding.ZSTD:
            return zstandard.ZstdCompressor(level=ZSTD_LEVEL).compress(body)


def decoded(body: bytes, coding: Coding, *, max_bytes: int) -> bytes:
    """The bytes without their coding. Raises BadCoding, and TooLarge past ``max_bytes``."""
    match coding:
        case Coding.IDENTITY:
            whole = body
        case Coding.GZIP:
            whole = _gunzip(body, max_bytes)
        case Coding.ZSTD:
            whole = _unzstd(body, max_bytes)
    if len(whole) > max_bytes:
        raise TooLarge(f"more than {max_bytes} bytes")
    return whole


def _gunzip(body: bytes, max_bytes: int) -> bytes:
    decompressor = zlib.decompressobj(GZIP_WINDOW)
    parts, size, rest = [], 0, body
    try:
        while not decompressor.eof:
            part = decompressor.decompress(rest, STEP)
            rest = decompressor.unconsumed_tail
            if not part and not rest and not decompressor.eof:
                raise BadCoding("the gzip stream is cut short")
            parts.append(part)
            size += len(part)
            if size > max_bytes:
                raise TooLarge(f"more than {max_bytes} bytes")
    except zlib.error as error:
        raise BadCoding(f"not gzip: {error}") from error
    if decompressor.unused_data:
        raise BadCoding("something follows the gzip stream")
    return b"".join(parts)


def _unzstd(body: bytes, max_bytes: int) -> bytes:
    try:
        with zstandard.ZstdDecompressor(max_window_size=STEP * 8).stream_reader(body) as reader:
            return reader.read(max_bytes + 1)
    except zstandard.ZstdError as error:
        raise BadCoding(f"not zstd: {error}") from error
