"""Examine a JSON text for what the parser does not report: the place of an error, and duplicate keys.

The parser (orjson) keeps the last of duplicate keys, so a text may show one thing to a reviewer and another
to the program. RFC 8259, section 4 leaves the behaviour open; duplicates are refused here.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from specmux_converters.lazy.patterns import pattern
from specmux_converters.losses import pointer_to

POINTER_MAX_BYTES: Final = 4 * 1024 * 1024
"""Bytes of a text within which the pointer of an error is searched; it takes about a second for that much."""

_GO_ESCAPES: Final = tuple((mark.encode(), f"\\u{ord(mark):04x}".encode()) for mark in "<>&")

MAX_WRITTEN_OUT: Final = 4096
"""Escapes that are expanded: for more of them, counting strings is cheaper."""

_UNICODE_ESCAPE: Final = pattern(rb"\\u([0-9a-fA-F]{4})")
_SHORT_ESCAPES: Final = frozenset('"\\/bfnrtu')
_ESCAPE: Final = pattern(rb'\\["\\]')
_LONG: Final = pattern(rb"[0-9]{19}")
_NUMBER: Final = pattern(rb'"(?:[^"\\]|\\.)*"|(-?[0-9]+)(?![0-9.eE])|[0-9.eE+-]+', re.DOTALL)
"""Strings and numbers; the group is an integer."""
_ROUNDED_NAMED: Final = 3
"""Finding the place of one requires reading the text up to there."""
_TOKEN: Final = pattern(r'"(?:[^"\\]|\\.)*"|[][{},]', re.DOTALL)


_COUNTED: Final = 1024 * 1024
"""Bytes."""


def is_deeper(indented: bytes, depth: int) -> bool:
    """Whether a JSON text indented by two spaces nests values in more than ``depth`` containers."""
    return b"\n" + b"  " * (depth + 1) in indented


def count_strings(data: bytes) -> int:
    """Number of strings in a JSON text, including keys: if none is missing after parsing, there were no
    duplicate keys."""
    escapes = _ESCAPE.findall(data)
    return (data.count(b'"') - escapes.count(b'\\"')) // 2


def may_have_more_values(data: bytes, limit: int) -> bool:
    """Whether a JSON text can contain more than ``limit`` values; commas in strings count as well."""
    if len(data) <= 2 * limit:  # a value takes at least two bytes: itself, and a comma or bracket
        return False
    count = 1
    for start in range(0, len(data), _COUNTED):  # releases the GIL in between
        end = start + _COUNTED
        count += data.count(b",", start, end) + data.count(b"[", start, end) + data.count(b"{", start, end)
        if count > limit:
            return True
    return False


def may_be_go_escaped(data: bytes) -> bool:
    return not any(character in data for character, _ in _GO_ESCAPES)


def escape_for_go(written: bytes) -> bytes:
    """A JSON text with the escapes that Go's encoding/json adds by default (option EscapeHTML), except for
    two line separators that are too rare to be searched for."""
    for character, escape in _GO_ESCAPES:
        written = written.replace(character, escape)
    return written


def with_characters(data: bytes) -> bytes:
    r"""A JSON text with ``\uXXXX`` escapes replaced by characters; for comparison only.

    Python escapes everything that is not ASCII. The pattern also matches within ``\\u003c``, a backslash and
    five letters. The result, ``\<``, occurs in no JSON text, so a result that equals one has the same strings
    as ``data``.
    """
    return _UNICODE_ESCAPE.sub(_character, data, count=MAX_WRITTEN_OUT)


def _character(escape: re.Match[bytes]) -> bytes:
    """The escape itself for a control character, half of a surrogate pair, and characters that may follow a
    backslash."""
    character = chr(int(escape[1], 16))
    if character < " " or "\ud800" <= character <= "\udfff" or character in _SHORT_ESCAPES:
        return escape[0]
    return character.encode()


def find_rounded_integers(data: bytes) -> tuple[list[tuple[str, int]], int]:
    """Integers beyond 64 bits that a double cannot represent, since the parser turns them into doubles:
    pointers and values of the first few, and their number."""
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
    """Whether it is beyond 64 bits and differs from its double."""
    return not -(2**63) <= number < 2**64 and int(float(number)) != number


def deep_pointer(document: Any, depth: int) -> str:
    """The pointer of a container below ``depth`` others; "" if there is none."""
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
    """The pointer of the value at ``position``, as far as the preceding text determines it."""
    return _walk(text, position)[0]


def duplicate_pointer(text: str) -> str:
    """The pointer of the first duplicate key; "" if all keys are unique."""
    path, is_duplicate = _walk(text, len(text), stop_at_duplicate=True)
    return path if is_duplicate else ""


def _walk(text: str, end: int, *, stop_at_duplicate: bool = False) -> tuple[str, bool]:
    """Reads tokens up to ``end``; returns the path there, and whether a duplicate key stopped it.

    ``path`` contains the current key or index of each open container, ``seen`` its keys so far, or None for
    an array.
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
            path[-1] = key = _decode_key(mark)
            if stop_at_duplicate and key in names:
                return pointer_to(*path), True
            names.add(key)
    return pointer_to(*path), False


def _decode_key(key: str) -> str:
    try:
        return str(json.loads(key))
    except ValueError:
        return key
