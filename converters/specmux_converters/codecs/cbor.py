"""Documents as CBOR (RFC 8949) according to KEP-4222: deterministic, self-described, and strict when
decoding.

Encoding: one item behind tag 55799, definite lengths, map keys in the order of their encoded bytes, shortest
floats, doubles for integers beyond int64. Decoding: no other tag, no duplicate key (``'a'`` and ``b'a'`` are
equal), valid UTF-8, integers within int64, finite floats, no trailing bytes. cbor2 does the work; what it is
too lenient about is found afterwards by scanning the bytes and, only if the scan or orjson finds something,
by walking the values.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final, NoReturn, TypeAlias

import cbor2
import orjson

from specmux_converters.codecs import Fragments
from specmux_converters.document import Document, Limits
from specmux_converters.errors import InvalidDocument, LimitExceeded, Unrepresentable, cut
from specmux_converters.go.text import INT64_MAX
from specmux_converters.losses import pointer_to
from specmux_converters.media_types import CBOR, SELF_DESCRIBED_CBOR

# Definite lengths, map keys in the order of their encoded bytes, shortest floats, integers of 64 bits.
# Encoded texts and sets of map keys are cached in tables of bounded size, since documents repeat both.

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
"""The places of parts that documents, or operations of one, have in common; None is such a part."""

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
        return fragments.get(CBOR, value, lambda part: _join_fragments(part, shape, fragments))
    return _join_fragments(value, shape, fragments)


def _join_fragments(value: Any, shape: Mapping[str, _Shape], fragments: Fragments) -> bytes:
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


SELF_DESCRIBED: Final = SELF_DESCRIBED_CBOR

_STRINGS: Final = (2, 3)
"""Major types whose argument is the number of bytes that follow (RFC 8949, section 3.1)."""

ARGUMENT_BYTES: Final = {24: 1, 25: 2, 26: 4, 27: 8}
"""Additional information -> bytes of the argument after the head (RFC 8949, section 3)."""

DOUBLE_END: Final = 2**1023
"""Some integers beyond are not finite doubles."""

_SURROGATE: Final = re.compile("[\ud800-\udfff]")

_UNUSUAL_NUMBERS: Final = tuple(
    re.compile(pattern, re.DOTALL)
    for pattern in (
        rb"\x1b[\x80-\xff]",  # an unsigned integer beyond int64
        rb"\x3b[\x80-\xff]",  # a negative one
        rb"\xf9[\x7c-\x7f\xfc-\xff]",  # NaN and the infinities as half,
        rb"\xfa[\x7f\xff]",  # single
        rb"\xfb[\x7f\xff]",  # and double precision
    )
)
"""The encoded beginnings of numbers that are refused. Other bytes may match as well, so the walk decides.
Integers beyond 64 bits are tags, which the decoder refuses; and the encoder gets what orjson has
serialized."""

_Refusal: TypeAlias = type[InvalidDocument] | type[Unrepresentable]


def encode(document: Document, *, fragments: Fragments | None = None) -> bytes:
    """Raises Unrepresentable for a value that Kubernetes' CBOR cannot represent."""
    try:
        data = write_document(document, fragments or Fragments())
    except (TypeError, UnicodeEncodeError, UnusualNumber):
        # Deeper than orjson allows, not JSON, or with a suspicious number. cbor2 would recurse without a
        # limit; the walk has one.
        data = cbor2.dumps(_walk(document, Unrepresentable), canonical=True)
    return SELF_DESCRIBED + data


def decode(data: bytes, *, limits: Limits) -> Document:
    """Raises InvalidDocument for anything but one map within JSON's data model, and LimitExceeded beyond
    ``limits``."""
    value = decode_value(data, limits=limits)
    if not isinstance(value, dict):
        raise InvalidDocument("not a CBOR map")
    return value


def decode_value(data: bytes, *, limits: Limits) -> Any:
    """The single item in ``data``, as a JSON value."""
    source = _Source(data, limits)
    try:
        value = source.decoder.decode()
    except (cbor2.CBORDecodeError, RecursionError) as error:
        raise _decode_error(error) from error
    value = _check_value(value, data[: source.position])
    if source.position < len(data):
        raise InvalidDocument("bytes follow the CBOR item")
    return value


