"""JSON values as deterministic CBOR (RFC 8949, section 4.2.1), part by part.

Definite lengths, map keys in the order of their encoded bytes, shortest floats, integers of 64 bits. Encoded
texts and sets of map keys are cached in tables of bounded size, since documents repeat both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import cbor2

from specmux_converters.codecs.fragments import Fragments
from specmux_converters.go.text import INT64_MAX
from specmux_converters.media_types import CBOR

_Shape: TypeAlias = "Mapping[str, _Shape] | None"
_EACH: Final = "*"
"""In a shape: any other member, and each item of an array."""
_KNOWN: Final = " known"
"""In a shape for a value that is also a part as a whole: if it is not cached, it is assembled from its
members."""
_PARTS: Final[_Shape] = {_EACH: None}
_KNOWN_PARTS: Final[_Shape] = {_KNOWN: None, _EACH: None}
_OPERATION: Final[_Shape] = {"parameters": _KNOWN_PARTS, "responses": _KNOWN_PARTS, _EACH: None}
_PATH_ITEM: Final[_Shape] = {"parameters": _PARTS, _EACH: _OPERATION}
_DOCUMENT: Final[_Shape] = {"components": {_EACH: _PARTS}, "paths": {_EACH: _PATH_ITEM}, _EACH: None}
"""Where documents, or operations of a document, have common parts; None is such a part."""

_UNSIGNED, _NEGATIVE, _TEXT, ARRAY, MAP = 0x00, 0x20, 0x60, 0x80, 0xA0
"""Major types, shifted to their position in the first byte (RFC 8949, section 3.1)."""

_SIMPLE: Final = {False: b"\xf4", True: b"\xf5", None: b"\xf6"}

_MOST_REMEMBERED: Final = 4096
_LONGEST_REMEMBERED: Final = 256
"""Characters of a cached text, or of all keys of a cached map."""
_MOST_KEYS: Final = 16


class UnusualNumber(Exception):
    """A number that Go cannot decode into an integer, or that JSON does not have."""


class _Texts(dict[str, bytes]):
    """Encoded texts."""

    def __missing__(self, text: str) -> bytes:
        if type(text) is not str:
            raise TypeError("a key that is no text")
        encoded = text.encode()
        written = item_head(_TEXT, len(encoded)) + encoded
        if len(text) <= _LONGEST_REMEMBERED:
            if len(self) >= _MOST_REMEMBERED:
                self.clear()
            self[text] = written
        return written


_Members: TypeAlias = tuple[bytes, tuple[tuple[bytes, str], ...]]
"""The head of a map, and its keys in CBOR order, each with the bytes before its value."""


class _KeyOrders(dict[tuple[str, ...], _Members]):
    """Encoded keys of maps, by their keys in document order."""

    def __missing__(self, keys: tuple[str, ...]) -> _Members:
        members = item_head(MAP, len(keys)), tuple(sorted((_TEXTS[key], key) for key in keys))
        if len(keys) <= _MOST_KEYS and sum(map(len, keys)) <= _LONGEST_REMEMBERED:
            if len(self) >= _MOST_REMEMBERED:
                self.clear()
            self[keys] = members
        return members


_TEXTS: Final = _Texts()
_KEY_ORDERS: Final = _KeyOrders()


def write_document(document: Any, fragments: Fragments) -> bytes:
    """Raises UnusualNumber, and TypeError or UnicodeEncodeError for values that are not JSON or nested deeper
    than ``fragments`` allows."""
    return _join(document, _DOCUMENT, fragments)


def _join(value: Any, shape: _Shape, fragments: Fragments) -> bytes:
    """Encode ``value``, assembled from parts where ``shape`` defines them."""
    if shape is None:
        return fragments.get(CBOR, value, _part)
    if _KNOWN in shape:
        return fragments.get(CBOR, value, lambda part: _joined(part, shape, fragments))
    return _joined(value, shape, fragments)


def _joined(value: Any, shape: Mapping[str, _Shape], fragments: Fragments) -> bytes:
    each = shape.get(_EACH)
    if type(value) is dict:
        head, members = _KEY_ORDERS[tuple(value)]
        parts = [head]
        for written, key in members:
            item = value[key]
            parts.append(written)
            parts.append(_TEXTS[item] if type(item) is str else _join(item, shape.get(key, each), fragments))
        return b"".join(parts)
    if type(value) is list:
        return b"".join((item_head(ARRAY, len(value)), *[_join(item, each, fragments) for item in value]))
    return fragments.get(CBOR, value, _part)


def _part(value: Any) -> bytes:
    parts: list[bytes] = []
    _write(value, parts)
    return b"".join(parts)


def _write(value: Any, parts: list[bytes]) -> None:
    """Encode ``value``, which orjson has serialized, so keys are strings and the depth is bounded."""
    kind = type(value)
    if kind is str:
        parts.append(_TEXTS[value])
    elif kind is dict:
        head, members = _KEY_ORDERS[tuple(value)]
        parts.append(head)
        for written, key in members:
            parts.append(written)
            item = value[key]
            if type(item) is str:  # saves a call in most cases
                parts.append(_TEXTS[item])
            else:
                _write(item, parts)
    elif kind is list or kind is tuple:
        parts.append(item_head(ARRAY, len(value)))
        for item in value:
            _write(item, parts)
    elif kind is bool or value is None:
        parts.append(_SIMPLE[value])
    else:
        parts.append(_number(value))


def _number(value: Any) -> bytes:
    if type(value) is int and -INT64_MAX - 1 <= value <= INT64_MAX:
        return item_head(_UNSIGNED, value) if value >= 0 else item_head(_NEGATIVE, -1 - value)
    if type(value) is float and value - value == 0:
        return cbor2.dumps(value, canonical=True)
    if isinstance(value, int | float):
        raise UnusualNumber
    raise TypeError(f"a {type(value).__name__}, which JSON does not have")


def item_head(major: int, argument: int) -> bytes:
    """The head of an item (RFC 8949, section 3). A call of cbor2 would cost five times as much."""
    if argument < 24:
        return bytes((major | argument,))
    if argument < 1 << 8:
        return bytes((major | 24, argument))
    if argument < 1 << 16:
        return bytes((major | 25, argument >> 8, argument & 0xFF))
    if argument < 1 << 32:
        return bytes((major | 26,)) + argument.to_bytes(4, "big")
    return bytes((major | 27,)) + argument.to_bytes(8, "big")
