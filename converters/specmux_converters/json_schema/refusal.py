"""Determine in bounded time whether a schema refuses a value.

Only for defaults of custom resources. Patterns are not evaluated: in Python they may take exponential time.
So there are three results: True for accepted, False for refused, None for unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from specmux_converters.json_values import mapping

Verdict: TypeAlias = bool | None

_TYPES: Final[Mapping[str, tuple[type[Any], ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
_SIZES: Final = ((str, "Length"), (list, "Items"), (dict, "Properties"))


def refuses(schema: Any, value: Any) -> bool:
    """Whether ``value`` is definitely invalid under an OpenAPI schema."""
    return _accepts(schema, value) is False


def _accepts(schema: Any, value: Any) -> Verdict:
    return _all(_verdicts(schema, value)) if isinstance(schema, dict) else True


def _all(verdicts: Iterable[Verdict]) -> Verdict:
    """Of a conjunction: one refusal decides."""
    known: Verdict = True
    for verdict in verdicts:
        if verdict is False:
            return False
        known = known and verdict
    return known


def _not(verdict: Verdict) -> Verdict:
    return None if verdict is None else not verdict


def _verdicts(schema: Mapping[str, Any], value: Any) -> Iterator[Verdict]:
    yield _is_of_type(schema, value)
    if "enum" in schema:
        yield value in schema["enum"]
    yield _is_within(schema, value)
    if isinstance(value, str) and ("pattern" in schema or "format" in schema):
        yield None
    yield from _members(schema, value)
    yield from _combinators(schema, value)


def _is_of_type(schema: Mapping[str, Any], value: Any) -> bool:
    if value is None:
        return "type" not in schema or schema.get("nullable") is True
    wanted = _TYPES.get(schema.get("type", ""))
    if wanted is None:
        return True
    if isinstance(value, bool):
        return bool in wanted
    return isinstance(value, wanted) or (isinstance(value, float) and value.is_integer() and int in wanted)


def _is_within(schema: Mapping[str, Any], value: Any) -> bool:
    for kind, what in _SIZES:
        if isinstance(value, kind):
            return _is_between(schema, what, len(value))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _is_between(schema, "imum", value)
    return True


def _is_between(schema: Mapping[str, Any], what: str, size: float) -> bool:
    least, most = schema.get(f"min{what}"), schema.get(f"max{what}")
    is_low = isinstance(least, int | float) and (
        size < least or (size == least and schema.get("exclusiveMinimum") is True)
    )
    is_high = isinstance(most, int | float) and (
        size > most or (size == most and schema.get("exclusiveMaximum") is True)
    )
    return not is_low and not is_high


def _members(schema: Mapping[str, Any], value: Any) -> Iterator[Verdict]:
    if isinstance(value, list):
        for each in value:
            yield _accepts(schema.get("items"), each)
    if not isinstance(value, dict):
        return
    known = mapping(schema.get("properties"))
    for name in schema.get("required") or ():
        yield name in value
    for name, each in value.items():
        yield _accepts(known.get(name, schema.get("additionalProperties")), each)


def _combinators(schema: Mapping[str, Any], value: Any) -> Iterator[Verdict]:
    for key in ("allOf", "anyOf", "oneOf"):
        branches = schema.get(key)
        if isinstance(branches, list) and branches:
            verdicts = [_accepts(each, value) for each in branches]
            yield {"allOf": _all, "anyOf": _any, "oneOf": _one}[key](verdicts)
    if isinstance(schema.get("not"), dict):
        yield _not(_accepts(schema["not"], value))


def _any(verdicts: list[Verdict]) -> Verdict:
    return _not(_all(map(_not, verdicts)))


def _one(verdicts: list[Verdict]) -> Verdict:
    if verdicts.count(True) > 1:
        return False
    return None if None in verdicts else verdicts.count(True) == 1
