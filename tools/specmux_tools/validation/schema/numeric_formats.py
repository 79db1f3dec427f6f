"""Numbers of custom resources: whole numbers, and numeric formats.

A value and each of its bounds must conform to type and format (kube-openapi, pkg/validation/validate:
values.go, IsValueValidAgainstRange).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from struct import pack
from typing import Any, Final, TypeAlias

from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.releases import NEARLY_WHOLE

_FORMATS: Final[Mapping[str, tuple[str, ...]]] = {
    "integer": ("int32", "int64"),
    "number": ("float", "double"),
}


@dataclass(frozen=True, slots=True)
class NumericType:
    """``format``: one of the type's; "" for its widest."""

    name: str
    format: str

    def fault(self, value: int | float, what: str, place: str) -> str | None:
        """The fault of a value out of range; ``what`` it is: "Checked", "Maximum boundary"."""
        if self.name == "integer":
            whole = value if isinstance(value, int) else _whole(value)
            bits = 31 if self.format == "int32" else 63
            fits = whole is not None and -(1 << bits) <= whole < 1 << bits
        else:
            fits = self.format != "float" or _is_float(value)
        if fits:
            return None
        form = f"with format {self.format}" if self.format else "(default format)"
        return f"{what} value must be of type {self.name} {form} in {place}"


IsWhole: TypeAlias = Callable[[float], bool]
_MOST_WHOLE: Final = 2.0**53 - 1
_NEAR: Final = 1e-9


def whole_numbers(minor: int) -> IsWhole:
    return is_whole if NEARLY_WHOLE.is_in(minor) else was_whole


def is_whole(value: float) -> bool:
    """An integer within a double's precision, or very near to one (swag v0.27, IsFloat64AJSONInteger)."""
    if not abs(value) <= _MOST_WHOLE:
        return False
    nearest = round(value)
    return value == nearest or abs(value - nearest) < _NEAR * abs(nearest)


def was_whole(value: float) -> bool:
    """``is_whole`` until swag v0.23: near only from above, and never below zero."""
    if not abs(value) <= _MOST_WHOLE:
        return False
    nearest = int(value)
    return value == nearest or (nearest > 0 and (value - nearest) / (value + nearest) < _NEAR)


def numeric_type(schema: Mapping[str, Any]) -> NumericType | None:
    """None if the range of the number is not restricted, as always before ``NUMERIC_FORMATS``."""
    kind, form = schema.get("type"), numeric_format(schema)
    return NumericType(kind, form) if kind == "integer" or (kind == "number" and form == "float") else None


def numeric_format(schema: Mapping[str, Any]) -> str:
    """The format, if it belongs to the type."""
    form = schema.get("format")
    return form if isinstance(form, str) and form in _FORMATS.get(str(schema.get("type")), ()) else ""


def _whole(value: float) -> int | None:
    """The integer of its shortest digits: -2.0**63 becomes -9223372036854776000."""
    return int(Decimal(repr(value))) if value.is_integer() else None


def _is_float(value: int | float) -> bool:
    try:
        pack("<f", value)
    except OverflowError:
        return False
    return True
