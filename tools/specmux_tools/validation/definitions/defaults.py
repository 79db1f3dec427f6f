"""Validates each ``default`` of a schema as an object of its own (apiextensions,
pkg/apiserver/schema/defaulting/validation.go)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from specmux_converters.crd.keywords import EMBEDDED_RESOURCE
from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.validation.decoding.embedded import unknown_in_embedded
from specmux_tools.validation.decoding.pruning import prune
from specmux_tools.validation.definitions.definition_fault import DefinitionFault
from specmux_tools.validation.errors import Undecodable
from specmux_tools.validation.metadata.embedded_errors import embedded_errors
from specmux_tools.validation.metadata.field_errors import field_path, shown
from specmux_tools.validation.report import Path, Severity
from specmux_tools.validation.rules.checking import MISSING, check_rules
from specmux_tools.validation.rules.compiled_rule import RuleCompiler
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


def default_faults(
    schema: Mapping[str, Any], prefix: str, *, minor: int, takes_unknown: bool = False
) -> Iterator[DefinitionFault]:
    """Paths lead into the structural schema at ``prefix``. ``takes_unknown``: unknown fields in a default are
    no fault."""
    root = {**schema, EMBEDDED_RESOURCE: True}
    yield from _Defaults(minor, takes_unknown=takes_unknown).faults(root, _DefaultPlace((), prefix, root))


class _Defaults:
    def __init__(self, minor: int, *, takes_unknown: bool) -> None:
        self._rules = RuleCompiler(minor)
        self._schemas = SchemaCompiler({}, minor=minor, is_published=False)
        self._takes_unknown = takes_unknown

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
        properties = schema.get("properties")
        for name, inner in properties.items() if isinstance(properties, Mapping) else ():
            if isinstance(inner, Mapping):
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
        if not self._takes_unknown:
            pruned = prune(default, structure, is_object=structure.is_embedded)[0]
            if not is_same(pruned, default):
                yield f"{prefix}: Invalid value: {shown(default)}: must not have unknown fields"
        wrong = _metadata_faults(default, structure)
        if wrong:
            yield from (_joined(prefix, text) for text in wrong)
        else:
            yield from self._values(default, schema, prefix)

    def _in_metadata(self, default: Any, schema: Mapping[str, Any], place: _DefaultPlace) -> Iterator[str]:
        prefix, value = f"{place.text}.default", default
        for step in reversed(place.steps):
            value = [value] if step == 0 else {step: value}
        wrong = _metadata_faults({**_TYPE, **value}, structural(place.root, {}))
        if wrong:
            said = wrong[0] if len(wrong) == 1 else f"[{', '.join(dict.fromkeys(wrong))}]"
            yield f"{prefix}: Invalid value: {shown(default)}: must result in valid metadata: {said}"
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
    properties = schema.get("properties")
    is_field = isinstance(properties, Mapping) and bool(error.path) and error.path[0] in properties
    if error.path and isinstance(error.path[0], str) and not is_field and text.endswith(error.detail):
        # Upstream appends a dot to a map's name before the key.
        quote = '"' if error.detail.startswith('"') else ""
        text = f"{text.removesuffix(error.detail)}{quote}.{error.detail.removeprefix(quote)}"
    if text.startswith(nowhere):
        return prefix + text.removeprefix(nowhere)
    return f"{prefix}{'' if text.startswith(': ') else '.'}{text}"  # of a key without a name


def _joined(prefix: str, text: str) -> str:
    return f"{prefix}{'' if text.startswith('[') else '.'}{text}"
