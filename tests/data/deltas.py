"""What clients and servers of RFC 9842 say and send, for tests of either."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from typing import Any, Final

import zstandard

HEADER: Final = bytes.fromhex("5e2a4d1820000000")
FILLER: Final = "".join(hashlib.sha256(b"%d" % number).hexdigest() for number in range(600))
"""Text that hardly compresses."""


def offer(dictionary: bytes, hash: str, codings: str = "gzip, zstd, dcz") -> dict[str, str]:
    """Fields of a request."""
    digest = b64encode(hashlib.sha256(dictionary).digest()).decode()
    fields = {"Available-Dictionary": f":{digest}:", "Dictionary-ID": f'"{hash}"'}
    return {"Accept-Encoding": codings, **fields}


def compressed(
    body: bytes, dictionary: bytes, *, named: bytes | None = None, window: int = 23, **frame: Any
) -> bytes:
    """``named``: the dictionary that it says it is made with."""
    parameters = zstandard.ZstdCompressionParameters.from_level(
        6, window_log=window, **({"write_checksum": True} | frame)
    )
    compressor = zstandard.ZstdCompressor(dict_data=_raw(dictionary), compression_params=parameters)
    packing = compressor.compressobj()
    digest = hashlib.sha256(named or dictionary).digest()
    return HEADER + digest + packing.compress(body) + packing.flush()


def decompressed(body: bytes, dictionary: bytes) -> bytes:
    assert body[:40] == HEADER + hashlib.sha256(dictionary).digest()
    assert zstandard.get_frame_parameters(body[40:]).window_size <= 8 << 20
    return zstandard.ZstdDecompressor(dict_data=_raw(dictionary)).decompress(body[40:])


def _raw(dictionary: bytes) -> zstandard.ZstdCompressionDict:
    return zstandard.ZstdCompressionDict(dictionary, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
