"""One request written to a ``Wire``, and its answer read from it, by RFC 9112 and without a library:
``http.client`` imports ``email`` and ``ssl``, a tenth of what a command on a warm cache takes.

Invariant: an answer of which one cannot say where it ends is refused (RFC 9112 6.3).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from specmux_cache.http.connections.wire import PIECE, Wire
from specmux_cache.http.messages import Fields, fields_of, joined, listed

LINE_MAX: Final = 64 * 1024
FIELDS_MAX: Final = 100
INTERIM_MAX: Final = 16
"""Interim answers (1xx) before the answer; servers send one."""
HEXADECIMAL: Final = frozenset(b"0123456789abcdefABCDEF")
NOT_IN_NAMES: Final = frozenset(b'()<>@,;:\\"/[]?={}' + bytes(range(33)) + bytes(range(127, 256)))
"""Bytes that a token has not (RFC 9110 5.6.2)."""
NOT_IN_VALUES: Final = frozenset(b"\r\n\0")


class MalformedAnswer(Exception):
    """The answer was cut off, or is not HTTP."""


class EarlyEnd(ConnectionError):
    """The connection ended before there was an answer."""


class WholeAnswer(NamedTuple):
    """One answer. ``is_last``: none comes after it on its connection."""

    status: int
    fields: Fields
    body: bytes
    is_last: bool


def send(wire: Wire, target: str, fields: Mapping[str, str]) -> None:
    """A GET. Raises ValueError for what does not belong into a header field."""
    head = [f"GET {target} HTTP/1.1".encode("ascii")]
    for name, value in fields.items():
        pair = name.encode("ascii"), value.encode()
        if not pair[0] or NOT_IN_NAMES.intersection(pair[0]) or NOT_IN_VALUES.intersection(pair[1]):
            raise ValueError("not a header field")
        head.append(b": ".join(pair))
    wire.sendall(b"\r\n".join([*head, b"", b""]))


def received(wire: Wire, max_body_bytes: int) -> WholeAnswer:
    """The final answer. Raises MalformedAnswer, EarlyEnd, or OverflowError for a larger body."""
    for _ in range(INTERIM_MAX):
        version, status = _status(wire)
        fields = _fields(wire)
        if status >= 200:
            return _with_body(wire, version, status, fields, max_body_bytes)
    raise MalformedAnswer("interim answers without end")


def _with_body(wire: Wire, version: bytes, status: int, fields: Fields, max_body_bytes: int) -> WholeAnswer:
    length, coding = joined(fields, "content-length"), joined(fields, "transfer-encoding")
    if length is not None and (coding is not None or not (length.isascii() and length.isdigit())):
        raise MalformedAnswer("a head that does not say where its body ends")
    if coding is not None and coding.lower() != "chunked":
        raise MalformedAnswer("another transfer coding than chunked")
    options = listed(fields, "connection")
    is_last = "close" in options or version != b"HTTP/1.1"
    if status in (204, 304):
        return WholeAnswer(status, fields, b"", is_last)
    if coding is not None:
        pieces = _chunks(wire)
    elif length is not None:
        pieces = _counted(wire, int(length[:20]))
    else:
        pieces, is_last = iter(lambda: wire.read(PIECE), b""), True
    body = []
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > max_body_bytes:
            raise OverflowError
        body.append(piece)
    return WholeAnswer(status, fields, b"".join(body), is_last)


def _status(wire: Wire) -> tuple[bytes, int]:
    line = _line(wire)
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


def _fields(wire: Wire) -> Fields:
    """Raises MalformedAnswer for lines that are no fields; a folded one is none any more (RFC 9112 5.2)."""
    pairs: list[tuple[str, str]] = []
    while line := _line(wire):
        name, colon, value = line.partition(b":")
        if not (name and colon) or NOT_IN_NAMES.intersection(name) or NOT_IN_VALUES.intersection(value):
            raise MalformedAnswer("a line that is no field")
        # As aiohttp reads it, so that both store the same.
        pairs.append((name.decode("ascii"), value.strip(b" \t").decode("utf-8", "surrogateescape")))
        if len(pairs) > FIELDS_MAX:
            raise MalformedAnswer("too many fields")
    return fields_of(pairs)


def _line(wire: Wire) -> bytes:
    """One of a head. Raises EarlyEnd where it did not come whole."""
    try:
        line = wire.line(LINE_MAX)
    except OverflowError as error:
        raise MalformedAnswer("a line without end") from error
    if not line.endswith(b"\n"):
        raise EarlyEnd
    return line.removesuffix(b"\n").removesuffix(b"\r")


def _counted(wire: Wire, left: int) -> Iterator[bytes]:
    while left:
        piece = _piece(wire, left)
        left -= len(piece)
        yield piece


def _chunks(wire: Wire) -> Iterator[bytes]:
    """RFC 9112 7.1; extensions and trailers are read, and mean nothing."""
    while size := _chunk_size(wire):
        yield from _counted(wire, size)
        if _part(wire):
            raise MalformedAnswer("a chunk of another size than it says")
    for _ in range(FIELDS_MAX):
        if not _part(wire):
            return
    raise MalformedAnswer("trailers without end")


def _chunk_size(wire: Wire) -> int:
    digits = _part(wire).partition(b";")[0].rstrip(b" \t")
    if not 0 < len(digits) <= 16 or not HEXADECIMAL.issuperset(digits):
        raise MalformedAnswer("not a chunk's size")
    return int(digits, 16)


def _part(wire: Wire) -> bytes:
    """A line within a body."""
    try:
        return _line(wire)
    except ConnectionError as error:
        raise MalformedAnswer("cut off") from error


def _piece(wire: Wire, size: int) -> bytes:
    try:
        piece = wire.read(size)
    except ConnectionError as error:
        raise MalformedAnswer("cut off") from error
    if not piece:
        raise MalformedAnswer("cut off")
    return piece
