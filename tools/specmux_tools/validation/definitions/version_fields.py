"""Checks the fields of a version other than its schema: deprecation, printer columns, scale, and the fields
by which objects are selected (apiextensions, ValidateCustomResourceSelectableFields)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from specmux_converters.go.text import json_text, quote_text, size_of
from specmux_converters.json_values import text, within
from specmux_tools.validation.definitions.definition_fault import DefinitionFault, fault, objects
from specmux_tools.validation.report import Path
from specmux_tools.validation.rules.rule_tree import BadFieldPath, RuleNode, follow_field_path, rule_tree

_MOST_WARNING: Final = 256
_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS: Final = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
SELECTABLE_MAX: Final = 8
_KINDS: Final = ("string", "boolean", "integer")
_WRONG_KIND: Final = (
    "must point to a field of type string, boolean or integer. "
    "Enum string fields and strings with formats are allowed."
)


def schema_of(version: Mapping[str, Any]) -> Mapping[str, Any] | None:
    schema = within(version, "schema").get("openAPIV3Schema")
    return schema if isinstance(schema, dict) else None


def deprecation_faults(version: Mapping[str, Any], path: Path) -> Iterator[DefinitionFault]:
    warning = version.get("deprecationWarning")
    if not isinstance(warning, str):
        return
    faults = []
    if version.get("deprecated") is not True:
        faults.append("can only be set for deprecated versions")
    else:
        if size_of(warning) > _MOST_WARNING:
            faults.append(f"must be <= {_MOST_WARNING} characters long")
        if not warning:
            faults.append("must not be an empty string")
        at = next((n for n, each in enumerate(warning) if not (each.isprintable() or each == " ")), None)
        if at is not None:
            place = size_of(warning[:at])
            words = "must only contain printable UTF-8 characters; non-printable character found at index"
            faults.append(f"{words} {place}")
    for each in faults:
        yield fault((*path, "deprecationWarning"), f"Invalid value: {json_text(warning)}: {each}")


def column_faults(version: Mapping[str, Any], path: Path, place: str) -> Iterator[DefinitionFault]:
    for index, column in enumerate(objects(version.get("additionalPrinterColumns"))):
        for key, name, words in _column(column):
            column_path = (*path, "additionalPrinterColumns", index, key)
            yield DefinitionFault(column_path, f"{place}.additionalPrinterColumns[{index}].{name}: {words}")


def _column(column: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yields the key, its name in the text, and the text."""
    kind, form, json_path = (column.get(key) or "" for key in ("type", "format", "jsonPath"))
    if not column.get("name"):
        yield "name", "name", "Required value"
    words = f"must be one of {','.join(_COLUMN_TYPES)}"
    if not kind:
        yield "type", "type", f"Required value: {words}"
    elif kind not in _COLUMN_TYPES:
        yield "type", "type", f"Invalid value: {quote_text(str(kind))}: {words}"
    if form and form not in _COLUMN_FORMATS:
        words = f"must be one of {','.join(_COLUMN_FORMATS)}"
        yield "format", "format", f"Invalid value: {quote_text(str(form))}: {words}"
    if not json_path:
        yield "jsonPath", "JSONPath", "Required value"
    elif not str(json_path).startswith("."):
        words = "must be a simple json path starting with ."
        yield "jsonPath", "JSONPath", f"Invalid value: {quote_text(str(json_path))}: {words}"


def scale_faults(version: Mapping[str, Any], path: Path, place: str) -> Iterator[DefinitionFault]:
    scale = within(version, "subresources").get("scale")
    if not isinstance(scale, dict):
        return
    checks = (
        ("specReplicasPath", (".spec.",), "under .spec"),
        ("statusReplicasPath", (".status.",), "under .status"),
        ("labelSelectorPath", (".spec.", ".status."), "under either .spec or .status"),
    )
    for key, roots, where in checks:
        value = scale.get(key) or ""
        text = ""
        if not value:
            text = "" if key == "labelSelectorPath" else "Required value"
        elif not str(value).startswith("."):
            text = f"Invalid value: {quote_text(str(value))}: must be a simple json path starting with ."
        elif not str(value).startswith(roots):
            shown = json_text(value) if key == "labelSelectorPath" else quote_text(str(value))
            text = f"Invalid value: {shown}: should be a json path {where}"
        if text:
            scale_path = (*path, "subresources", "scale", key)
            yield DefinitionFault(scale_path, f"{place}.subresources.scale.{key}: {text}")


def selectable_faults(
    fields: Any, schema: Mapping[str, Any], path: Path, place: str, *, takes_many: bool = False
) -> Iterator[DefinitionFault]:
    """``path`` and ``place``, its name in texts, are those of the list. ``takes_many``: accept more than
    SELECTABLE_MAX."""
    tree = rule_tree(schema, {})
    seen: set[str] = set()
    for index, field in enumerate(objects(fields)):
        for words in _faults(text(field.get("jsonPath")), tree, seen):
            yield DefinitionFault((*path, index, "jsonPath"), f"{place}[{index}].jsonPath: {words}")
    if len(seen) > SELECTABLE_MAX and not takes_many:
        yield DefinitionFault(
            path, f"{place}: Too many: {len(seen)}: must have at most {SELECTABLE_MAX} items"
        )


def _faults(text: str, tree: RuleNode, seen: set[str]) -> Iterator[str]:
    if not text:
        yield "Required value"
        return
    wrong = f"Invalid value: {quote_text(text)}"
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
        yield f"Duplicate value: {quote_text(text)}"
    seen.add(shown)
