"""Objects as CBOR as accepted by Kubernetes' decoder, which is more lenient than for documents (KEP-4222).

As in apimachinery (runtime/serializer/cbor/internal/modes/decode.go), it accepts byte strings with any bytes
for texts and names, encodes byte strings as announced by their tag (RFC 8949, 3.4.5.2), formats tagged times
as RFC 3339, and ignores other tags. It refuses big numbers, integers beyond int64, non-finite numbers, other
simple values, texts that are not UTF-8, and duplicate keys.

Bytes of a byte string that are not UTF-8 become lone surrogates (PEP 383), which are encoded as bytes again.
"""

from __future__ import annotations

import math
import re
import struct
from base64 import b64encode, urlsafe_b64encode
from calendar import monthrange
from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn

import cbor2

from specmux_converters.codecs import cbor
from specmux_converters.document import Limits
from specmux_converters.errors import InvalidDocument, LimitExceeded, Unrepresentable, cut
from specmux_converters.go.text import INT64_MAX, quote_text

_UNSIGNED, _BYTES, _TEXT, _ARRAY, _MAP = 0, 2, 3, 4, 5
_INDEFINITE: Final = 31
_BREAK: Final = 0xFF
_TIME_TEXT, _TIME_NUMBER = 0, 1
_TIMES: Final[Mapping[int, tuple[int, ...]]] = {0: (3,), 1: (0, 1, 7)}
"""Major types allowed in them."""
_BIG_NUMBERS: Final = (2, 3)
_SIMPLE: Final[Mapping[int, Any]] = {20: False, 21: True, 22: None}
_FLOATS: Final = {25: ">e", 26: ">f", 27: ">d"}
_ENCODINGS: Final[Mapping[int, Callable[[bytes], str]]] = {
    21: lambda data: urlsafe_b64encode(data).rstrip(b"=").decode(),
    22: lambda data: b64encode(data).decode(),
    23: bytes.hex,
}
"""Tags that announce a later encoding."""
_TIME: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?(Z|([+-])([0-9]{2}):([0-9]{2}))"
)
_NANOSECOND_DIGITS: Final = 9
_DAY: Final = 86_400
_LAST_YEAR: Final = 9999
_NOT_UTF_8: Final = re.compile("[\udc80-\udcff]")


def decode_object(data: bytes, *, limits: Limits) -> Any:
    """The single item in ``data``, as a JSON value. Raises InvalidDocument, LimitExceeded."""
    try:
        return cbor.decode_value(data, limits=limits)  # much faster, and stricter
    except InvalidDocument:
        return _Reader(data, limits.max_depth).whole()


def encode_object(value: Any) -> bytes:
    """``value``, as returned by ``decode_object``, as apimachinery encodes it. Raises Unrepresentable.

    Texts and names are byte strings: Go cannot decode a text string into a field of type ``[]byte``.
    """
    return cbor.SELF_DESCRIBED + encode_item(value)


def encode_item(value: Any) -> bytes:
    """Encode without the leading tag, for use within another item."""
    try:
        return cbor2.dumps(_as_written(value), canonical=True)
    except (RecursionError, UnicodeEncodeError) as error:
        raise Unrepresentable("CBOR: nested too deeply, or a surrogate that is no byte") from error


def without_bytes(value: Any) -> Any:
    """``value`` with U+FFFD for each byte that is not UTF-8, as Go serializes it in JSON.

    Raises Unrepresentable if two keys become equal.
    """
    if isinstance(value, str):
        return value if value.isascii() else _NOT_UTF_8.sub("\ufffd", value)
    if isinstance(value, list):
        return [without_bytes(item) for item in value]
    if not isinstance(value, dict):
        return value
    out = {without_bytes(name): without_bytes(item) for name, item in value.items()}
    if len(out) < len(value):
        raise Unrepresentable("names of fields differ only in bytes that are not UTF-8")
    return out


