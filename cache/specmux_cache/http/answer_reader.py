"""Write a request to a ``Wire`` and read its answer, by RFC 9112 and without a library: ``http.client``
imports ``email`` and ``ssl``, a tenth of what a command on a warm cache takes, and accepts eleven malformed
framings.

Invariants: an answer of which one cannot say where it ends is refused (RFC 9112 6.3); no body is decompressed
beyond its limit, however small it was when sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

import zstandard

from specmux_cache.errors import BadAnswer
from specmux_cache.http.caching import Answer, Fields, fields_of, join_values, list_members
from specmux_cache.http.wire import PIECE, Wire
from specmux_converters.errors import InvalidDocument, LimitExceeded
from specmux_converters.gzip_coding import gunzip

LINE_MAX: Final = 64 * 1024
FIELDS_MAX: Final = 100
INTERIM_MAX: Final = 16
"""Interim answers (1xx) before the answer; servers send one."""
HEXADECIMAL: Final = frozenset(b"0123456789abcdefABCDEF")
NOT_IN_NAMES: Final = frozenset(b'()<>@,;:\\"/[]?={}' + bytes(range(33)) + bytes(range(127, 256)))
"""Bytes that a token has not (RFC 9110 5.6.2)."""
NOT_IN_VALUES: Final = frozenset(b"\r\n\0")
ACCEPT_ENCODING: Final = "zstd, gzip"
DCZ: Final = "dcz"
"""zstd with a stored document as dictionary (RFC 9842 5)."""
ZSTD_WINDOW: Final = 8 * 1024 * 1024
"""Bytes; the window bounds what a frame can allocate before any output is seen."""
ZSTD_PIECE: Final = 512
"""Bytes decompressed at a time: four of them can represent a block of 128 KiB, before anything is counted."""


class MalformedAnswer(Exception):
    """The answer was cut off, or is not HTTP."""


class EarlyEnd(ConnectionError):
    """The connection ended before there was an answer."""


class AnswerHead(NamedTuple):
    """The head of a final answer, and its body as it comes. ``is_last``: none comes after it on its
    connection."""

    status: int
    fields: Fields
    pieces: Iterator[bytes]
    is_last: bool


def send_head(wire: Wire, request: str, fields: Mapping[str, str]) -> None:
    """``request``: method and target. Raises ValueError for what does not belong into a header field."""
    head = [f"{request} HTTP/1.1".encode("ascii")]
    for name, value in fields.items():
        pair = name.encode("ascii"), value.encode()
        if not pair[0] or NOT_IN_NAMES.intersection(pair[0]) or NOT_IN_VALUES.intersection(pair[1]):
            raise ValueError("not a header field")
        head.append(b": ".join(pair))
    wire.sendall(b"\r\n".join([*head, b"", b""]))


def read_head(wire: Wire, *, is_tunnel: bool = False) -> AnswerHead:
    """The head of the final answer. Raises MalformedAnswer, EarlyEnd; its pieces raise MalformedAnswer.

    ``is_tunnel``: it answers CONNECT, where a success has no body (RFC 9110 9.3.6).
    """
    for _ in range(INTERIM_MAX):
        version, status = _read_status(wire)
        fields = _read_fields(wire)
        if status >= 200:
            is_bodiless = status in (204, 304) or (is_tunnel and status < 300)
            return _frame(wire, version, status, fields, is_bodiless=is_bodiless)
    raise MalformedAnswer("interim answers without end")


def read_body(pieces: Iterator[bytes], max_body_bytes: int) -> bytes:
    """Raises OverflowError for a larger body, and what the pieces raise."""
    body = []
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > max_body_bytes:
            raise OverflowError
        body.append(piece)
    return b"".join(body)


def _frame(wire: Wire, version: bytes, status: int, fields: Fields, *, is_bodiless: bool) -> AnswerHead:
    """Decide where the body ends (RFC 9112 6.3)."""
    length, coding = join_values(fields, "content-length"), join_values(fields, "transfer-encoding")
    if length is not None and (coding is not None or not (length.isascii() and length.isdigit())):
        raise MalformedAnswer("a head that does not say where its body ends")
    if coding is not None and coding.lower() != "chunked":
        raise MalformedAnswer("another transfer coding than chunked")
    is_last = "close" in list_members(fields, "connection") or version != b"HTTP/1.1"
    if is_bodiless:
        return AnswerHead(status, fields, iter(()), is_last)
    if coding is not None:
        return AnswerHead(status, fields, _read_framed(_read_chunks(wire)), is_last)
    if length is not None:
        return AnswerHead(status, fields, _read_framed(_read_counted(wire, int(length[:20]))), is_last)
    return AnswerHead(status, fields, iter(lambda: wire.read(PIECE), b""), True)


def _read_status(wire: Wire) -> tuple[bytes, int]:
    line = _read_line(wire)
    version, _, rest = line.partition(b" ")
    status, _, _ = rest.partition(b" ")
    if (
        version not in (b"HTTP/1.0", b"HTTP/1.1")
        or len(status) != 3
        or not status.isdigit()
        or status < b"100"
    ):
        raise MalformedAnswer("not a status line")
    return version, int(status)


def _read_fields(wire: Wire) -> Fields:
    """Raises MalformedAnswer for lines that are no fields; a folded one is none any more (RFC 9112 5.2)."""
    pairs: list[tuple[str, str]] = []
    while line := _read_line(wire):
        name, colon, value = line.partition(b":")
        if not (name and colon) or NOT_IN_NAMES.intersection(name) or NOT_IN_VALUES.intersection(value):
            raise MalformedAnswer("a line that is no field")
        # As aiohttp reads it, which stored what is in caches.
        pairs.append((name.decode("ascii"), value.strip(b" \t").decode("utf-8", "surrogateescape")))
        if len(pairs) > FIELDS_MAX:
            raise MalformedAnswer("too many fields")
    return fields_of(pairs)


def _read_line(wire: Wire) -> bytes:
    """Raises EarlyEnd where it did not come whole."""
    try:
        line = wire.line(LINE_MAX)
    except OverflowError as error:
        raise MalformedAnswer("a line without end") from error
    if not line.endswith(b"\n"):
        raise EarlyEnd
    return line.removesuffix(b"\n").removesuffix(b"\r")


def _read_counted(wire: Wire, left: int) -> Iterator[bytes]:
    while left:
        if not (piece := wire.read(left)):
            raise EarlyEnd
        left -= len(piece)
        yield piece


def _read_chunks(wire: Wire) -> Iterator[bytes]:
    """RFC 9112 7.1; extensions and trailers are read, and mean nothing."""
    while size := _read_chunk_size(wire):
        yield from _read_counted(wire, size)
        if _read_line(wire):
            raise MalformedAnswer("a chunk of another size than it says")
    for _ in range(FIELDS_MAX):
        if not _read_line(wire):
            return
    raise MalformedAnswer("trailers without end")


def _read_chunk_size(wire: Wire) -> int:
    digits = _read_line(wire).partition(b";")[0].rstrip(b" \t")
    if not 0 < len(digits) <= 16 or not HEXADECIMAL.issuperset(digits):
        raise MalformedAnswer("not a chunk's size")
    return int(digits, 16)


def _read_framed(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The pieces of a body that says where it ends."""
    try:
        yield from pieces
    except ConnectionError as error:
        raise MalformedAnswer("cut off") from error


