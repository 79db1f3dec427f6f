"""What a plain scalar is: by the core schema of YAML 1.2 (yaml.org/spec/1.2.2, 10.3.2), or to kubectl.

kubectl and Helm read YAML 1.1 as go-yaml v2 does (sigs.k8s.io/yaml, goyaml.v2/resolve.go): ``yes``, ``on``
and ``y`` are booleans and ``0644`` is 420, as values and as keys. Two things of YAML 1.1 it has not: numbers
to the base of 60, and timestamps, which it hands on as text.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from math import isfinite
from typing import Any, Final, TypeAlias

from specmux_converters.go.scalars import read_plain

Schema: TypeAlias = Callable[[str], Any]
"""A plain scalar's text to its value. Raises ValueError, with the reason, for one that JSON does not have."""

_WORDS: Final = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_WORDS_1_1: Final = {
    **_WORDS,
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF"), False),
}
_NUMERIC: Final = frozenset("+-.0123456789")
"""What numbers begin with."""
_INTEGER: Final = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NO_NUMBER: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_ONLY_IN_V3: Final = re.compile(r"0_*o_*[-+]")
"""A number to go-yaml v3, whose rules are v2's otherwise."""

_DOUBLE_DIGITS: Final = 300
"""Characters of an integer: a double takes one more digit or two, and Python's int() takes quadratic time."""

_NO_EXPONENT: Final = range(-4, 6)
"""The powers of ten that Go writes without an exponent."""


def yaml_1_2(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMERIC:
        return text
    if _INTEGER.fullmatch(text):
        if len(text) > _DOUBLE_DIGITS:
            raise ValueError("the number is infinite as a double")
        number = int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))
        return number if -(2**63) <= number < 2**64 else _finite(float(number))
    if _FLOAT.fullmatch(text):
        return _finite(float(text))
    if _NO_NUMBER.fullmatch(text):
        raise ValueError("JSON has no such number")
    return text


def yaml_1_1(text: str) -> Any:
    """As kubectl, Helm and whatever else uses sigs.k8s.io/yaml."""
    if text in _WORDS_1_1:
        return _WORDS_1_1[text]
    if text[0] not in _NUMERIC:
        return text
    if len(text) > _DOUBLE_DIGITS or _ONLY_IN_V3.match(text):
        return text
    value = read_plain(text)
    if isinstance(value, float) and not isfinite(value):
        raise ValueError("JSON has no such number")
    return value


def key_1_1(text: str) -> str:
    """The name in JSON that a plain scalar is as a key. Raises ValueError where it is none."""
    if _NO_NUMBER.fullmatch(text):
        return text.lower().removeprefix("+")
    value = yaml_1_1(text)
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() if -(2**63) <= value < 2**63:
            return str(value)
        case float():
            return _single(value)
        case _:
            raise ValueError("a key must be text, a number or a boolean")


def _single(value: float) -> str:
    """As few digits as tell it from others in single precision (Go's strconv.FormatFloat, 'g', -1, 32)."""
    try:
        (wanted,) = struct.unpack("f", struct.pack("f", value))
    except OverflowError:
        wanted = value * float("inf")
    if not isfinite(wanted):
        return "-.inf" if value < 0 else ".inf"
    shortest = (f"{wanted:.{digits}e}" for digits in range(9))
    written = next(
        text for text in shortest if struct.unpack("f", struct.pack("f", float(text)))[0] == wanted
    )
    mantissa, _, exponent = written.partition("e")
    decimals = len(mantissa.partition(".")[2]) - int(exponent)
    return f"{float(written):.{max(decimals, 0)}f}" if int(exponent) in _NO_EXPONENT else written


def _finite(number: float) -> float:
    if not isfinite(number):
        raise ValueError("the number is infinite as a double")
    return number
