"""Compares two operations of one path and method: parameters, media types, responses, ids, and bodies without
a kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from specmux_converters.json_values import array, mapping, objects
from specmux_converters.references import resolve_part
from specmux_tools.differences.findings import Finding, set_changes
from specmux_tools.differences.schema.constraints import constraint_changes, enum_changes, text
from specmux_tools.differences.schema.keywords import deprecation_changes
from specmux_tools.differences.schema.value_types import type_changes, value_type
from specmux_tools.differences.served import ServedOperation

_DOCUMENTATION: Final = ("description", "summary", "tags", "externalDocs")
_ANY_TYPE: Final = "*/*"

_TIGHTENED: Final = frozenset({"enum-added", "enum-value-removed", "constraint-tightened"})

ParameterKey = tuple[str, str]


def is_untouched(old: ServedOperation, new: ServedOperation) -> bool:
    """Whether both are word for word equal; what they refer to is compared elsewhere."""
    return orjson.dumps(old.subject) == orjson.dumps(new.subject) and (
        orjson.dumps(old.item.get("parameters")) == orjson.dumps(new.item.get("parameters"))
    )


def operation_changes(old: ServedOperation, new: ServedOperation, *, keeps_id: bool) -> Iterator[Finding]:
    """``keeps_id``: report a changed id; False if a changed kind or scope already implies it."""
    if keeps_id and old.subject.get("operationId") != new.subject.get("operationId"):
        ids = old.subject.get("operationId"), new.subject.get("operationId")
        yield Finding("operation-id-changed", "", old.what, *ids)
    yield from deprecation_changes(old.subject, new.subject, what=old.what)
    yield from _security_changes(old, new)
    yield from _parameter_changes(old, new)
    yield from _request_changes(old, new)
    yield from _response_changes(old, new)


def is_documented_differently(old: ServedOperation, new: ServedOperation) -> bool:
    return any(old.subject.get(key) != new.subject.get(key) for key in _DOCUMENTATION)


def plain_bodies(old: ServedOperation, new: ServedOperation) -> Iterator[tuple[str, Any, Any]]:
    """Yields the schemas without a kind that both carry in one media type, with "request" or "response"."""
    answers, later = mapping(old.subject.get("responses")), mapping(new.subject.get("responses"))
    bodies = [("request", old.subject.get("requestBody"), new.subject.get("requestBody"))]
    bodies += (("response", answers[code], later[code]) for code in answers if code in later)
    for where, *parts in bodies:
        before = mapping(resolve_part(old.document, parts[0]).get("content"))
        after = mapping(resolve_part(new.document, parts[1]).get("content"))
        for media_type in (each for each in before if each in after):
            schemas = [mapping(content[media_type]).get("schema") for content in (before, after)]
            if not old.schemas.kind(schemas[0]) and not new.schemas.kind(schemas[1]):
                yield where, schemas[0], schemas[1]


def _parameter_changes(old: ServedOperation, new: ServedOperation) -> Iterator[Finding]:
    before, after = _parameters(old), _parameters(new)
    for key, parameter in before.items():
        if key not in after:
            yield Finding("parameter-removed", "", what=_describe_parameter(parameter))
            continue
        if _is_required(after[key]) and not _is_required(parameter):
            yield Finding("parameter-required", "", what=_describe_parameter(parameter))
        if parameter != after[key]:
            yield from _default_changes(old, new, parameter, after[key])
            yield from _type_changes(old, new, parameter, after[key])
    for key, parameter in after.items():
        if key not in before:
            change = "parameter-required" if _is_required(parameter) else "parameter-added"
            yield Finding(change, "", what=_describe_parameter(parameter))


def _default_changes(
    old: ServedOperation, new: ServedOperation, before: Mapping[str, Any], after: Mapping[str, Any]
) -> Iterator[Finding]:
    defaults = [
        side.schemas.view(_schema(parameter)).keywords.get("default")
        for side, parameter in ((old, before), (new, after))
    ]
    if defaults[0] is not None and text(defaults[0]) != text(defaults[1]):
        what = _describe_parameter(before)
        yield Finding("parameter-default-changed", "", what, defaults[0], defaults[1])


def _security_changes(old: ServedOperation, new: ServedOperation) -> Iterator[Finding]:
    """Compares alternatives, of which one suffices: a client that satisfied one may now need another."""
    before, after = _security(old), _security(new)
    if after and not any(needed <= had for had in before or [frozenset()] for needed in after):
        named = " or ".join(sorted(" and ".join(sorted(each)) for each in after))
        yield Finding("security-added", "", what=named)


def _security(operation: ServedOperation) -> list[frozenset[str]]:
    return [*map(frozenset, objects(operation.subject.get("security", operation.document.get("security"))))]


def _type_changes(
    old: ServedOperation, new: ServedOperation, before: Mapping[str, Any], after: Mapping[str, Any]
) -> Iterator[Finding]:
    """Reports values that may now be rejected; additional types reject none."""
    schemas = _schema(before), _schema(after)
    for _ in range(2):  # once more for a list's items
        views = old.schemas.view(schemas[0]).keywords, new.schemas.view(schemas[1]).keywords
        types = value_type(old.schemas, views[0]), value_type(new.schemas, views[1])
        for found in type_changes(*types):
            if found.id in ("type-changed", "type-narrowed"):
                what = _describe_parameter(before)
                yield Finding("parameter-type-changed", "", what, found.old, found.new)
                return
        if any(found.id in _TIGHTENED for found in (*enum_changes(*views), *constraint_changes(*views))):
            yield Finding("parameter-tightened", "", what=_describe_parameter(before))
            return
        schemas = views[0].get("items"), views[1].get("items")


def _schema(parameter: Mapping[str, Any]) -> Any:
    """The ``schema``, or that of the only entry of ``content``."""
    contents = list(mapping(parameter.get("content")).values())
    return parameter.get("schema", mapping(contents[0]).get("schema") if contents else None)


def _parameters(operation: ServedOperation) -> dict[ParameterKey, Mapping[str, Any]]:
    """Keyed by location and name; path parameters by position."""
    found: dict[ParameterKey, Mapping[str, Any]] = {}
    for holder in (operation.item, operation.subject):
        for entry in array(holder.get("parameters")):
            parameter = resolve_part(operation.document, entry)
            where, name = parameter.get("in"), parameter.get("name")
            if isinstance(where, str) and isinstance(name, str):
                found[where, _name(operation, where, name)] = parameter
    return found


def _name(operation: ServedOperation, where: str, name: str) -> str:
    if where == "path":
        before, found, _ = operation.path.partition(f"{{{name}}}")
        return str(before.count("{")) if found else name
    return name.lower() if where == "header" else name


def _is_required(parameter: Mapping[str, Any]) -> bool:
    return parameter.get("required") is True and parameter.get("in") != "path"


def _describe_parameter(parameter: Mapping[str, Any]) -> str:
    return f"{parameter.get('in')}:{parameter.get('name')}"


def _request(operation: ServedOperation) -> Mapping[str, Any]:
    return resolve_part(operation.document, operation.subject.get("requestBody"))


def _request_changes(old: ServedOperation, new: ServedOperation) -> Iterator[Finding]:
    before, after = _request(old), _request(new)
    taken = mapping(after.get("content")).keys()
    # A write always has a body, whatever the document says.
    if after.get("required") is True and before.get("required") is not True and not old.kind:
        yield Finding("request-body-required", "")
    if before and after:
        given = mapping(before.get("content")).keys()
        for found in set_changes(given, taken, "request-media-type-removed", "media-type-added"):
            if found.id == "media-type-added" or _ANY_TYPE not in taken:
                yield found


def _response_changes(old: ServedOperation, new: ServedOperation) -> Iterator[Finding]:
    before, after = mapping(old.subject.get("responses")), mapping(new.subject.get("responses"))
    yield from set_changes(before.keys(), after.keys(), "response-removed", "response-added")
    for code in sorted(before.keys() & after.keys()):
        answers = resolve_part(old.document, before[code]), resolve_part(new.document, after[code])
        headers = [{name.lower() for name in mapping(each.get("headers"))} for each in answers]
        for name in sorted(headers[0] - headers[1]):
            yield Finding("response-header-removed", "", what=name)
        given, later = (mapping(each.get("content")).keys() for each in answers)
        yield from set_changes(given, later, "response-media-type-removed", "media-type-added")
