"""Decompresses gzip (RFC 1952) with a bound that holds while it runs: the bytes may be a bomb."""

from __future__ import annotations

import zlib
from typing import Final

from specmux_converters.errors import InvalidDocument, LimitExceeded

GZIP_WINDOW: Final = 31
"""zlib's code for a 32 KiB window in a gzip frame. It also zeroes the modification time, so equal input gives
equal output."""

_STEP: Final = 64 * 1024
"""Bytes inflated at a time when only the size matters."""


def gunzip(data: bytes, *, max_bytes: int) -> bytes:
    """Decompresses the single stream in ``data``. Raises InvalidDocument, and LimitExceeded past
    ``max_bytes``."""
    # The trailer states the size (RFC 1952 2.3.1). It is untrusted, but bounds the output: a stream that
    # inflates to more is rejected, so a bomb either declares its size or stops early.
    claimed = int.from_bytes(data[-4:], "little")
    if claimed <= max_bytes:
        inflater = zlib.decompressobj(GZIP_WINDOW)
        try:
            whole = inflater.decompress(data, claimed + 1)
        except zlib.error as error:
            raise InvalidDocument(f"not gzip: {error}") from error
        if inflater.eof and not inflater.unused_data:
            return whole
    raise _fault(data, max_bytes)


def _fault(data: bytes, max_bytes: int) -> InvalidDocument | LimitExceeded:
    """The fault of ``data`` as gzip of at most ``max_bytes``: inflates it in steps, which it discards."""
    inflater = zlib.decompressobj(GZIP_WINDOW)
    size, rest = 0, data
    try:
        while rest and not inflater.eof:
            size += len(inflater.decompress(rest, _STEP))
            rest = inflater.unconsumed_tail
            if size > max_bytes:
                return LimitExceeded(f"more than {max_bytes} bytes")
    except zlib.error as error:
        return InvalidDocument(f"not gzip: {error}")
    is_whole = inflater.eof
    return InvalidDocument(
        "something follows the gzip stream" if is_whole else "the gzip stream is cut short"
    )
