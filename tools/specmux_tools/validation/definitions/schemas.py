"""Checks the schema of one version: structure, defaults, keywords, rules.

As in an apiserver, defaults are validated only if the structure is sound, and rules are compiled only if
structure, defaults and the surrounding schema are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from specmux_converters.crd.keywords import EMBEDDED_RESOURCE
from specmux_converters.crd.nested import NESTING, UNSTRUCTURED
from specmux_converters.crd.structural import structural_faults
from specmux_converters.errors import InvalidDocument
from specmux_converters.json_values import mapping, members
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.losses import tokens_of
from specmux_tools.validation.decoding.embedded import unknown_in_embedded
from specmux_tools.validation.decoding.structural_values import prune
from specmux_tools.validation.definitions.definition_fault import (
    NO_ALLOWANCES,
    Allowances,
    DefinitionFault,
    FaultFamily,
)
from specmux_tools.validation.definitions.internal_version import (
    GO_NAMES,
    list_keywords,
    schema_in_memory,
    write_in_go,
)
from specmux_tools.validation.definitions.keywords import UNCONVERTED, keyword_faults, schema_place
from specmux_tools.validation.errors import Undecodable
from specmux_tools.validation.field_errors import field_path, show_value
from specmux_tools.validation.metadata.object_metadata import embedded_errors
from specmux_tools.validation.report import Path, Severity
from specmux_tools.validation.rules.checking import MISSING, check_rules
from specmux_tools.validation.rules.compiled_rule import RuleCompiler
from specmux_tools.validation.rules.rule_faults import RULES, compile_rules
from specmux_tools.validation.rules.rule_tree import rule_tree
from specmux_tools.validation.schema.compiling import SchemaCompiler
from specmux_tools.validation.schema.errors import SchemaError
from specmux_tools.validation.schema.nodes import Walk
from specmux_tools.validation.schema.ratcheting import is_same
from specmux_tools.validation.schema.structural import META_FIELDS, Structural, structural

_TYPE: Final = {"kind": "Validation", "apiVersion": "validation/v1"}


@dataclass(frozen=True, slots=True)
class _DefaultPlace:
    path: Path
    text: str
    root: Mapping[str, Any]
    """Schema of the enclosing object."""
    steps: Path = ()
    """Path from ``root``; of a list, the first item."""
    is_in_metadata: bool = False


def default_faults(schema: Mapping[str, Any], prefix: str, *, minor: int) -> Iterator[DefinitionFault]:
    """Paths lead into the structural schema at ``prefix``."""
    root = {**schema, EMBEDDED_RESOURCE: True}
    yield from _Defaults(minor).faults(root, _DefaultPlace((), prefix, root))


class _Defaults:
    def __init__(self, minor: int) -> None:
        self._rules = RuleCompiler(minor)
        self._schemas = SchemaCompiler({}, minor=minor, is_published=False)

    def faults(self, schema: Mapping[str, Any], place: _DefaultPlace) -> Iterator[DefinitionFault]:
        """Like upstream, skips schemas in additionalProperties."""
        if schema.get(EMBEDDED_RESOURCE) is True:
            place = replace(place, root=schema, steps=(), is_in_metadata=False)
        default = schema.get("default")
        if default is not None:
            texts = self._in_metadata if place.is_in_metadata else self._alone
            for text in texts(default, schema, place):
                yield DefinitionFault((*place.path, "default"), text)
        items = schema.get("items")
        if isinstance(items, Mapping):
            path, text = (*place.path, "items"), f"{place.text}.items"
            yield from self.faults(items, replace(place, path=path, text=text, steps=(*place.steps, 0)))
        for name, inner in members(schema.get("properties")):
            is_meta = schema.get(EMBEDDED_RESOURCE) is True and name in META_FIELDS
            below = _DefaultPlace(
                (*place.path, "properties", name),
                f"{place.text}.properties[{name}]",
                place.root,
                (*place.steps, name),
                place.is_in_metadata or is_meta,
            )
            yield from self.faults(inner, below)

    def _alone(self, default: Any, schema: Mapping[str, Any], place: _DefaultPlace) -> Iterator[str]:
        prefix, structure = f"{place.text}.default", structural(schema, {}, depth=1)
        pruned = prune(default, structure, is_object=structure.is_embedded)[0]
        if not is_same(pruned, default):
            yield f"{prefix}: Invalid value: {show_value(default)}: must not have unknown fields"
        wrong = _metadata_faults(default, structure)
        if wrong:
            yield from (f"{prefix}{'' if text.startswith('[') else '.'}{text}" for text in wrong)
        else:
            yield from self._values(default, schema, prefix)

    def _in_metadata(self, default: Any, schema: Mapping[str, Any], place: _DefaultPlace) -> Iterator[str]:
        prefix, value = f"{place.text}.default", default
        for step in reversed(place.steps):
            value = [value] if step == 0 else {step: value}
        wrong = _metadata_faults({**_TYPE, **value}, structural(place.root, {}))
        if wrong:
            said = wrong[0] if len(wrong) == 1 else f"[{', '.join(dict.fromkeys(wrong))}]"
            yield f"{prefix}: Invalid value: {show_value(default)}: must result in valid metadata: {said}"
        else:
            yield from self._values(default, schema, prefix)

    def _values(self, default: Any, schema: Mapping[str, Any], prefix: str) -> Iterator[str]:
        walk = Walk()
        self._schemas.inner(schema).check(default, walk)
        found = {error.detail: error for error in reversed(walk.found)}
        if found:
            yield from (_text(error, schema, prefix) for error in found.values())
            return
        tree = rule_tree(schema, {}, depth=1)
        if tree.has_rules:
            # First as an unchanged update, then as a new value.
            for old in (default, MISSING):
                checked = check_rules(default, tree, self._rules, old, place=prefix)
                wrong = [each.message for each in checked if each.severity is Severity.ERROR]
                yield from wrong
                if wrong:
                    return


def _metadata_faults(value: Any, structure: Structural) -> list[str]:
    try:
        unknown_in_embedded(value, structure)
    except Undecodable as error:
        return [error.text]
    return [error.text for error in embedded_errors(value, structure)]


def _text(error: SchemaError, schema: Mapping[str, Any], prefix: str) -> str:
    text, nowhere = error.text, field_path(())
    is_field = bool(error.path) and error.path[0] in mapping(schema.get("properties"))
    if error.path and isinstance(error.path[0], str) and not is_field and text.endswith(error.detail):
        # Upstream appends a dot to a map's name before the key.
        quote = '"' if error.detail.startswith('"') else ""
        text = f"{text.removesuffix(error.detail)}{quote}.{error.detail.removeprefix(quote)}"
    if text.startswith(nowhere):
        return prefix + text.removeprefix(nowhere)
    return f"{prefix}{'' if text.startswith(': ') else '.'}{text}"  # of a key without a name


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
        wrong = compile_rules(
            schema, prefix, minor=minor, known=allowances.rules, takes_cost=takes_cost, broken=broken
        )
        found += (DefinitionFault(each.path, each.text) for each in wrong)
    return found


def is_unsound(schema: Mapping[str, Any]) -> bool:
    """Whether the schema is not structural."""
    return not _is_converted(list(keyword_faults(schema, ""))) or bool(_structural_faults(schema, ""))


def _is_converted(keywords: list[DefinitionFault]) -> bool:
    return not any(each.path[-1:] and each.path[-1] in UNCONVERTED for each in keywords)


def status_faults(schema: Mapping[str, Any], path: Path, prefix: str) -> Iterator[DefinitionFault]:
    """Checks a root schema beside a status subresource: the status is read from ``properties`` alone."""
    for key, name, value in list_keywords(schema):
        if name == "Type" and value != "object":
            words = 'only "object" is allowed as the type at the root of the schema'
            text = f"{prefix}.type: Invalid value: {show_value(value)}: {words}"
            yield DefinitionFault((*path, key), f"{text} {_WITH_STATUS}")
            return
        if key not in _AT_ROOT:
            names = " ".join(GO_NAMES[each] for each in _AT_ROOT)
            words = f"only [{names}] fields are allowed at the root of the schema"
            text = f"{prefix}: Invalid value: {write_in_go(schema_in_memory(schema))}: {words}"
            yield DefinitionFault((*path, key), f"{text} {_WITH_STATUS}")
            return


def _structural_faults(schema: Mapping[str, Any], prefix: str) -> list[tuple[DefinitionFault, bool]]:
    """Faults by text, and whether the text is an apiserver's own."""
    try:
        found = structural_faults(schema)
    except InvalidDocument as error:
        found = [error]
    return sorted(
        (_structural_fault(schema, prefix, each) for each in found), key=lambda fault: fault[0].text
    )


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
