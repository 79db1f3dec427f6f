"""Checks the fields by which custom resources can be selected (apiextensions,
ValidateCustomResourceSelectableFields)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from specmux_converters.go.text import quoted
from specmux_tools.validation.definitions.definition_fault import DefinitionFault, objects
from specmux_tools.validation.report import Path
from specmux_tools.validation.rules.field_paths import BadFieldPath, follow_field_path
from specmux_tools.validation.rules.rule_tree import RuleNode, rule_tree

MOST: Final = 8
_KINDS: Final = ("string", "boolean", "integer")
_WRONG_KIND: Final = (
    "must point to a field of type string, boolean or integer. "
    "Enum string fields and strings with formats are allowed."
)


def selectable_faults(
    fields: Any, schema: Mapping[str, Any], path: Path, place: str, *, takes_many: bool = False
) -> Iterator[DefinitionFault]:
    """``path`` and ``place``, its name in texts, are those of the list. ``takes_many``: accept more than
    MOST."""
    tree = rule_tree(schema, {})
    seen: set[str] = set()
    for index, field in enumerate(objects(fields)):
        for text in _faults(field.get("jsonPath") or "", tree, seen):
            yield DefinitionFault((*path, index, "jsonPath"), f"{place}[{index}].jsonPath: {text}")
    if len(seen) > MOST and not takes_many:
        yield DefinitionFault(path, f"{place}: Too many: {len(seen)}: must have at most {MOST} items")


def _faults(text: str, tree: RuleNode, seen: set[str]) -> Iterator[str]:
    if not text:
        yield "Required value"
        return
    wrong = f"Invalid value: {quoted(text)}"
    try:
        names, shown, found = follow_field_path(text, tree, takes_keys=False)
    except BadFieldPath as error:
        yield f"{wrong}: is an invalid path: {error}"
        return
    if names[0] == "metadata":
        yield f"{wrong}: must not point to fields in metadata"
    if found.kind not in _KINDS:
        yield f"{wrong}: {_WRONG_KIND}"
    if shown in seen:
        yield f"Duplicate value: {quoted(text)}"
    seen.add(shown)
