"""Checks the schema of one version: structure, defaults, keywords, rules.

As in an apiserver, defaults are validated only if the structure is sound, and rules are compiled only if
structure, defaults and the surrounding schema are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from specmux_converters.crd.nested import NESTING, UNSTRUCTURED
from specmux_converters.crd.structural import structural_faults
from specmux_converters.errors import InvalidDocument
from specmux_converters.losses import tokens_of
from specmux_tools.validation.definitions.allowances import NO_ALLOWANCES, Allowances, FaultFamily
from specmux_tools.validation.definitions.defaults import default_faults
from specmux_tools.validation.definitions.definition_fault import DefinitionFault
from specmux_tools.validation.definitions.internal_version import GO_NAMES, said, schema_in_memory, written
from specmux_tools.validation.definitions.keywords import UNCONVERTED, keyword_faults, schema_place
from specmux_tools.validation.metadata.field_errors import shown
from specmux_tools.validation.report import Path
from specmux_tools.validation.rules.rule_faults import RULES, compile_rules

_UPSTREAM: Final = ("Required value", "Forbidden", "Invalid value")
"""Beginnings of reasons that are an apiserver's own."""
_AT_ROOT: Final = (
    *("description", "type", "format", "title", "maximum", "exclusiveMaximum", "minimum"),
    *("exclusiveMinimum", "maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems"),
    *("multipleOf", "required", "items", "properties", "externalDocs", "example"),
    *("x-kubernetes-preserve-unknown-fields", RULES),
)
_WITH_STATUS: Final = "if the status subresource is enabled"


def schema_faults(
    schema: Mapping[str, Any],
    prefix: str,
    *,
    minor: int,
    allowances: Allowances = NO_ALLOWANCES,
    takes_cost: bool = False,
) -> list[DefinitionFault]:
    """Paths lead into the schema; ``prefix`` is its place in texts. ``takes_cost``: a single rule may exceed
    the cost limit."""
    try:
        keywords = allowances.left(keyword_faults(schema, prefix))
        is_converted = FaultFamily.STRUCTURE not in allowances.families and _is_converted(keywords)
        structural = _structural_faults(schema, prefix) if is_converted else []
        # An unknown type is no fault of the structure.
        is_sound = is_converted and all(
            not is_upstream and fault.path[-1:] == ("type",) for fault, is_upstream in structural
        )
        defaults = allowances.left(default_faults(schema, prefix, minor=minor)) if is_sound else []
    except RecursionError:
        return [DefinitionFault((), f"{prefix}: nested too deeply")]
    upstream = [fault for fault, is_upstream in structural if is_upstream]
    found = [*upstream, *defaults, *keywords] or [fault for fault, _ in structural]
    if schema.get("nullable") is True:
        text = f"{prefix}.nullable: Forbidden: nullable cannot be true at the root"
        found.insert(0, DefinitionFault(("nullable",), text))
    if is_sound and not defaults:
        places = [each.path if each.schema_path is None else each.schema_path for each in keywords]
        broken = frozenset(each[:end] for each in places for end in range(len(each) + 1))
        rules = compile_rules(
            schema, prefix, minor=minor, known=allowances.rules, takes_cost=takes_cost, broken=broken
        )
        found += [DefinitionFault(rule.path, rule.text) for rule in rules]
    return found


def unsound(schema: Mapping[str, Any]) -> bool:
    """Whether the schema is not structural."""
    return not _is_converted(list(keyword_faults(schema, ""))) or bool(_structural_faults(schema, ""))


def _is_converted(keywords: list[DefinitionFault]) -> bool:
    return not any(each.path[-1:] and each.path[-1] in UNCONVERTED for each in keywords)


def status_faults(schema: Mapping[str, Any], path: Path, prefix: str) -> Iterator[DefinitionFault]:
    """Checks a root schema beside a status subresource: the status is read from ``properties`` alone."""
    for key, name, value in said(schema):
        if name == "Type" and value != "object":
            words = 'only "object" is allowed as the type at the root of the schema'
            text = f"{prefix}.type: Invalid value: {shown(value)}: {words}"
            yield DefinitionFault((*path, key), f"{text} {_WITH_STATUS}")
            return
        if key not in _AT_ROOT:
            names = " ".join(GO_NAMES[each] for each in _AT_ROOT)
            words = f"only [{names}] fields are allowed at the root of the schema"
            text = f"{prefix}: Invalid value: {written(schema_in_memory(schema))}: {words}"
            yield DefinitionFault((*path, key), f"{text} {_WITH_STATUS}")
            return


def _structural_faults(schema: Mapping[str, Any], prefix: str) -> list[tuple[DefinitionFault, bool]]:
    """Faults by text, and whether the text is an apiserver's own."""
    try:
        found = structural_faults(schema)
    except InvalidDocument as error:
        found = [error]
    faults = [_structural_fault(schema, prefix, each) for each in found]
    return sorted(faults, key=lambda fault: fault[0].text)


def _structural_fault(
    schema: Mapping[str, Any], prefix: str, error: InvalidDocument
) -> tuple[DefinitionFault, bool]:
    path = _path(schema, tokens_of(error.pointer))
    place = schema_place(prefix, path)
    if error.reason == UNSTRUCTURED:
        missing = schema_place(prefix, _without_nesting(path))
        return DefinitionFault(path, f"{missing}: Required value: because it is defined in {place}"), True
    return DefinitionFault(path, f"{place}: {error.reason}"), error.reason.startswith(_UPSTREAM)


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
    """The place in the structure that a nested schema refers to."""
    found: list[str | int] = []
    is_name = False
    for part in path:
        if is_name or not (part in NESTING or isinstance(part, int)):
            found.append(part)
        is_name = not is_name and part == "properties"
    return tuple(found)
