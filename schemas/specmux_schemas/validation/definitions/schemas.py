"""The schema of one version: its structure, its keywords, its rules.

As an apiserver has it, an unsound structure says its first fault alone, and rules are compiled where
everything else is sound.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from specmux_converters.crd.nested import NESTING, UNSTRUCTURED
from specmux_converters.crd.structural import publish_schema
from specmux_converters.errors import InvalidDocument
from specmux_converters.losses import tokens_of
from specmux_schemas.validation.definitions.definition_fault import DefinitionFault
from specmux_schemas.validation.definitions.keywords import keyword_faults, schema_place
from specmux_schemas.validation.metadata.field_errors import shown
from specmux_schemas.validation.report import Path
from specmux_schemas.validation.rules.definition_rules import RULES, compile_rules

_UPSTREAM: Final = ("Required value", "Forbidden", "Invalid value")
"""How reasons begin that are an apiserver's own."""
_AT_ROOT: Final = {
    name: name[0].upper() + name[1:]
    for name in (
        *("description", "type", "format", "title", "maximum", "exclusiveMaximum", "minimum"),
        *("exclusiveMinimum", "maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems"),
        *("multipleOf", "required", "items", "properties", "externalDocs", "example"),
    )
} | {"x-kubernetes-preserve-unknown-fields": "XPreserveUnknownFields", RULES: "XValidations"}


def schema_faults(schema: Mapping[str, Any], prefix: str, *, minor: int) -> list[DefinitionFault]:
    """Paths are into the schema; ``prefix`` is its place in texts."""
    try:
        structural = _structural_fault(schema, prefix)
        found = list(keyword_faults(schema, prefix))
    except RecursionError:
        return [DefinitionFault((), f"{prefix}: nested too deeply")]
    if schema.get("nullable") is True:
        text = f"{prefix}.nullable: Forbidden: nullable cannot be true at the root"
        found.insert(0, DefinitionFault(("nullable",), text))
    if structural is not None:
        fault, is_upstream = structural
        return [fault, *found] if is_upstream or not found else found
    broken = [each.path for each in found]
    for rule in compile_rules(schema, prefix, minor=minor):
        node = rule.path[:-3]
        if rule.is_structural or not any(path[: len(node)] == node for path in broken):
            found.append(DefinitionFault(rule.path, rule.text))
    return found


def status_faults(schema: Mapping[str, Any], path: Path, prefix: str) -> Iterator[DefinitionFault]:
    """Of a root beside a status: its schema is taken out of ``properties`` alone."""
    kind = schema.get("type")
    if kind and kind != "object":
        words = 'only "object" is allowed as the type at the root of the schema'
        text = f"{prefix}.type: Invalid value: {shown(kind)}: {words} if the status subresource is enabled"
        yield DefinitionFault((*path, "type"), text)
    other = next((key for key, value in schema.items() if key not in _AT_ROOT and _is_said(value)), None)
    if other is not None:
        # Upstream writes the whole schema as the value; the keyword tells more.
        words = f"only [{' '.join(_AT_ROOT.values())}] fields are allowed at the root of the schema"
        text = f"{prefix}: Invalid value: {shown(other)}: {words} if the status subresource is enabled"
        yield DefinitionFault((*path, other), text)


def _is_said(value: Any) -> bool:
    return value not in (None, "", False) and value != [] and value != {}


def _structural_fault(schema: Mapping[str, Any], prefix: str) -> tuple[DefinitionFault, bool] | None:
    """The first, and whether its text is an apiserver's."""
    try:
        publish_schema(schema)
    except InvalidDocument as error:
        path = _path(schema, tokens_of(error.pointer))
        place = schema_place(prefix, path)
        if error.reason == UNSTRUCTURED:
            missing = schema_place(prefix, _without_nesting(path))
            reason = f"Required value: because it is defined in {place}"
            return DefinitionFault(path, f"{missing}: {reason}"), True
        fault = DefinitionFault(path, f"{place}: {error.reason}")
        return fault, error.reason.startswith(_UPSTREAM)
    return None


def _path(node: Any, tokens: list[str]) -> Path:
    path: list[str | int] = []
    for token in tokens:
        if isinstance(node, list) and token.isdecimal() and int(token) < len(node):
            path.append(int(token))
            node = node[int(token)]
        else:
            path.append(token)
            node = node.get(token) if isinstance(node, Mapping) else None
    return tuple(path)


def _without_nesting(path: Path) -> Path:
    """The place in the structure that a nested schema is about."""
    found: list[str | int] = []
    is_name = False
    for part in path:
        if is_name or not (part in NESTING or isinstance(part, int)):
            found.append(part)
        is_name = not is_name and part == "properties"
    return tuple(found)
