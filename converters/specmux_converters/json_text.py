"""Questions about a JSON text that the parser does not answer: where an error is, and which key came twice.

The parser (orjson) keeps the last of equal keys, so a text may show one thing to a reviewer and another to
us. RFC 8259, section 4 leaves open what a receiver does then; we refuse.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from specmux_converters.losses import pointer_to

POINTER_MAX_BYTES: Final = 4 * 1024 * 1024
"""How far into a text an error is given a pointer: finding it costs about a second for this much."""

_GO_ESCAPES: Final = tuple((mark.encode(), f"\\u{ord(mark):04x}".encode()) for mark in "<>&")

MAX_WRITTEN_OUT: Final = 4096
"""Escapes that are worth writing out: counting strings costs less than more of them."""

_UNICODE_ESCAPE: Final = re.compile(rb"\\u([0-9a-fA-F]{4})")
_SHORT_ESCAPES: Final = frozenset('"\\/bfnrtu')
_ESCAPE: Final = re.compile(rb'\\["\\]')
_LONG: Final = re.compile(rb"[0-9]{19}")
_NUMBER: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|(-?[0-9]+)(?![0-9.eE])|[0-9.eE+-]+', re.DOTALL)
"""Strings and numbers, of which the group is an integer."""
_ROUNDED_NAMED: Final = 3
"""Finding the place of one reads the text up to there."""
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[][{},]', re.DOTALL)


_COUNTED: Final = 1024 * 1024
"""Bytes."""


def is_deeper(indented: bytes, depth: int) -> bool:
    """Whether a JSON text that is indented by two spaces has a value in more than ``depth`` containers."""
    return b"\n" + b"  " * (depth + 1) in indented


def count_strings(data: bytes) -> int:
    """How many strings a JSON text holds, keys included: a parsed text that lost none has no equal keys."""
    escapes = _ESCAPE.findall(data)
    return (data.count(b'"') - escapes.count(b'\\"')) // 2


def may_have_more_values(data: bytes, limit: int) -> bool:
    """Whether a JSON text can hold more than ``limit`` values: commas in its strings count, too."""
    if len(data) <= 2 * limit:  # each takes two bytes: itself, and a comma or the other bracket
        return False
    count = 1
    for start in range(0, len(data), _COUNTED):  # others have the GIL in between
        end = start + _COUNTED
        count += data.count(b",", start, end) + data.count(b"[", start, end) + data.count(b"{", start, end)
        if count > limit:
            return True
    return False


def may_be_go_escaped(data: bytes) -> bool:
    return not any(character in data for character, _ in _GO_ESCAPES)


def go_escaped(written: bytes) -> bytes:
    """A JSON text with the escapes that Go's encoding/json adds by default (its option EscapeHTML), but for
    two line separators that are too rare to be looked for."""
    for character, escape in _GO_ESCAPES:
        written = written.replace(character, escape)
    return written


def with_characters(data: bytes) -> bytes:
    r"""A JSON text with characters for its ``\uXXXX`` escapes, to be compared with another, not to be read.

    Python escapes all that is not ASCII. The pattern sees an escape in ``\\u003c`` too, a backslash and five
    letters. What stands there afterwards, ``\<``, is in no JSON text: so a result that equals one has the
    same strings as ``data``.
    """
    return _UNICODE_ESCAPE.sub(_character, data, count=MAX_WRITTEN_OUT)


def _character(escape: re.Match[bytes]) -> bytes:
    """Itself for a control character, half of a surrogate pair, and what may stand behind a backslash."""
    character = chr(int(escape[1], 16))
    if character < " " or "\ud800" <= character <= "\udfff" or character in _SHORT_ESCAPES:
        return escape[0]
    return character.encode()


def rounded_integers(data: bytes) -> tuple[list[tuple[str, int]], int]:
    """Integers of a JSON text that are beyond 64 bits, so that the parser makes doubles of them, and not the
    same number as a double: pointers and values of the first few, and how many there are."""
    if not _LONG.search(data):
        return [], 0
    found = []
    count = 0
    for match in _NUMBER.finditer(data):
        digits = match[1]
        if digits is not None and len(digits) > 18 and is_rounded(number := int(digits)):
            count += 1
            if count <= _ROUNDED_NAMED:
                is_near = match.start() <= POINTER_MAX_BYTES
                found.append((pointer_at(data.decode(), match.start()) if is_near else "", number))
    return found, count


def is_rounded(number: int) -> bool:
    """Whether it is beyond 64 bits and another number as a double."""
    return not -(2**63) <= number < 2**64 and int(float(number)) != number


def deep_pointer(document: Any, depth: int) -> str:
    """The pointer of some container below ``depth`` others, "" when there is none."""
    waiting: list[tuple[Any, tuple[str | int, ...]]] = [(document, ())]
    while waiting:
        node, path = waiting.pop()
        if len(path) >= depth:
            return pointer_to(*path)
        for key, child in node.items() if isinstance(node, dict) else enumerate(node):
            if isinstance(child, dict | list):
                waiting.append((child, (*path, key)))
    return ""


def pointer_at(text: str, position: int) -> str:
    """The pointer of the value that stands at ``position``, as far as the text before it tells."""
    path, _ = _walk(text, position)
    return path


def duplicate_pointer(text: str) -> str:
    """The pointer of the first key that its object has already, "" when every key is unique."""
    path, is_duplicate = _walk(text, len(text), stop_at_duplicate=True)
    return path if is_duplicate else ""


def _walk(text: str, end: int, *, stop_at_duplicate: bool = False) -> tuple[str, bool]:
    """Reads tokens up to ``end``: the path there, and whether a duplicate key stopped it.

    ``path`` has the current key or index of each open container, ``seen`` the keys that it has had, or None
    for an array.
    """
    path: list[str | int] = []
    seen: list[set[str] | None] = []
    awaits_key = False
    for match in _TOKEN.finditer(text, 0, end):
        mark = match[0]
        names = seen[-1] if seen else None
        if mark in "{[":
            awaits_key = mark == "{"
            seen.append(set() if awaits_key else None)
            path.append("" if awaits_key else 0)
        elif mark in "}]":
            if not seen:
                break
            seen.pop()
            path.pop()
            awaits_key = False
        elif mark == ",":
            awaits_key = names is not None
            if seen and names is None:
                path[-1] = int(path[-1]) + 1
        elif awaits_key and names is not None:
            awaits_key = False
            path[-1] = key = _decoded(mark)
            if stop_at_duplicate and key in names:
                return pointer_to(*path), True
            names.add(key)
    return pointer_to(*path), False


def _decoded(key: str) -> str:
    try:
        return str(json.loads(key))
    except ValueError:
        return key
