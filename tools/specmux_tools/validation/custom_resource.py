"""All checks of a decoded custom resource in an apiserver's order: metadata, schema, embedded objects, sets
and maps (apiextensions, pkg/registry/customresource, pkg/apiserver/schema/listtype)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any, Final, TypeVar

from specmux_converters.go.text import json_text, quote_text
from specmux_converters.json_values import mapping, texts
from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.validation.compiled_kinds import CustomKind
from specmux_tools.validation.decoding.embedded import marshal, without_empty_metadata
from specmux_tools.validation.decoding.structural_values import apply_defaults
from specmux_tools.validation.field_errors import FieldError, duplicate, invalid
from specmux_tools.validation.metadata.names import STANDARD_FINALIZERS, qualified_name_faults
from specmux_tools.validation.metadata.object_metadata import (
    embedded_errors,
    metadata_errors,
    metadata_of,
    update_errors,
)
from specmux_tools.validation.report import Check, Path, Severity, Violation
from specmux_tools.validation.schema.nodes import Walk
from specmux_tools.validation.schema.ratcheting import Correlation, lies_in_unchanged
from specmux_tools.validation.schema.structural import Structural, walk

_Error = TypeVar("_Error")

_BLOCKING: Final = ("Required value", "Unsupported value", "Too long", "Too many")


@dataclass(frozen=True, slots=True)
class CustomResourceCheck:
    value: dict[str, Any]
    """With defaults, as it would be stored."""
    judged: dict[str, Any]
    """The object as rules see it: with a generated name."""
    violations: tuple[Violation, ...]
    blocks_rules: bool
    correlation: Correlation | None = None
    """With the stored object, where errors are left alone in what an update does not change."""
    left_out: int = 0
    """Errors that are not listed."""


def check_custom(
    value: dict[str, Any],
    kind: CustomKind,
    old: dict[str, Any] | None = None,
    *,
    ratchets: bool = True,
    name: str = "",
) -> CustomResourceCheck:
    """``value``: decoded and pruned; ``old``: the stored object of an update, with defaults. ``ratchets``:
    ignore errors in what an update does not change (KEP-4008). ``name``: one that is generated for an object
    that has none."""
    value = _with_stored_status(value, kind, old)
    if value.get("metadata", "") is None:  # decoded as empty
        value = {**value, "metadata": {}}
    value = apply_defaults(without_empty_metadata(value, kind.structural), kind.structural)
    is_ratcheted = old is not None and ratchets
    checked = Walk(most=sys.maxsize) if is_ratcheted else Walk()
    judged = {**value, "metadata": {**value["metadata"], "name": name}} if name else value
    kind.schema.check(judged, checked)
    correlation = Correlation(value, old, kind.structural) if is_ratcheted else None
    # Errors in what the update does not change are left out (apiserver/validation/ratcheting.go).
    left = (e for e in checked.found if correlation is None or not lies_in_unchanged(correlation, e.place))
    schema_errors = _once(left, lambda error: error.detail)
    metadata = value.get("metadata")
    around = [
        *_violations(Check.METADATA, embedded_errors(value, kind.structural)),
        *_violations(Check.LIST, _list_errors(value, old, kind.structural)),
    ]
    own = _violations(Check.METADATA, _metadata_errors(metadata, old))
    violations = (
        *own,
        *(Violation(Severity.ERROR, Check.SCHEMA, error.path, error.text) for error in schema_errors),
        *around,
        *_finalizer_warnings(metadata),
        *(
            Violation(Severity.NOTE, Check.NOT_CHECKED, path, reason)
            for path, reason in dict.fromkeys(checked.undecided)
        ),
    )
    blocks = any(error.blocks_rules for error in schema_errors) or any(map(_blocks_rules, (*own, *around)))
    found = tuple(_once(violations, lambda violation: violation.message))
    return CustomResourceCheck(value, judged, found, blocks, correlation, checked.left_out)


def _list_errors(value: dict[str, Any], old: dict[str, Any] | None, schema: Structural) -> list[FieldError]:
    """No errors for an update whose stored object already has some."""
    return [] if old is not None and list_errors(old, schema) else list_errors(value, schema)


def _blocks_rules(violation: Violation) -> bool:
    """Whether an error blocks rules (strategy.go, hasBlockingErr). The type of those that are not the
    schema's is part of their text."""
    return violation.message.partition(": ")[2].startswith(_BLOCKING)


