"""Split files into objects: the documents of YAML and JSON streams, with their lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from specmux_converters.go.text import SPACES
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.lazy.patterns import pattern
from specmux_converters.media_types import ENVELOPE_MAGIC, SELF_DESCRIBED_CBOR
from specmux_tools.validation.decoding.body import is_broken_separator, read
from specmux_tools.validation.decoding.json_reader import JSON_DECODER
from specmux_tools.validation.errors import Undecodable
from specmux_tools.validation.requests import BodyFormat

_SEPARATOR: Final = pattern(rb"^---[^\n]*(?:\n|\Z)", re.MULTILINE)
"""A line that starts like this ends a document (apimachinery, pkg/util/yaml)."""
_CONTENT: Final = pattern(rb"(?:^|\r|\xc2\x85|\xe2\x80[\xa8\xa9])(?!---)[ \t]*[^ \t\r\n#]", re.MULTILINE)
_NULL: Final = b"nN~.\xc2\xe2\xef"
"""The first bytes that a document may have that is null."""
_GUESSED: Final = 4096
"""Bytes in which kubectl looks for the brace of JSON."""
_LEAST_SPACE: Final = 4
"""Bytes that there must be for kubectl to look for YAML behind JSON."""
_SOURCE: Final = pattern(rb"^# Source: (\S[^\n]*)", re.MULTILINE)
"""Written by Helm above each object."""
_UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")
_BOM: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class StreamPart:
    """A document of a file. ``line``: number of lines before it."""

    data: bytes
    format: BodyFormat
    line: int = 0
    source: str = ""
    """The template from which it stems, according to Helm."""


def parts_of(data: bytes) -> Iterator[StreamPart]:
    """The documents that are not null, JSON or YAML as kubectl takes them (apimachinery, YAMLOrJSONDecoder).
    UTF-16 is converted to UTF-8, since separators and group-versions are searched in bytes."""
    if data.startswith(_UTF_16):
        with suppress(UnicodeDecodeError):  # reported when the document is parsed
            data = data.decode("utf-16").encode()
    data = data.removeprefix(_BOM)
    if data.startswith(SELF_DESCRIBED_CBOR):
        yield StreamPart(data, BodyFormat.CBOR)
    elif data.startswith(ENVELOPE_MAGIC):
        yield StreamPart(data, BodyFormat.PROTOBUF)
    elif data[:_GUESSED].decode("utf-8", "replace").lstrip(SPACES).startswith("{"):
        yield from _json_parts(data)
    else:
        yield from _yaml_parts(data)


def _yaml_parts(data: bytes, line: int = 0) -> Iterator[StreamPart]:
    start = 0
    for match in [*_SEPARATOR.finditer(data), None]:
        end = match.start() if match else len(data)
        # Only a comment may follow a separator: the rest of such a file is one part, and refused.
        is_broken = match is not None and is_broken_separator(match[0])
        if match and start == end and not is_broken:
            continue  # it stays above its document, whose lines it counts among
        piece = data[start:end]
        if not _is_null(piece):
            source = _SOURCE.search(piece)
            yield StreamPart(
                piece, BodyFormat.YAML, line, source[1].decode("utf-8", "replace") if source else ""
            )
        if match:
            if is_broken:
                yield StreamPart(data[end:], BodyFormat.JSON, line + data.count(b"\n", start, end))
                return
            line += data.count(b"\n", start, match.end())
            start = match.end()


def _is_null(piece: bytes) -> bool:
    content = _CONTENT.search(piece)
    if content is None:
        return True
    try:
        return content[0][-1:] in _NULL and read(piece, BodyFormat.YAML).value is None
    except Undecodable:
        return False


def _json_parts(data: bytes) -> Iterator[StreamPart]:
    """Consecutive values. What JSON refuses is YAML where YAML reads it, and no second value came before it;
    else the rest is one part."""
    text = data.decode("utf-8", "replace")
    at = count = 0
    while (start := _skip_space(text, at)) < len(text):
        try:
            value, end = JSON_DECODER.raw_decode(text, start)
        except RecursionError:
            value, end = text, len(text)
        except ValueError:
            parts = _behind_json(text, at) if count < 2 else None
            if parts is not None:
                yield from parts
                return
            value, end = text, len(text)
        count += 1
        is_whole = at == 0 and _skip_space(text, end) == len(text)
        start = start if at else 0
        piece = data if is_whole else text[start:end].encode("utf-8", "replace")
        if value is not None:
            yield StreamPart(piece, BodyFormat.JSON, text.count("\n", 0, start))
        at = end


def _behind_json(text: str, at: int) -> list[StreamPart] | None:
    """The documents of the YAML that begins here; None if the first is refused. Space up to a line's end is
    left out (consumeWhitespace)."""
    while len(text[at : at + _LEAST_SPACE].encode("utf-8", "replace")) >= _LEAST_SPACE:
        if text[at] not in SPACES:
            break
        at += 1
        if text[at - 1] == "\n":
            break
    else:
        return None
    parts = list(_yaml_parts(text[at:].encode("utf-8", "replace"), text.count("\n", 0, at)))
    try:
        for part in parts[:1]:
            read(part.data, part.format)
    except Undecodable:
        return None
    return parts


def _skip_space(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at
