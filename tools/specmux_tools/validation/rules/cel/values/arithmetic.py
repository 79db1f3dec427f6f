"""Arithmetic of CEL: integers of 64 bits that do not wrap, lists, texts, times (cel-go, common/types)."""

from __future__ import annotations

import math
from typing import Any, Final

from specmux_tools.validation.rules.cel.values.values import (
    INT_MAX,
    INT_MIN,
    NANOS,
    UINT_MAX,
    CelError,
    Duration,
    ListValue,
    Timestamp,
    UInt,
    no_such_overload,
)

MIN_SECONDS: Final = -62_135_596_800
"""0001-01-01T00:00:00Z."""
MAX_SECONDS: Final = 253_402_300_799
"""9999-12-31T23:59:59Z."""


_ADDERS: Final = frozenset((int, UInt, float, str, bytes, tuple, Duration, Timestamp))
_NUMBERS: Final = (int, UInt, float)


def _overload_error(operator: str, left: Any, numbers: tuple[type, ...] = _NUMBERS) -> CelError:
    """Values that know the operation, or receive calls, say nothing of it; for others the dispatcher does."""
    is_bare = type(left) in (*numbers, str, Timestamp, Duration)
    return no_such_overload() if is_bare else CelError(f"no such overload: {operator}")


def add(left: Any, right: Any) -> Any:
    kind, other = type(left), type(right)
    if kind is int and other is int:
        return check_int(left + right)
    if kind is other and kind in (str, bytes, float, tuple):
        return left + right
    if kind is UInt and other is UInt:
        return check_uint(left + right)
    if isinstance(left, ListValue):
        if not isinstance(right, tuple | ListValue):
            raise no_such_overload()
        return left.plus(right)
    if kind is tuple and isinstance(right, ListValue):
        return (*left, *right) if left else right  # a set stays one
    if kind is Duration and other is Duration:
        return check_duration(left.nanos + right.nanos)
    if kind is Duration and other is Timestamp:
        left, right = right, left
    if type(left) is Timestamp and type(right) is Duration:
        return check_timestamp(left.nanos + right.nanos, left.offset)
    raise no_such_overload() if kind in _ADDERS else _overload_error("_+_", left)


def subtract(left: Any, right: Any) -> Any:
    kind, other = type(left), type(right)
    if kind is int and other is int:
        return check_int(left - right)
    if kind is float and other is float:
        return left - right
    if kind is UInt and other is UInt:
        return check_uint(left - right)
    if kind is Duration and other is Duration:
        return check_duration(left.nanos - right.nanos)
    if kind is Timestamp and other is Timestamp:
        return check_duration(left.nanos - right.nanos)
    if kind is Timestamp and other is Duration:
        return check_timestamp(left.nanos - right.nanos, left.offset)
    raise _overload_error("_-_", left)


def multiply(left: Any, right: Any) -> Any:
    kind = type(left)
    if kind is not type(right) or kind not in (int, UInt, float):
        raise _overload_error("_*_", left)
    if kind is int:
        return check_int(left * right)
    return left * right if kind is float else check_uint(left * right)


def divide(left: Any, right: Any) -> Any:
    kind = type(left)
    if kind is not type(right) or kind not in (int, UInt, float):
        raise _overload_error("_/_", left)
    if kind is float:
        return _float_quotient(left, right)
    if right == 0:
        raise CelError("division by zero")
    quotient = abs(left) // abs(right)
    quotient = -quotient if (left < 0) != (right < 0) else quotient
    return check_int(quotient) if kind is int else UInt(quotient)


def modulo(left: Any, right: Any) -> Any:
    kind = type(left)
    if kind is not type(right) or kind not in (int, UInt):
        raise _overload_error("_%_", left, numbers=(int, UInt))
    if right == 0:
        raise CelError("modulus by zero")
    if left == INT_MIN and right == -1:
        raise CelError("integer overflow")
    rest = abs(left) % abs(right)
    return UInt(rest) if kind is UInt else -rest if left < 0 else rest


def negate(value: Any) -> Any:
    if type(value) is int:
        return check_int(-value)
    if type(value) is float:
        return -value
    if type(value) is Duration:
        return check_duration(-value.nanos)
    raise no_such_overload() if type(value) is bool else _overload_error("-_", value, numbers=())


def check_int(value: int) -> int:
    if not INT_MIN <= value <= INT_MAX:
        raise CelError("integer overflow")
    return value


def check_uint(value: int) -> UInt:
    if not 0 <= value <= UINT_MAX:
        raise CelError("unsigned integer overflow")
    return UInt(value)


def check_duration(nanos: int) -> Duration:
    if not INT_MIN <= nanos <= INT_MAX:
        raise CelError("integer overflow")
    return Duration(nanos)


def check_timestamp(nanos: int, offset: int) -> Timestamp:
    if not MIN_SECONDS <= nanos // NANOS <= MAX_SECONDS:
        raise CelError("timestamp overflow")
    return Timestamp(nanos, offset)


def _float_quotient(left: float, right: float) -> float:
    if right != 0:
        return left / right
    if left == 0 or left != left:
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1, right)
