"""Fields of a Protobuf message, each written from the JSON value that gnostic's compiler reads it from.

A value of an unexpected type becomes what gnostic makes of such a YAML node (its compiler/helpers.go): null
and whole numbers are texts, a scalar is an object without entries. What gnostic rejects, or panics on, is
rejected.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Set
from typing import Any, Final, TypeAlias

from specmux_converters.codecs import Fragments
from specmux_converters.codecs.gnostic_any_writer import scalar_text, write_yaml
from specmux_converters.codecs.wire import FIXED64, LENGTH, VARINT, key, varint, write_delimited
from specmux_converters.errors import cut
from specmux_converters.go.scalars import UINT64_MAX
from specmux_converters.go.text import INT64_MAX

Write: TypeAlias = Callable[[Any, Fragments], bytes]
"""Maps a JSON value to a message body, or to whole fields with their keys."""

NAME: Final = key(1, LENGTH)
VALUE: Final = key(2, LENGTH)


class RefusedError(Exception):
    """The value cannot be written. ``path`` collects the keys that lead to it while the error propagates."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path: list[str] = []


def pairs(value: Any) -> Iterable[tuple[str, Any]]:
    """The entries of a value that should be an object. gnostic reads a scalar as an empty object, and an
    array as alternating keys and values; it panics if the last value is missing."""
    if type(value) is dict:
        return value.items()
    if type(value) is not list:
        return ()
    keys = [(_text(item), index + 1) for index, item in enumerate(value) if index % 2 == 0]
    if keys and keys[-1][0] is not None and keys[-1][1] == len(value):
        raise RefusedError("an array where an object belongs")
    return [(name, value[index]) for name, index in keys if name is not None]


def message_field(prefix: bytes, body: Write) -> Write:
    def write(value: Any, fragments: Fragments) -> bytes:
        return write_delimited(prefix, body(value, fragments))

    return write


def repeated_field(prefix: bytes, body: Write) -> Write:
    def write(value: Any, fragments: Fragments) -> bytes:
        # Here gnostic skips what is not a list; in a list of strings it rejects it.
        items = value if type(value) is list else ()
        return b"".join([write_delimited(prefix, body(item, fragments)) for item in items])

    return write


def string_field(prefix: bytes, allowed: Set[str] = frozenset()) -> Write:
    def write(value: Any, _: Fragments) -> bytes:
        text = value if type(value) is str else _text(value)
        if text is None:
            raise RefusedError(f"a string is wanted, not {_kind(value)}")
        _check_allowed(text, allowed)
        return write_delimited(prefix, _utf8(text)) if text else b""

    return write


def _check_allowed(text: str, allowed: Set[str]) -> None:
    if allowed and text not in allowed:
        raise RefusedError(f"{cut(text)!r} is none of {', '.join(sorted(allowed))}")


def lax_string_field(prefix: bytes) -> Write:
    def write(value: Any, _: Fragments) -> bytes:
        text = _text(value)
        return write_delimited(prefix, _utf8(text)) if text else b""

    return write


def strings_field(prefix: bytes, allowed: Set[str] = frozenset()) -> Write:
    def write(value: Any, _: Fragments) -> bytes:
        if type(value) is not list:
            raise RefusedError(f"an array is wanted, not {_kind(value)}")
        texts = [text for text in map(_text, value) if text is not None]
        for text in texts:
            _check_allowed(text, allowed)
        return b"".join([write_delimited(prefix, _utf8(text)) for text in texts])

    return write


def bool_field(prefix: bytes) -> Write:
    def write(value: Any, _: Fragments) -> bytes:
        if type(value) is not bool:
            raise RefusedError(f"a boolean is wanted, not {_kind(value)}")
        return prefix + b"\1" if value else b""

    return write


def int_field(prefix: bytes) -> Write:
    def write(value: Any, _: Fragments) -> bytes:
        if type(value) is not int:
            raise RefusedError(f"an integer is wanted, not {_kind(value)}")
        if not _is_int64(value):
            raise RefusedError("an integer beyond 64 bits")
        return prefix + varint(value) if value else b""

    return write


def double_field(prefix: bytes) -> Write:
    def write(value: Any, _: Fragments) -> bytes:
        if type(value) is not int and type(value) is not float:
            raise RefusedError(f"a number is wanted, not {_kind(value)}")
        body = _double(value)
        return prefix + body if body != _ZERO else b""

    return write


def _double(value: float) -> bytes:
    try:
        number = float(value)
    except OverflowError as error:
        raise RefusedError("an integer beyond all doubles") from error
    if number - number != 0:
        raise RefusedError("a number that is not finite")
    return struct.pack("<d", number)


_ZERO: Final = _double(0.0)


def write_any(value: Any, _: Fragments) -> bytes:
    try:
        return write_delimited(VALUE, _utf8(write_yaml(value)))
    except TypeError as error:
        raise RefusedError(str(error)) from error


def write_default(value: Any, _: Fragments) -> bytes:
    """DefaultType: anything but a scalar leaves it empty, as in gnostic."""
    match value:
        case bool():
            return key(2, VARINT) + (b"\1" if value else b"\0")
        case int():
            return key(1, FIXED64) + _double(value if _is_int64(value) else 0)
        case float():
            return key(1, FIXED64) + _double(value)
        case str():
            return write_delimited(key(3, LENGTH), _utf8(value))
    return b""


def write_string_array(value: Any, _: Fragments) -> bytes:
    items = value if type(value) is list else [part for pair in pairs(value) for part in pair]
    return b"".join([write_delimited(NAME, _utf8(_text(item) or "")) for item in items])


def write_types(value: Any, _: Fragments) -> bytes:
    """TypeItem: scalars as they are spelled."""
    items = value if type(value) is list else [value]
    for item in items:
        if type(item) in (dict, list):
            raise RefusedError(f"a string is wanted, not {_kind(item)}")
    texts = [item if type(item) is str else scalar_text(item) for item in items]
    return b"".join([write_delimited(NAME, _utf8(text)) for text in texts])


def _text(value: Any) -> str | None:
    """A scalar that gnostic reads as a string: text, null and whole numbers."""
    if type(value) is str:
        return value
    if value is None:
        return ""
    return str(value) if type(value) is int and -INT64_MAX - 1 <= value <= UINT64_MAX else None


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise RefusedError("text with a lone surrogate") from error


def _is_int64(value: int) -> bool:
    return -INT64_MAX - 1 <= value <= INT64_MAX


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number" if isinstance(value, int | float) else type(value).__name__)
