"""``'…'.format([…])``: clauses, and values as text (cel-go, ext/formatting.go).

Doubles are written as in en-US.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Final

from specmux_converters.go.text import quote_text
from specmux_tools.validation.rules.cel.evaluation.qualifiers import at
from specmux_tools.validation.rules.cel.libraries.conversions import TEXTS, double_of_text
from specmux_tools.validation.rules.cel.values.values import CelError, bounded_int, type_name

_PRECISION: Final = 6
MOST_PRECISION: Final = 1_000
_SUPERSCRIPTS: Final = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_SPECIAL: Final = ("NaN", "Infinity", "-Infinity")
_LITERALS: Final = {"google.protobuf.Timestamp": "timestamp", "google.protobuf.Duration": "duration"}

WANTED: Final[dict[str, tuple[frozenset[str], str]]] = {
    "s": (
        frozenset(("list", "map", "null_type", *TEXTS)),
        "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, "
        "durations, and timestamps",
    ),
    "d": (frozenset(("int", "uint")), "decimal clause can only be used on integers"),
    "f": (frozenset(("double",)), "fixed-point clause can only be used on doubles"),
    "e": (frozenset(("double",)), "scientific clause can only be used on doubles"),
    "b": (frozenset(("int", "uint", "bool")), "only integers and bools can be formatted as binary"),
    "x": (
        frozenset(("int", "uint", "string", "bytes")),
        "only integers, byte buffers, and strings can be formatted as hex",
    ),
    "o": (frozenset(("int", "uint")), "octal clause can only be used on integers"),
}
"""The types that each clause takes, and its message for others."""


class BadClause(Exception):
    """A clause that cannot be read, or more clauses than arguments."""


def clauses(text: str, count: int) -> Iterator[str | tuple[str, int | None]]:
    """Literal parts, and clauses with their precision. ``count`` is of arguments. Raises BadClause."""
    at = used = 0
    while at < len(text):
        if text[at] != "%":
            end = text.find("%", at)
            end = len(text) if end < 0 else end
            yield text[at:end]
            at = end
            continue
        if text.startswith("%%", at):
            yield "%"
            at += 2
            continue
        if at + 1 >= len(text):
            raise BadClause("unexpected end of string")
        if used >= count:
            raise BadClause(f"index {used} out of range")
        used += 1
        clause, precision, at = _clause(text, at + 1)
        yield clause, precision


def _clause(text: str, at: int) -> tuple[str, int | None, int]:
    precision = None
    if text[at] == ".":
        end = at + 1
        while end < len(text) and "0" <= text[end] <= "9":
            end += 1
        if end >= len(text):
            raise BadClause(
                "could not parse formatting clause: error while parsing precision: "
                "could not find end of precision specifier"
            )
        if end == at + 1:
            raise BadClause(
                "could not parse formatting clause: error while parsing precision: error while converting "
                'precision to integer: strconv.Atoi: parsing "": invalid syntax'
            )
        precision, at = bounded_int(text[at + 1 : end]), end
        if precision is None or precision > MOST_PRECISION:
            raise BadClause(f"could not parse formatting clause: a precision of more than {MOST_PRECISION}")
    if text[at].lower() not in WANTED or (text[at] != "X" and text[at].isupper()):
        mark = text[at].encode()[:1].decode("latin-1")
        raise BadClause(f'could not parse formatting clause: unrecognized formatting clause "{mark}"')
    return text[at], precision, at + 1


def format_text(text: str, arguments: Any) -> str:
    found: list[str] = []
    used = 0
    try:
        for part in clauses(text, len(arguments)):
            if isinstance(part, str):
                found.append(part)
                continue
            clause, precision = part
            value = at(arguments, used)
            used += 1
            found.append(_write(clause, precision, value))
    except BadClause as bad:
        raise CelError(str(bad)) from bad
    return "".join(found)


def _write(clause: str, precision: int | None, value: Any) -> str:
    kinds, fault = WANTED[clause.lower()]
    kind = type_name(value)
    if kind not in kinds and not (clause in "fe" and value in _SPECIAL):
        raise CelError(f"error during formatting: {fault}, was given {kind}")
    return _WRITERS[clause](value, precision)


def as_text(value: Any, _: int | None = None) -> str:
    kind = type_name(value)
    if kind == "list":
        return f"[{', '.join(map(_member, value))}]"
    if kind == "map":
        pairs = sorted((_key(key), _member(value.at_key(key))) for key in value)
        return "{" + ", ".join(f"{key}:{item}" for key, item in pairs) + "}"
    try:
        return "null" if value is None else TEXTS[kind](value)
    except CelError as error:
        raise CelError(f'error during formatting: could not convert argument "{error}" to string') from error


def _key(key: Any) -> str:
    kind = type_name(key)
    if kind not in ("string", "bool", "int", "uint"):
        raise CelError(f"error during formatting: no formatting function for map key of type {kind}")
    return _member(key)


def _member(value: Any) -> str:
    """A member of a list or a map, as CEL writes it."""
    kind = type_name(value)
    if kind == "string":
        return quote_text(value)
    if kind == "bytes":
        return f"b{quote_text(TEXTS[kind](value))}"
    if kind == "double":
        if math.isinf(value) or math.isnan(value):
            return quote_text("NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf")
        return f"{value:.{_PRECISION}f}"
    if kind in _LITERALS:
        return f"{_LITERALS[kind]}({quote_text(TEXTS[kind](value))})"
    if kind not in WANTED["s"][0]:
        raise CelError(f"error during formatting: no formatting function for {kind}")
    return as_text(value)


def _double(value: Any) -> float | str:
    """A text where it is no number to write in digits."""
    number = (double_of_text(value) if isinstance(value, str) else value) + 0.0  # a zero has no sign
    if math.isnan(number):
        return "NaN"
    return ("∞" if number > 0 else "-∞") if math.isinf(number) else number


def _fix(value: Any, precision: int | None) -> str:
    number = _double(value)
    return (
        number if isinstance(number, str) else f"{number:,.{_PRECISION if precision is None else precision}f}"
    )


def _scientific(value: Any, _: int | None) -> str:
    """Always of six digits: the precision is read and not used."""
    number = _double(value)
    if isinstance(number, str):
        return number.rjust(_PRECISION)  # six is taken for a width, too
    mantissa, exponent = f"{number:.{_PRECISION}e}".split("e")
    sign = "-" if exponent[0] == "-" else ""
    return f"{mantissa}×10{(sign + exponent[1:]).translate(_SUPERSCRIPTS)}"


def _hex(value: Any, _: int | None) -> str:
    if isinstance(value, str | bytes):
        return (value.encode() if isinstance(value, str) else value).hex()
    return f"{value:x}"


_WRITERS: Final[dict[str, Callable[[Any, int | None], str]]] = {
    "s": as_text,
    "d": lambda value, _: str(value),
    "f": _fix,
    "e": _scientific,
    "b": lambda value, _: f"{int(value):b}",
    "x": _hex,
    "X": lambda value, _: _hex(value, None).upper(),
    "o": lambda value, _: f"{value:o}",
}
