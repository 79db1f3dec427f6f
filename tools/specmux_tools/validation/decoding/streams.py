"""Split files into objects: the documents of YAML and JSON streams, with their lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.lazy.patterns import pattern
from specmux_converters.media_types import ENVELOPE_MAGIC, SELF_DESCRIBED_CBOR
from specmux_tools.validation.decoding.objects import is_broken_separator
from specmux_tools.validation.media_types import BodyFormat

_SEPARATOR: Final = pattern(rb"^---[^\n]*(?:\n|\Z)", re.MULTILINE)
"""A line that starts like this ends a document (apimachinery, pkg/util/yaml)."""
_CONTENT: Final = pattern(rb"^[ \t]*[^ \t\r\n#]", re.MULTILINE)
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
    """The non-empty documents; one that starts with a brace is JSON, as in kubectl. UTF-16 is converted to
    UTF-8, since separators and group-versions are searched in bytes."""
    if data.startswith(_UTF_16):
        with suppress(UnicodeDecodeError):  # reported when the document is parsed
            data = data.decode("utf-16").encode()
    if data.startswith(SELF_DESCRIBED_CBOR):
        yield StreamPart(data, BodyFormat.CBOR)
    elif data.startswith(ENVELOPE_MAGIC):
        yield StreamPart(data, BodyFormat.PROTOBUF)
    elif data.removeprefix(_BOM).lstrip().startswith(b"{"):
        yield from _json_parts(data)
    else:
        yield from _yaml_parts(data)


def _yaml_parts(data: bytes) -> Iterator[StreamPart]:
    start = line = 0
    for match in [*_SEPARATOR.finditer(data), None]:
        end = match.start() if match else len(data)
        piece = data[start:end]
        if _CONTENT.search(piece):
            source = _SOURCE.search(piece)
            yield StreamPart(
                piece, BodyFormat.YAML, line, source[1].decode("utf-8", "replace") if source else ""
            )
        if match:
            # Only a comment may follow a separator: the rest of such a file is one part, and refused.
            if is_broken_separator(match[0]):
                line += data.count(b"\n", start, end)
                yield StreamPart(data[end:], BodyFormat.JSON, line)
                return
            line += data.count(b"\n", start, match.end())
            start = match.end()


def _json_parts(data: bytes) -> Iterator[StreamPart]:
    """Consecutive objects; if one is malformed, the rest is one part."""
    text = data.decode("utf-8", "replace")
    decoder = json.JSONDecoder()
    at = 0
    while at < len(text):
        start = at
        try:
            at = decoder.raw_decode(text, _skip_space(text, at))[1]
        except (ValueError, RecursionError):
            at = len(text)
        end = _skip_space(text, at)
        is_whole = start == 0 and end == len(text)
        piece = data if is_whole else text[start:at].encode("utf-8", "replace")
        yield StreamPart(piece, BodyFormat.JSON, text.count("\n", 0, start))
        at = end


def _skip_space(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at
