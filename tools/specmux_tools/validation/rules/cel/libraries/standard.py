"""Operators, size, texts and macros of the language itself (cel-go, common/stdlib/standard.go)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from specmux_tools.validation.rules.cel.checking.declarations import CelLibrary, Overload, member
from specmux_tools.validation.rules.cel.checking.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    TYPE,
    UINT,
    CelType,
    list_of,
    map_of,
    param,
)
from specmux_tools.validation.rules.cel.libraries.strings import matches
from specmux_tools.validation.rules.cel.parsing import macros
from specmux_tools.validation.rules.cel.values import arithmetic
from specmux_tools.validation.rules.cel.values.values import (
    MISSING,
    CelError,
    ListValue,
    MapValue,
    equal,
    is_same,
    no_such_overload,
)

A, B = param("A"), param("B")
_LIST, _MAP = list_of(A), map_of(A, B)
_ORDERED: Final[tuple[tuple[str, CelType, CelType], ...]] = (
    ("bool", BOOL, BOOL),
    ("int64", INT, INT),
    ("int64_double", INT, DOUBLE),
    ("int64_uint64", INT, UINT),
    ("uint64", UINT, UINT),
    ("uint64_double", UINT, DOUBLE),
    ("uint64_int64", UINT, INT),
    ("double", DOUBLE, DOUBLE),
    ("double_int64", DOUBLE, INT),
    ("double_uint64", DOUBLE, UINT),
    ("string", STRING, STRING),
    ("bytes", BYTES, BYTES),
    ("timestamp", TIMESTAMP, TIMESTAMP),
    ("duration", DURATION, DURATION),
)


def _orders(name: str) -> tuple[Overload, ...]:
    return tuple(Overload(f"{name}_{kind}", (left, right), BOOL) for kind, left, right in _ORDERED)


def _binary(
    apply: Callable[..., Any], *signatures: tuple[str, CelType, CelType, CelType]
) -> tuple[Overload, ...]:
    return tuple(Overload(name, (left, right), result, apply) for name, left, right, result in signatures)


def _not(value: Any) -> bool:
    if type(value) is not bool:
        raise no_such_overload()
    return not value


def is_in(item: Any, over: Any) -> bool:
    if isinstance(over, MapValue):
        return over.at_key(item) is not MISSING
    if not isinstance(over, tuple | ListValue):
        raise no_such_overload()
    if isinstance(over, tuple):
        return any(is_same(item, each) for each in over)
    error: CelError | None = None
    for each in over:
        try:
            if equal(each, item):
                return True
        except CelError as raised:
            error = error or raised
    if error is not None:
        raise error
    return False


def _numbers(name: str) -> tuple[tuple[str, CelType, CelType, CelType], ...]:
    return (
        (f"{name}_double", DOUBLE, DOUBLE, DOUBLE),
        (f"{name}_int64", INT, INT, INT),
        (f"{name}_uint64", UINT, UINT, UINT),
    )


_SIZED: Final = (("bytes", BYTES), ("list", _LIST), ("map", _MAP), ("string", STRING))

_FUNCTIONS: Final[dict[str, tuple[Overload, ...]]] = {
    "_?_:_": (Overload("conditional", (BOOL, A, A), A),),
    "_&&_": (Overload("logical_and", (BOOL, BOOL), BOOL),),
    "_||_": (Overload("logical_or", (BOOL, BOOL), BOOL),),
    "!_": (Overload("logical_not", (BOOL,), BOOL, _not),),
    "@not_strictly_false": (Overload("not_strictly_false", (BOOL,), BOOL, lambda value: value),),
    "_==_": (Overload("equals", (A, A), BOOL),),
    "_!=_": (Overload("not_equals", (A, A), BOOL),),
    "_+_": _binary(
        arithmetic.add,
        ("add_bytes", BYTES, BYTES, BYTES),
        *_numbers("add")[:1],
        ("add_duration_duration", DURATION, DURATION, DURATION),
        ("add_duration_timestamp", DURATION, TIMESTAMP, TIMESTAMP),
        ("add_timestamp_duration", TIMESTAMP, DURATION, TIMESTAMP),
        *_numbers("add")[1:2],
        ("add_list", _LIST, _LIST, _LIST),
        ("add_string", STRING, STRING, STRING),
        *_numbers("add")[2:],
    ),
    "_/_": _binary(arithmetic.divide, *_numbers("divide")),
    "_%_": _binary(arithmetic.modulo, *_numbers("modulo")[1:]),
    "_*_": _binary(arithmetic.multiply, *_numbers("multiply")),
    "-_": tuple(
        Overload(f"negate_{name}", (of,), of, arithmetic.negate)
        for name, of in (("double", DOUBLE), ("int64", INT))
    ),
    "_-_": _binary(
        arithmetic.subtract,
        *_numbers("subtract"),
        ("subtract_duration_duration", DURATION, DURATION, DURATION),
        ("subtract_timestamp_duration", TIMESTAMP, DURATION, TIMESTAMP),
        ("subtract_timestamp_timestamp", TIMESTAMP, TIMESTAMP, DURATION),
    ),
    "_<_": _orders("less"),
    "_<=_": _orders("less_equals"),
    "_>_": _orders("greater"),
    "_>=_": _orders("greater_equals"),
    "_[_]": (Overload("index_list", (_LIST, INT), A), Overload("index_map", (_MAP, A), B)),
    "@in": (
        Overload("in_list", (A, _LIST), BOOL, is_in),
        Overload("in_map", (A, _MAP), BOOL, is_in),
    ),
    "size": tuple(
        each
        for name, of in _SIZED
        for each in (
            Overload(f"size_{name}", (of,), INT, len),
            member(f"{name}_size", (of,), INT, len),
        )
    ),
    "contains": (member("contains_string", (STRING, STRING), BOOL, lambda text, part: part in text),),
    "endsWith": (member("ends_with_string", (STRING, STRING), BOOL, str.endswith),),
    "startsWith": (member("starts_with_string", (STRING, STRING), BOOL, str.startswith),),
    "matches": (
        Overload("matches", (STRING, STRING), BOOL, matches),
        member("matches_string", (STRING, STRING), BOOL, matches),
    ),
}

STANDARD: Final = CelLibrary(
    _FUNCTIONS,
    {
        ("has", 1, False): macros.has,
        ("all", 2, True): macros.loop_all,
        ("exists", 2, True): macros.loop_exists,
        ("exists_one", 2, True): macros.loop_exists_one,
        ("map", 2, True): macros.loop_map,
        ("map", 3, True): macros.loop_map,
        ("filter", 2, True): macros.loop_filter,
    },
    {
        **{of.name: of for of in (BOOL, BYTES, DOUBLE, DURATION, INT, NULL, STRING, TIMESTAMP, TYPE, UINT)},
        "list": list_of(DYN),
        "map": map_of(DYN, DYN),
    },
)

TWO_VARIABLES: Final = CelLibrary(
    {
        "cel.@mapInsert": (
            Overload(
                "@mapInsert_map_key_value",
                (map_of(param("K"), param("V")), param("K"), param("V")),
                map_of(param("K"), param("V")),
            ),
            Overload(
                "@mapInsert_map_map",
                (map_of(param("K"), param("V")), map_of(param("K"), param("V"))),
                map_of(param("K"), param("V")),
            ),
        )
    },
    {
        ("all", 3, True): macros.loop_all,
        ("exists", 3, True): macros.loop_exists,
        ("exists_one", 3, True): macros.loop_exists_one,
        ("existsOne", 3, True): macros.loop_exists_one,
        ("transformList", 3, True): macros.transform_list,
        ("transformList", 4, True): macros.transform_list,
        ("transformMap", 3, True): macros.transform_map,
        ("transformMap", 4, True): macros.transform_map,
        ("transformMapEntry", 3, True): macros.transform_map_entry,
        ("transformMapEntry", 4, True): macros.transform_map_entry,
    },
)