def _as_written(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-8", "surrogateescape")
        case dict():
            return {_as_written(name): _as_written(item) for name, item in value.items()}
        case list():
            return [_as_written(item) for item in value]
        case bool() | None:
            return value
        case int() if -INT64_MAX - 1 <= value <= INT64_MAX:
            return value
        case int() if abs(value) < cbor.DOUBLE_END:
            return float(value)  # as Go parses it from JSON
        case float() if math.isfinite(value):
            return value
    raise Unrepresentable(f"CBOR: {cut(repr(value))} is not of JSON, not finite, or beyond int64")


class _Reader:
    def __init__(self, data: bytes, most_depth: int) -> None:
        self._data = data
        self._at = 0
        self._depth = 0
        self._most_depth = most_depth

    def whole(self) -> Any:
        try:
            value = self._value(None)
        except IndexError as error:
            raise InvalidDocument("cbor: unexpected EOF") from error
        if self._at < len(self._data):
            left = len(self._data) - self._at
            raise InvalidDocument(f"cbor: {left} bytes of extraneous data starting at index {self._at}")
        return value

    def _value(self, encoding: Callable[[bytes], str] | None, *, is_name: bool = False) -> Any:
        major, info, argument = self._head()
        match major:
            case 0 | 1:
                number = argument if major == _UNSIGNED else -1 - argument
                return number if argument <= INT64_MAX else self._refuse(f"{number} overflows Go's int64")
            case 2:
                raw = self._string(_BYTES, info, argument)
                return raw.decode("utf-8", "surrogateescape") if encoding is None else encoding(raw)
            case 3:
                return self._text(info, argument)
            case 4 | 5:
                return self._container(major, info, argument, encoding)
            case 6:
                return self._read_tagged(argument, encoding, is_name=is_name)
        return self._other(info, argument)

    def _container(
        self, major: int, info: int, count: int, encoding: Callable[[bytes], str] | None
    ) -> list[Any] | dict[str, Any]:
        self._depth += 1
        if self._depth > self._most_depth:
            raise LimitExceeded("CBOR nested too deeply")
        items: list[Any] = []
        fields: dict[str, Any] = {}
        index = 0
        while self._goes_on(info, count, index):
            if major == _ARRAY:
                items.append(self._value(encoding))
            else:
                name = self._name(encoding, before=next(reversed(fields), ""))
                if name in fields:
                    self._refuse(f"found duplicate map key {quote_text(name)} at map element index {index}")
                fields[name] = self._value(encoding)
            index += 1
        self._depth -= 1
        return items if major == _ARRAY else fields

    def _name(self, encoding: Callable[[bytes], str] | None, *, before: str) -> str:
        name = self._value(encoding, is_name=True)
        if name is None:  # nothing is decoded into the previous name's string
            return before
        return name if isinstance(name, str) else self._refuse("a map key that is no string")

    def _read_tagged(self, tag: int, encoding: Callable[[bytes], str] | None, *, is_name: bool) -> Any:
        if tag in _BIG_NUMBERS:
            self._refuse("big numbers are not taken")
        if tag in _TIMES and self._data[self._at] >> 5 not in _TIMES[tag]:
            self._refuse(f"the tag {tag} with content of another type")
        if tag == _TIME_TEXT and not is_name:
            return self._time_of_text(self._value(None))
        if tag == _TIME_NUMBER and not is_name:
            return self._time_of_number(self._value(None))
        self._depth += 1
        if self._depth > self._most_depth:
            raise LimitExceeded("CBOR nested too deeply")
        value = self._value(_ENCODINGS.get(tag, encoding), is_name=is_name)
        self._depth -= 1
        return value

    def _time_of_text(self, text: Any) -> str:
        found = _TIME.fullmatch(text) if isinstance(text, str) else None
        try:
            if found is None:
                raise ValueError
            year, month, day, hour, minute, second = map(int, found.groups()[:6])
            if not (1 <= month <= 12 and 1 <= day <= monthrange(year or 400, month)[1]):
                raise ValueError
            if hour > 23 or minute > 59 or second > 59:
                raise ValueError
            offset = 60 * int(found[10] or 0) + int(found[11] or 0)
            if offset >= _DAY // 60 or int(found[11] or 0) > 60:
                raise ValueError
        except ValueError:
            self._refuse(f"cannot set {text!r} for time.Time")
        fraction = (found[7] or "")[:_NANOSECOND_DIGITS].rstrip("0")
        zone = f"{found[9]}{offset // 60:02d}:{offset % 60:02d}" if offset else "Z"
        clock = f"{text[:10]}T{hour:02d}:{minute:02d}:{second:02d}"
        return f"{clock}{'.' + fraction if fraction else ''}{zone}"

    def _time_of_number(self, number: Any) -> str:
        """Seconds since 1970; a double has a fraction, in nanoseconds."""
        if isinstance(number, bool) or not isinstance(number, int | float):
            self._refuse("a time that is no number")
        fraction, whole = math.modf(number) if isinstance(number, float) else (0.0, number)
        nanoseconds = int(fraction * 1e9)
        seconds = int(whole) - (nanoseconds < 0)
        days, of_day = divmod(seconds, _DAY)
        year, month, day = _date(days)
        if not 0 <= year <= _LAST_YEAR:
            self._refuse(f"{number} is beyond the times that RFC 3339 can say")
        digits = f"{nanoseconds % 10**9:09d}".rstrip("0")
        clock = f"{of_day // 3600:02d}:{of_day // 60 % 60:02d}:{of_day % 60:02d}"
        return f"{year:04d}-{month:02d}-{day:02d}T{clock}{'.' + digits if digits else ''}Z"

    def _other(self, info: int, argument: int) -> Any:
        if info in _SIMPLE:
            return _SIMPLE[info]
        if info not in _FLOATS:
            self._refuse(f"the simple value {argument} is not taken")
        number = struct.unpack(_FLOATS[info], argument.to_bytes(cbor.ARGUMENT_BYTES[info], "big"))[0]
        return number if math.isfinite(number) else self._refuse("a number that is not finite")

    def _text(self, info: int, argument: int) -> str:
        try:
            return self._string(_TEXT, info, argument).decode()
        except UnicodeDecodeError:
            return self._refuse("invalid UTF-8 string")

    def _string(self, major: int, info: int, size: int) -> bytes:
        if info != _INDEFINITE:
            start, self._at = self._at, self._at + size
            if self._at > len(self._data):
                raise InvalidDocument("cbor: unexpected EOF")
            return self._data[start : self._at]
        chunks = []
        while self._goes_on(info, 0, 0):
            inner, inner_info, inner_size = self._head()
            if inner != major or inner_info == _INDEFINITE:
                self._refuse("a chunk of another type in a string of indefinite length")
            chunks.append(self._string(major, inner_info, inner_size))
        return b"".join(chunks)

    def _goes_on(self, info: int, count: int, index: int) -> bool:
        if info != _INDEFINITE:
            return index < count
        if self._data[self._at] == _BREAK:
            self._at += 1
            return False
        return True

    def _head(self) -> tuple[int, int, int]:
        """Major type, additional information, argument (RFC 8949, section 3). Raises IndexError."""
        byte = self._data[self._at]
        self._at += 1
        major, info = byte >> 5, byte & 0x1F
        if info < 24:
            return major, info, info
        if info == _INDEFINITE and major in (_BYTES, _TEXT, _ARRAY, _MAP):
            return major, info, 0
        size = cbor.ARGUMENT_BYTES.get(info)
        if size is None:
            self._refuse(f"invalid additional information {info} for type {major}")
        start, self._at = self._at, self._at + size
        if self._at > len(self._data):
            raise IndexError
        return major, info, int.from_bytes(self._data[start : self._at], "big")

    def _refuse(self, reason: str) -> NoReturn:
        raise InvalidDocument(f"cbor: {reason}")


def _date(days: int) -> tuple[int, int, int]:
    """Year, month and day of a number of days since 1970, in the proleptic Gregorian calendar. Years start in
    March; an era has 400 of them."""
    era, of_era = divmod(days + 719_468, 146_097)
    year = (of_era - of_era // 1_460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    day = of_year - (153 * month + 2) // 5 + 1
    return era * 400 + year + (month > 9), month + 3 if month < 10 else month - 9, day
