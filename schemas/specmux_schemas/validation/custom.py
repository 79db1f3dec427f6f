"""Everything an apiserver checks of a custom resource that it could decode, in its order: metadata, schema,
embedded objects, sets and maps (apiextensions, pkg/registry/customresource)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from specmux_schemas.validation.defaulting import settled
from specmux_schemas.validation.embedded import marshalled
from specmux_schemas.validation.embedded_errors import embedded_errors
from specmux_schemas.validation.kinds import CustomKind
from specmux_schemas.validation.list_types import list_errors
from specmux_schemas.validation.object_metadata import MetadataError, metadata_errors
from specmux_schemas.validation.report import Check, Severity, Violation
from specmux_schemas.validation.schema_nodes import Walk

_Error = TypeVar("_Error")


@dataclass(frozen=True, slots=True)
class Checked:
    """``value`` is the object as rules see it: defaults filled in."""

    value: dict[str, Any]
    violations: tuple[Violation, ...]
    blocks_rules: bool


def check_custom(value: dict[str, Any], kind: CustomKind) -> Checked:
    """``value`` was decoded and pruned."""
    value = settled(_with_metadata(_without_status(value, kind)), kind.structural)
    walk = Walk()
    kind.schema.check(value, walk)
    schema_errors = _once(walk.found, lambda error: error.detail)
    metadata = value.get("metadata")
    violations = [
        *_violations(Check.METADATA, _metadata_errors(metadata)),
        *(Violation(Severity.ERROR, Check.SCHEMA, error.path, error.text) for error in schema_errors),
        *_violations(Check.METADATA, embedded_errors(value, kind.structural)),
        *_violations(Check.LIST, list_errors(value, kind.structural)),
        *(
            Violation(Severity.NOTE, Check.NOT_CHECKED, path, reason)
            for path, reason in dict.fromkeys(walk.undecided)
        ),
    ]
    blocks = any(error.blocks_rules for error in schema_errors)
    return Checked(value, tuple(_once(violations, lambda violation: violation.message)), blocks)


def _without_status(value: dict[str, Any], kind: CustomKind) -> dict[str, Any]:
    """Creating drops a status that is a subresource."""
    if not kind.has_status or "status" not in value:
        return value
    return {key: item for key, item in value.items() if key != "status"}


def _with_metadata(value: dict[str, Any]) -> dict[str, Any]:
    """Metadata that is null was decoded as empty."""
    return {**value, "metadata": {}} if value.get("metadata", "") is None else value


def _metadata_errors(metadata: Any) -> list[MetadataError]:
    decoded = marshalled(metadata) if isinstance(metadata, dict) else {}
    return metadata_errors(decoded)


def _violations(check: Check, errors: list[MetadataError]) -> list[Violation]:
    return [Violation(Severity.ERROR, check, error.path, error.text) for error in errors]


def _once(errors: Iterable[_Error], key: Callable[[_Error], str]) -> list[_Error]:
    """The first of those that say the same."""
    found: dict[str, _Error] = {}
    for error in errors:
        found.setdefault(key(error), error)
    return list(found.values())