class _Source:
    """A file object for cbor2: its position becomes the end of the item."""

    def __init__(self, data: bytes, limits: Limits) -> None:
        limits.check_bytes(data)
        if len(data) > limits.max_values and _has_more_items(data, limits.max_values):
            raise LimitExceeded(f"more than the {limits.max_values} values allowed")
        self.data = data
        self.position = len(SELF_DESCRIBED) if data.startswith(SELF_DESCRIBED) else 0
        self.decoder = cbor2.CBORDecoder(
            self,  # type: ignore[arg-type]  # cbor2 calls these methods only
            # Called for every tag, including those that cbor2 would decode itself.
            semantic_decoders=defaultdict(lambda: _refuse_tag),
            tag_hook=_refuse_tag,
            read_size=max(len(data), 1),
            max_depth=limits.max_depth,
            allow_duplicate_keys=False,
            strict_hashable_types=True,
        )

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.position

    def seek(self, offset: int, whence: int = 0) -> int:
        self.position = offset if whence == 0 else self.position + offset
        return self.position

    def read(self, size: int) -> bytes:
        start = self.position
        self.position = min(start + size, len(self.data))
        return self.data[start : self.position]


def _has_more_items(data: bytes, most: int) -> bool:
    """Counted from the heads (RFC 8949, section 3); malformed input is left to the decoder."""
    position = items = 0
    while position < len(data) and items <= most:
        major, info = data[position] >> 5, data[position] & 0x1F
        after = position + 1 + ARGUMENT_BYTES.get(info, 0)
        if major in _STRINGS and info < 28:
            after += int.from_bytes(data[position + 1 : after], "big") if info > 23 else info
        position = after
        items += 1
    return items > most


def _check_value(value: Any, data: bytes) -> Any:
    if any(pattern.search(data) for pattern in _UNUSUAL_NUMBERS):
        return _walk(value, InvalidDocument)
    try:
        orjson.dumps(value)
    except TypeError:
        return _walk(value, InvalidDocument)
    return value


def _decode_error(error: Exception) -> InvalidDocument | LimitExceeded:
    if "nesting depth" in str(error) or isinstance(error, RecursionError):
        return LimitExceeded("CBOR nested too deeply")
    causes = [str(part) for part in (error, error.__cause__) if part is not None]
    return InvalidDocument(f"CBOR: {cut(': '.join(causes))}")


def _refuse_tag(*_: Any) -> NoReturn:
    raise cbor2.CBORDecodeError("only the self-described tag, in front, is taken")


def _walk(value: Any, refused: _Refusal) -> Any:
    """``value`` with byte strings decoded as text, after checking that every part is valid JSON."""
    try:
        return _of_json(value, (), refused)
    except RecursionError as error:
        raise refused("CBOR: nested too deeply") from error


def _of_json(value: Any, path: tuple[str | int, ...], refused: _Refusal) -> Any:
    match value:
        case dict():
            return _object_of_json(value, path, refused)
        case list():
            return [_of_json(item, (*path, index), refused) for index, item in enumerate(value)]
        case bool() | None:
            return value
        case str() if value.isascii() or not _SURROGATE.search(value):
            return value
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError as error:
                raise refused("a byte string that is not UTF-8", pointer=pointer_to(*path)) from error
        case int() if -INT64_MAX - 1 <= value <= INT64_MAX:
            return value
        case int() if refused is Unrepresentable and abs(value) < DOUBLE_END:
            return float(value)  # as Go parses it from JSON (apimachinery, pkg/util/json)
        case float() if value - value == 0:
            return value
        case str():
            reason = "text with a lone surrogate"
        case int() | float():
            reason = "a number that is not finite, or an integer beyond int64"
        case _:
            reason = f"a {type(value).__name__}, which JSON does not have"
    raise refused(reason, pointer=pointer_to(*path))


def _object_of_json(value: dict[Any, Any], path: tuple[str | int, ...], refused: _Refusal) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, item in value.items():
        name = _of_json(key, path, refused)
        if not isinstance(name, str):
            raise refused(f"the key {cut(repr(key))}, which is no text", pointer=pointer_to(*path))
        if name in out:
            raise refused(f"the key {cut(name)!r} twice, as text and as bytes", pointer=pointer_to(*path))
        out[name] = _of_json(item, (*path, name), refused)
    return out
