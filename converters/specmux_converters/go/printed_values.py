"""Format decoded JSON values as Go's fmt does: ``%v`` and ``%#v``.

encoding/json decodes every number as a float, unless ``keeps_integers``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any


def plain(value: Any, *, keeps_integers: bool = False) -> str:
    """``%v``."""
    match value:
        case dict():
            return f"map[{_pairs(value, str, lambda item: plain(item, keeps_integers=keeps_integers), ' ')}]"
        case list():
            return f"[{' '.join(plain(item, keeps_integers=keeps_integers) for item in value)}]"
        case str():
            return value
        case _:
            return _scalar(value, keeps_integers)


def with_types(value: Any, *, keeps_integers: bool = False) -> str:
    """``%#v``."""

    def inner(item: Any) -> str:
        # nil has a type only within other values.
        return "interface {}(nil)" if item is None else with_types(item, keeps_integers=keeps_integers)

    match value:
        case dict():
            return f"map[string]interface {{}}{{{_pairs(value, _quote_text, inner, ', ')}}}"
        case list():
            return f"[]interface {{}}{{{', '.join(map(inner, value))}}}"
        case str():
            return _quote_text(value)
        case _:
            return _scalar(value, keeps_integers)


def _pairs(value: dict[str, Any], key: Callable[[str], str], item: Callable[[Any], str], between: str) -> str:
    return between.join(f"{key(name)}:{item(value[name])}" for name in sorted(value))


def _quote_text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _scalar(value: float | bool | None, keeps_integers: bool) -> str:
    match value:
        case None:
            return "<nil>"
        case bool():
            return "true" if value else "false"
        case int() if keeps_integers:
            return str(value)
        case _:
            return _number(float(value))


def _number(value: float) -> str:
    """The shortest text that reads back, with an exponent below 1e-4 and from 1e6 on (strconv's 'g')."""
    if value == 0 or 1e-4 <= abs(value) < 1e6:
        return repr(value).removesuffix(".0")
    mantissa, _, exponent = f"{Decimal(repr(value)).normalize():e}".partition("e")
    return f"{mantissa}e{int(exponent):+03d}"
