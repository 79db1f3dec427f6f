"""Format values as Go prints them: quoted strings, numbers, JSON, Go syntax. Messages of apiservers consist
of these."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Final

import orjson

from specmux_converters.lazy.patterns import pattern

if TYPE_CHECKING:  # imported for the few numbers that need it
    from decimal import Decimal

INT64_MAX: Final = 2**63 - 1

_SHORT: Final = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}
_PLAIN: Final = pattern(r"[ !#-\[\]-~]*")
_QUADS: Final = "".join(map(chr, range(0x2000, 0x200B)))
SPACES: Final = f"\t\n\v\f\r \x85\xa0\u1680{_QUADS}\u2028\u2029\u202f\u205f\u3000"
"""The characters for which unicode.IsSpace is true."""
_HTML: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


class Number(float):
    """A number with its original text: ``1.0``, ``1e3``, or an integer beyond 64 bits."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> Number:
        number = super().__new__(cls, text)
        number.text = text
        return number


def size_of(text: str) -> int:
    """len of the string in Go, in bytes; a lone surrogate counts as U+FFFD, which replaces it in Go."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def quote_text(text: str) -> str:
    """strconv.Quote; the output of Go's ``%q``."""
    if _PLAIN.fullmatch(text):
        return f'"{text}"'
    return '"' + "".join(_SHORT.get(character) or _escape_character(character) for character in text) + '"'


def number_text(value: Any) -> str:
    """A number as JSON: its original text, else as in Go's encoding/json."""
    if isinstance(value, Number):
        return value.text
    return float_text(value) if isinstance(value, float) else str(value)


def float_text(value: float) -> str:
    """A finite float as in Go's encoding/json: plain digits from 1e-6 up to 1e21."""
    if value.is_integer() and abs(value) < 1e16:  # larger ones have omitted digits, which are zeros
        return "-0" if value == 0 and math.copysign(1, value) < 0 else str(int(value))
    text = repr(float(value))
    mantissa, _, exponent = text.partition("e")
    if not exponent:
        return text
    if 1e-6 <= abs(value) < 1e21:
        return f"{_decimal(text):f}"
    return f"{mantissa}e{exponent[0]}{exponent[1:].lstrip('0')}"


def general_text(value: float) -> str:
    """A float as by Go's ``%v``: with an exponent of at least two digits below 1e-4 and from 1e6."""
    if math.isinf(value) or math.isnan(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    text = repr(float(value))
    if value == 0 or 1e-4 <= abs(value) < 1e6:
        return text.removesuffix(".0")
    mantissa, _, exponent = f"{_decimal(text).normalize():e}".partition("e")
    return f"{mantissa}e{int(exponent):+03d}"


def _decimal(text: str) -> Decimal:
    from decimal import Decimal

    return Decimal(text)


def json_text(value: Any) -> str:
    """A value as by Go's json.Marshal: keys sorted, ``<``, ``>`` and ``&`` escaped, no white space."""
    match value:
        case dict():
            return "{" + ",".join(f"{json_text(key)}:{json_text(value[key])}" for key in sorted(value)) + "}"
        case list():
            return "[" + ",".join(map(json_text, value)) + "]"
        case str():
            return _json_string(value)
        case bool() | None:
            return {True: "true", False: "false", None: "null"}[value]
        case float() if not isinstance(value, Number):
            return float_text(value)
        case Number():
            return float_text(float(value))
        case _:
            return str(value)


def format_value(value: Any, *, keeps_integers: bool = False) -> str:
    """A decoded JSON value as by ``%v``. encoding/json decodes every number as a float, unless
    ``keeps_integers``."""
    match value:
        case dict():
            pairs = (
                f"{key}:{format_value(value[key], keeps_integers=keeps_integers)}" for key in sorted(value)
            )
            return f"map[{' '.join(pairs)}]"
        case list():
            return f"[{' '.join(format_value(item, keeps_integers=keeps_integers) for item in value)}]"
        case str():
            return value
        case None:
            return "<nil>"
        case bool():
            return "true" if value else "false"
        case int() if keeps_integers:
            return str(value)
        case _:
            return general_text(float(value))


def format_typed(value: Any, *, keeps_integers: bool = False) -> str:
    """A decoded JSON value as by ``%#v``."""

    def inner(item: Any) -> str:
        # nil has a type only within other values.
        return "interface {}(nil)" if item is None else format_typed(item, keeps_integers=keeps_integers)

    match value:
        case dict():
            pairs = (f"{quote_text(key)}:{inner(value[key])}" for key in sorted(value))
            return f"map[string]interface {{}}{{{', '.join(pairs)}}}"
        case list():
            return f"[]interface {{}}{{{', '.join(map(inner, value))}}}"
        case str():
            return quote_text(value)
        case _:
            return format_value(value, keeps_integers=keeps_integers)


def go_syntax(value: Any) -> str:
    """A decoded YAML value as by ``%#v``."""
    match value:
        case dict():
            inside = ", ".join(f"{_inside(key)}:{_inside(item)}" for key, item in value.items())
            return f"map[interface {{}}]interface {{}}{{{inside}}}"
        case list():
            return f"[]interface {{}}{{{', '.join(map(_inside, value))}}}"
        case str():
            return quote_text(value)
        case bool():
            return "true" if value else "false"
        case None:
            return "<nil>"
        case Number() if len(value.text) <= 20 and value.text.isdecimal() and int(value.text) < 2**64:
            return go_syntax(int(value.text))
        case float():
            return general_text(value)
        case int() if value > INT64_MAX:
            return f"{value:#x}"
        case _:
            return str(value)


def _inside(value: Any) -> str:
    """Within a map or a list, where nil has a type."""
    return "interface {}(nil)" if value is None else go_syntax(value)


def _escape_character(character: str) -> str:
    if character.isprintable() or character == " ":
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    if 0xD800 <= code <= 0xDFFF:
        return "\ufffd"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_string(text: str) -> str:
    text = re.sub("[\ud800-\udfff]", "\ufffd", text)
    written = orjson.dumps(text).decode()
    for character, escape in _HTML.items():
        if character in written:
            written = written.replace(character, escape)
    return written