def is_packed(answer: Answer) -> bool:
    """Whether its body has one of the requested codings."""
    return bool(answer.body) and list_members(answer.fields, "content-encoding") in UNPACKERS


def unpack_body(answer: Answer, limit: int, url: str) -> Answer:
    """The answer with its body decompressed, without header fields about the coding. Raises BadAnswer for
    ``url``; ``limit`` in bytes."""
    unpack = UNPACKERS[list_members(answer.fields, "content-encoding")]
    try:
        body = unpack(answer.body, limit)
    except (InvalidDocument, zstandard.ZstdError, EOFError) as error:
        raise BadAnswer("the body could not be decompressed", url=url) from error
    except (LimitExceeded, OverflowError) as error:
        raise BadAnswer("the body unpacks to more than max_body_bytes", url=url) from error
    return without_coding(answer, body)


def without_coding(answer: Answer, body: bytes) -> Answer:
    """The answer with this body, which is decompressed."""
    fields = tuple(pair for pair in answer.fields if pair[0] not in ("content-encoding", "content-length"))
    return replace(answer, fields=fields, body=body)


def needs_dictionary(answer: Answer) -> bool:
    return bool(answer.body) and DCZ in list_members(answer.fields, "content-encoding")


def unzstd(data: bytes, limit: int, *, window: int = ZSTD_WINDOW, dictionary: bytes | None = None) -> bytes:
    """Raises OverflowError beyond the limit, EOFError for truncated input, zstandard.ZstdError.
    ``dictionary``: bytes that precede the content."""
    raw = (
        None
        if dictionary is None
        else zstandard.ZstdCompressionDict(dictionary, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    )
    unpacker = zstandard.ZstdDecompressor(dict_data=raw, max_window_size=window).decompressobj()
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
    **dict.fromkeys((("gzip",), ("x-gzip",)), lambda data, limit: gunzip(data, max_bytes=limit)),
    ("zstd",): unzstd,
}