def _finalizer_warnings(metadata: Any) -> Iterator[Violation]:
    """Warnings of an apiserver under any directive (registry/customresource/validator.go)."""
    for text in sorted(set(texts(mapping(metadata).get("finalizers")))):
        faults = qualified_name_faults(text)
        if "/" not in text and text not in STANDARD_FINALIZERS:
            path = " including a path (/)" if "." in text else ""
            faults.append(
                f"prefer a domain-qualified finalizer name{path}"
                " to avoid accidental conflicts with other finalizer writers"
            )
        for fault in faults:
            message = f"metadata.finalizers: {quote_text(text)}: {fault}"
            yield Violation(Severity.WARNING, Check.METADATA, ("metadata", "finalizers"), message)


def _with_stored_status(
    value: dict[str, Any], kind: CustomKind, old: dict[str, Any] | None
) -> dict[str, Any]:
    """A status subresource is unaffected: create drops it, update keeps the stored one."""
    if not kind.has_status:
        return value
    if old is not None and "status" in old:
        return {**value, "status": old["status"]}
    return {key: item for key, item in value.items() if key != "status"} if "status" in value else value


def _metadata_errors(metadata: Any, old: dict[str, Any] | None) -> list[FieldError]:
    decoded = marshal(metadata) if isinstance(metadata, dict) else {}
    found = list(metadata_errors(decoded))
    return found if old is None else [*found, *update_errors(decoded, metadata_of(old))]


def _violations(check: Check, errors: list[FieldError]) -> list[Violation]:
    return [Violation(Severity.ERROR, check, error.path, error.text) for error in errors]


def _once(errors: Iterable[_Error], key: Callable[[_Error], str]) -> list[_Error]:
    """The first of those with equal text."""
    found: dict[str, _Error] = {}
    for error in errors:
        found.setdefault(key(error), error)
    return list(found.values())


def list_errors(value: Mapping[str, Any], schema: Structural) -> list[FieldError]:
    return [
        error
        for found, inner, path, place in walk(value, schema, attrgetter("has_lists"))
        if isinstance(found, list)
        for error in _list(found, inner, path, place)
    ]


def _list(value: list[Any], schema: Structural, path: Path, place: str) -> Iterator[FieldError]:
    if schema.list_type == "set":
        for index in _repeat(value):
            yield FieldError((*path, index), duplicate(f"{place}[{index}]", value[index]))
    elif schema.list_type == "map":
        yield from _map(value, schema.list_keys, path, place)


def _map(value: list[Any], names: tuple[str, ...], path: Path, place: str) -> Iterator[FieldError]:
    for index, item in enumerate(value):
        if item is not None and not isinstance(item, dict):
            text = invalid(f"{place}[{index}]", item, "must be an object for an array of list-type map")
            yield FieldError((*path, index), text)
            return
    keys = [{name: item[name] for name in names if name in item} if item else {} for item in value]
    for index in _repeat(keys):
        yield FieldError((*path, index), duplicate(f"{place}[{index}]", keys[index]))


def _repeat(items: list[Any]) -> Iterator[int]:
    """Indices of items that occur for the second time; further occurrences are not reported."""
    times: dict[str, int] = {}
    for index, item in enumerate(items):
        # 1 and 1.0 differ as scalars in Go, but have equal texts.
        key = f"{type(item).__name__}:{json_text(item)}" if isinstance(item, float) else json_text(item)
        times[key] = times.get(key, 0) + 1
        if times[key] == 2:
            yield index
