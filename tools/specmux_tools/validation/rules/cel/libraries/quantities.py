"""Quantities (apiserver, pkg/cel/library/quantity.go; apimachinery, pkg/api/resource)."""

from __future__ import annotations

import math
from typing import Any, Final

from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.validation.rules.cel.checking.declarations import CelLibrary, Overload, member, orders
from specmux_tools.validation.rules.cel.checking.types import BOOL, DOUBLE, INT, STRING, struct
from specmux_tools.validation.rules.cel.values.values import (
    INT_MAX,
    INT_MIN,
    CelError,
    Opaque,
    no_such_overload,
    takes,
)
from specmux_tools.validation.schema.scalars import BadQuantity, split_quantity

QUANTITY: Final = struct("kubernetes.Quantity")

_NUMBER: Final = "unable to parse numeric part of quantity"
_NANO: Final = -9
_MOST_DIGITS: Final = 18
_MOST_SCALE: Final = 2_000
"""The largest scale of a number that is written out: beyond it only its size matters."""


@dataclass(frozen=True, slots=True)
class QuantityValue(Opaque):
    """``value`` times ten to the ``scale``. ``is_small``: kept in 64 bits, as Go does where it can."""

    value: int
    scale: int
    is_small: bool
    is_computed: bool = False
    type_name = QUANTITY.name

    def same(self, other: Any) -> bool:
        if not isinstance(other, QuantityValue) or other.is_computed:
            # Go's library compares with a value, and a sum is a pointer to one.
            raise no_such_overload()
        return compare_quantities(self, other) == 0


def read_quantity(text: str) -> QuantityValue:
    """Raises CelError, in Go's words."""
    try:
        sign, whole, fraction, base, exponent = split_quantity(text)
    except BadQuantity as bad:
        raise CelError(str(bad)) from bad
    digits = whole.lstrip("0")
    if len(digits) + len(fraction) > _MOST_SCALE:
        raise CelError(_NUMBER)
    small = _small(sign == "-", digits, fraction, base, exponent)
    if small is not None:
        return small
    if not whole and not fraction:
        raise CelError(_NUMBER)
    return _large(sign == "-", int(digits + fraction or 0), len(fraction), base, exponent)


def _small(is_negative: bool, whole: str, fraction: str, base: int, exponent: int) -> QuantityValue | None:
    """None where 64 bits may not do."""
    mantissa, scale = 1, exponent
    if base == 10:
        room = _MOST_DIGITS - len(whole) - len(fraction)
    elif fraction:
        return None
    else:
        mantissa, scale = 1 << exponent, 0
        room = 15 - len(whole) - int(exponent * 3 / 10) - 1
    scale -= len(fraction)
    if room < 0 or scale < _NANO:
        return None
    digits = whole + fraction
    value = int(digits or 0) * mantissa
    if value > INT_MAX:
        return None
    return QuantityValue(-value if is_negative else value, scale, True)


def _large(is_negative: bool, digits: int, places: int, base: int, exponent: int) -> QuantityValue:
    """Rounded up to nanos; of a binary suffix no more than 64 bits."""
    value, scale = digits, -places
    if base == 10:
        scale += max(-_MOST_SCALE, min(exponent, _MOST_SCALE))
    else:
        value <<= exponent
    if scale < _NANO:
        value, scale = -(-value // 10 ** (_NANO - scale)), _NANO
    if base == 2 and value > INT_MAX * 10**-scale:
        value, scale = INT_MAX, 0
    return QuantityValue(-value if is_negative else value, scale, False)


def compare_quantities(left: QuantityValue, right: QuantityValue) -> int:
    one, other = _nanos(left), _nanos(right)
    return (one > other) - (one < other)


def _nanos(value: QuantityValue) -> int:
    return int(value.value * 10 ** (min(value.scale, _MOST_SCALE) - _NANO))


def _add(left: QuantityValue, right: QuantityValue) -> QuantityValue:
    if left.is_small and right.is_small:
        if right.value == 0:
            return QuantityValue(left.value, left.scale, True, True)
        if left.value == 0:
            return QuantityValue(right.value, right.scale, True, True)
    scale = min(left.scale, right.scale)
    parts = [each.value * 10 ** min(each.scale - scale, _MOST_SCALE) for each in (left, right)]
    total = sum(parts)
    fits = all(INT_MIN <= each <= INT_MAX for each in (*parts, total))
    return QuantityValue(total, scale, left.is_small and right.is_small and fits, True)


def _negate(value: QuantityValue) -> QuantityValue:
    return QuantityValue(-value.value, value.scale, value.is_small)


def _of_int(value: int) -> QuantityValue:
    return QuantityValue(value, 0, True)


def _integer(value: QuantityValue) -> int | None:
    if not value.is_small or value.scale < 0 or value.scale > _MOST_DIGITS + 1:
        return 0 if value.is_small and value.value == 0 and value.scale > 0 else None
    found = value.value * 10**value.scale
    return found if INT_MIN <= found <= INT_MAX else None


def _as_integer(value: QuantityValue) -> int:
    found = _integer(value)
    if found is None:
        raise CelError("cannot convert value to integer")
    return found


def _as_float(value: QuantityValue) -> float:
    try:
        base = float(value.value)
    except OverflowError:
        base = math.inf if value.value > 0 else -math.inf
    if value.scale == 0:
        return base
    return base * (math.inf if value.scale > 308 else float(f"1e{value.scale}"))


_TWO: Final = (QUANTITY, QUANTITY)
QUANTITIES: Final = CelLibrary(
    {
        "quantity": (Overload("string_to_quantity", (STRING,), QUANTITY, read_quantity),),
        "isQuantity": (Overload("is_quantity_string", (STRING,), BOOL, takes(read_quantity)),),
        "sign": (
            Overload("quantity_sign", (QUANTITY,), INT, lambda value: (value.value > 0) - (value.value < 0)),
        ),
        **orders("quantity", QUANTITY, compare_quantities),
        "asApproximateFloat": (member("quantity_get_float", (QUANTITY,), DOUBLE, _as_float),),
        "asInteger": (member("quantity_get_int", (QUANTITY,), INT, _as_integer),),
        "isInteger": (
            member("quantity_is_integer", (QUANTITY,), BOOL, lambda value: _integer(value) is not None),
        ),
        "add": (
            member("quantity_add", _TWO, QUANTITY, _add),
            member(
                "quantity_add_int",
                (QUANTITY, INT),
                QUANTITY,
                lambda left, right: _add(left, _of_int(right)),
            ),
        ),
        "sub": (
            member("quantity_sub", _TWO, QUANTITY, lambda left, right: _add(left, _negate(right))),
            member(
                "quantity_sub_int",
                (QUANTITY, INT),
                QUANTITY,
                lambda left, right: _add(left, _of_int(-right)),
            ),
        ),
    }
)
