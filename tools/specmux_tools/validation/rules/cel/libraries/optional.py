"""Optional values (cel-go, cel/library.go)."""

from __future__ import annotations

from typing import Any, Final

from specmux_tools.validation.rules.cel.checking.declarations import CelLibrary, Overload, member
from specmux_tools.validation.rules.cel.checking.types import (
    BOOL,
    DYN,
    INT,
    STRING,
    list_of,
    map_of,
    optional_of,
    param,
)
from specmux_tools.validation.rules.cel.evaluation.qualifiers import at
from specmux_tools.validation.rules.cel.parsing import macros
from specmux_tools.validation.rules.cel.values.values import (
    MISSING,
    NONE,
    CelError,
    Duration,
    LiteralMap,
    Optional,
    Timestamp,
    UInt,
    print_value,
)

_K, _V = param("K"), param("V")
_OPTIONAL, _LIST, _MAP = optional_of(_V), list_of(_V), map_of(_K, _V)
_YEAR_ONE: Final = -62_135_596_800_000_000_000
_ZEROES: Final = (bool, int, UInt, float, str, bytes, tuple, LiteralMap, type(None))


def _is_zero(value: Any) -> bool:
    """Lists and maps of a document never are."""
    if type(value) is Duration:
        return value.nanos == 0
    if type(value) is Timestamp:
        return value.nanos == _YEAR_ONE
    return type(value) in _ZEROES and not value


def _first(value: Any) -> Optional:
    return Optional(at(value, 0)) if len(value) else NONE


def _last(value: Any) -> Optional:
    return Optional(at(value, len(value) - 1)) if len(value) else NONE


def _unwrap(value: Any) -> tuple[Any, ...]:
    found = []
    for each in value:
        if type(each) is not Optional:
            raise CelError(f"value {print_value(each)} is not optional")
        if each.value is not MISSING:
            found.append(each.value)
    return tuple(found)


OPTIONAL: Final = CelLibrary(
    {
        "optional.of": (Overload("optional_of", (_V,), _OPTIONAL, Optional),),
        "optional.ofNonZeroValue": (
            Overload(
                "optional_ofNonZeroValue",
                (_V,),
                _OPTIONAL,
                lambda value: NONE if _is_zero(value) else Optional(value),
            ),
        ),
        "optional.none": (Overload("optional_none", (), _OPTIONAL, lambda: NONE),),
        "value": (member("optional_value", (_OPTIONAL,), _V, Optional.get),),
        "hasValue": (
            member("optional_hasValue", (_OPTIONAL,), BOOL, lambda value: value.value is not MISSING),
        ),
        "or": (member("optional_or_optional", (_OPTIONAL, _OPTIONAL), _OPTIONAL),),
        "orValue": (member("optional_orValue_value", (_OPTIONAL, _V), _V),),
        "_?._": (Overload("select_optional_field", (DYN, STRING), _OPTIONAL),),
        "_[?_]": (
            Overload("list_optindex_optional_int", (_LIST, INT), _OPTIONAL),
            Overload("optional_list_optindex_optional_int", (optional_of(_LIST), INT), _OPTIONAL),
            Overload("map_optindex_optional_value", (_MAP, _K), _OPTIONAL),
            Overload("optional_map_optindex_optional_value", (optional_of(_MAP), _K), _OPTIONAL),
        ),
        "_[_]": (
            Overload("optional_list_index_int", (optional_of(_LIST), INT), _OPTIONAL),
            Overload("optional_map_index_value", (optional_of(_MAP), _K), _OPTIONAL),
        ),
    },
    {("optMap", 2, True): macros.opt_map, ("optFlatMap", 2, True): macros.opt_flat_map},
    {"optional_type": optional_of(DYN)},
)

OPTIONAL_LISTS: Final = CelLibrary(
    {
        "first": (member("list_first", (_LIST,), _OPTIONAL, _first),),
        "last": (member("list_last", (_LIST,), _OPTIONAL, _last),),
        "optional.unwrap": (Overload("optional_unwrap", (list_of(_OPTIONAL),), _LIST, _unwrap),),
        "unwrapOpt": (member("optional_unwrapOpt", (list_of(_OPTIONAL),), _LIST, _unwrap),),
    }
)
