"""Schemas of custom resources: what an apiserver's pruning, defaulting and validation accept.

Null counts as absent if the field is neither nullable nor required, an absent field has its default, and
unknown fields are dropped, which strict clients report. Source: apiextensions-apiserver, pkg/apiserver/schema
(pruning, defaulting) and pkg/apiserver/validation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from specmux_converters.crd.keywords import DEFINED_FIELDS
from specmux_converters.json_schema.components import Components
from specmux_converters.json_schema.forms import Mode, Schema
from specmux_converters.json_schema.keywords import (
    COMBINATORS,
    NULL,
    STRFMT_BASE64,
    combinators_of,
    format_of,
    plain_keywords,
    with_null,
    with_unions,
)
from specmux_converters.json_schema.typed import TypedConverter
from specmux_converters.json_values import mapping, within
from specmux_converters.references import component_of

# A field with a default is always present. So a branch need not require it, and a branch that refuses the
# default must require it: otherwise an absent field, which stands for the default, would pass.

# Only for defaults of custom resources. Patterns are not evaluated: in Python they may take exponential
# time. So there are three results: True for accepted, False for refused, None for unknown.

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
    """The verdict of a conjunction: one refusal decides."""
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


def branches(schema: Mapping[str, Any], mode: Mode, beside: Mapping[str, Any] | None = None) -> Schema:
    """The combinators of ``schema``; ``beside`` has the fields that they refer to."""
    beside = schema if beside is None else beside
    written: Schema = {}
    for key in combinators_of(mode):
        value = schema.get(key)
        if isinstance(value, list) and value:
            written[key] = [_branch(each, mode, beside) for each in value]
        elif key == "not" and isinstance(value, dict):
            written[key] = _branch(value, mode, beside)
    return written


def required_beside(schema: Mapping[str, Any], beside: Mapping[str, Any]) -> list[str]:
    """The fields required by ``schema``, except those with a default."""
    required = schema.get("required")
    fields = within(beside, "properties")
    return [name for name in required or () if isinstance(name, str) and not _default(fields, name)]


def _branch(schema: Any, mode: Mode, beside: Mapping[str, Any]) -> Schema:
    if not isinstance(schema, dict):
        return {}
    written = plain_keywords(schema)
    if isinstance(schema.get("type"), str):
        written["type"] = schema["type"]
    written |= format_of(schema, base64=STRFMT_BASE64)
    if isinstance(schema.get("enum"), list):
        written["enum"] = schema["enum"]
    properties = within(schema, "properties")
    fields = within(beside, "properties")
    if properties:
        written["properties"] = {
            name: _branch(value, mode, within(fields, name)) for name, value in properties.items()
        }
    needed = required_beside(schema, beside) + [
        name for name, value in properties.items() if _refuses_default(value, fields, name)
    ]
    if needed and mode.requires:
        written["required"] = list(dict.fromkeys(needed))
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            written[key] = _branch(schema[key], mode, within(beside, key))
    if isinstance(schema.get("additionalProperties"), bool):
        written["additionalProperties"] = schema["additionalProperties"]
    return written | branches(schema, mode, beside)


def _refuses_default(schema: Any, fields: Mapping[str, Any], name: str) -> bool:
    default = _default(fields, name)
    return bool(default) and refuses(schema, default[0])


def _default(fields: Mapping[str, Any], name: str) -> tuple[Any, ...]:
    """The default of a field as a tuple, empty without one."""
    default = within(fields, name).get("default")
    return () if default is None else (default,)


_PRESERVES: Final = "x-kubernetes-preserve-unknown-fields"
_INT_OR_STRING: Final[Schema] = {"anyOf": [{"type": "integer"}, {"type": "string"}]}


class CustomResources:
    """Converts the components of custom resources; ``typed`` converts what they refer to."""

    def __init__(self, components: Components, typed: TypedConverter) -> None:
        self._components = components
        self._typed = typed

    def convert(
        self, schema: Any, mode: Mode, *, takes_null: bool = False, is_needed: bool = False
    ) -> Schema:
        """``is_needed``: null is refused even without a type."""
        if not isinstance(schema, dict):
            return {}
        name = component_of(schema)
        if name is not None:
            return self._typed.reference(name, schema, mode, takes_null=takes_null)
        written = self.body(schema, mode)
        if takes_null:
            return with_null(written)
        if is_needed and "type" not in written and "not" not in written:
            return written | {"not": NULL}
        return written

    def body(self, schema: Mapping[str, Any], mode: Mode, *, relaxed: str | None = None) -> Schema:
        """``relaxed``: the property in which nothing is required."""
        written = plain_keywords(schema)
        written |= {key: value for key, value in schema.items() if key.startswith("x-kubernetes-")}
        if schema.get("default") is not None:
            written["default"] = schema["default"]
        if isinstance(schema.get("type"), str):
            written["type"] = schema["type"]
        written |= format_of(schema, base64=STRFMT_BASE64)
        if isinstance(schema.get("enum"), list):
            written["enum"] = schema["enum"]
        if schema.get("x-kubernetes-list-type") == "set":
            written["uniqueItems"] = True
        if "items" in schema:
            items = schema["items"]
            takes_null = _is_nullable(items) or mapping(items).get("default") is not None
            written["items"] = self.convert(items, mode, takes_null=takes_null)
        written |= branches(schema, mode)
        if schema.get("x-kubernetes-int-or-string") is True and not any(
            key in written for key in COMBINATORS
        ):
            written |= _INT_OR_STRING
        return with_unions(written | self._fields(schema, mode, relaxed), schema, "", mode)

    def _fields(self, schema: Mapping[str, Any], mode: Mode, relaxed: str | None) -> Schema:
        written: Schema = {}
        needed = required_beside(schema, schema) if mode.requires else []
        needed = [name for name in needed if name != relaxed]
        properties, defined = schema.get("properties"), mapping(schema.get(DEFINED_FIELDS))
        if isinstance(properties, dict) and properties:
            written["properties"] = {
                name: self._field(
                    value,
                    mode,
                    is_needed=name in needed,
                    is_relaxed=name == relaxed,
                    defined=mapping(defined.get(name)),
                )
                for name, value in properties.items()
            }
        if needed:
            written["required"] = needed
        others = schema.get("additionalProperties")
        if isinstance(others, dict):
            written["additionalProperties"] = self.convert(others, mode, takes_null=True)
        elif (
            mode.is_strict
            and schema.get(_PRESERVES) is not True
            and (schema.get("type") == "object" or schema.get("properties"))
        ):
            # Fields without a schema are dropped; with ``additionalProperties: true`` only their unknown
            # content is.
            is_open = isinstance(others, bool)
            written["additionalProperties"] = self._components.refer_to_pruned() if is_open else False
        return written

    def _field(
        self,
        schema: Any,
        mode: Mode,
        *,
        is_needed: bool,
        is_relaxed: bool,
        defined: Mapping[str, Any],
    ) -> Schema:
        """``defined``: the definition's own schema, where ``schema`` is what an apiserver publishes."""
        below = Mode(mode.is_strict, requires=False) if is_relaxed else mode
        takes_null = not is_needed or _is_nullable(schema)
        written = self.convert(schema, below, takes_null=takes_null, is_needed=is_needed)
        if not defined.keys() - {"type"}:
            return written
        own = self.convert(defined, Mode(is_strict=False, requires=below.requires), takes_null=takes_null)
        if "$ref" in written:
            return {"allOf": [written, own]}
        return {**written, "allOf": [*written.get("allOf", ()), own]}


def _is_nullable(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("nullable") is True
