"""Checks the update of a definition: which faults it may keep, and which fields it cannot change
(apiextensions, ValidateCustomResourceDefinitionUpdate)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from specmux_converters.crd.keywords import EMBEDDED_RESOURCE, INT_OR_STRING, PRESERVE_UNKNOWN_FIELDS
from specmux_converters.go.text import json_text, quote_text
from specmux_converters.json_values import text, texts, within
from specmux_tools.validation.definitions.conversions import bundle_fault, is_known_review
from specmux_tools.validation.definitions.definition_fault import (
    Allowances,
    DefinitionFault,
    FaultFamily,
    families_of,
    fault,
    objects,
)
from specmux_tools.validation.definitions.internal_version import are_equal, version_in_memory
from specmux_tools.validation.definitions.keywords import LIST_KEYS, LIST_TYPE, has_keyword
from specmux_tools.validation.definitions.schemas import is_unsound, schema_faults
from specmux_tools.validation.definitions.version_fields import SELECTABLE_MAX, schema_of
from specmux_tools.validation.field_errors import show_value
from specmux_tools.validation.report import Path

_STRUCTURAL_KEYWORDS: Final = (
    *("default", EMBEDDED_RESOURCE, PRESERVE_UNKNOWN_FIELDS, INT_OR_STRING, LIST_KEYS, LIST_TYPE),
    "x-kubernetes-validations",
)
_IMMUTABLE: Final[tuple[tuple[str, ...], ...]] = (("group",), ("names", "plural"))
_IMMUTABLE_SINCE_SERVED: Final[tuple[tuple[str, ...], ...]] = (("scope",), ("names", "kind"))


def allowances_of(spec: Mapping[str, Any], old: Mapping[str, Any], *, minor: int) -> Allowances:
    """``old`` is the whole stored definition."""
    before = within(old, "spec")
    versions = {str(each.get("name")): each for each in objects(before.get("versions"))}
    schemas = [schema for each in versions.values() if (schema := schema_of(each)) is not None]
    faults = [each for schema in schemas for each in schema_faults(schema, "", minor=minor)]
    families = set(families_of(faults))
    if _takes_any_structure(spec) and any(map(is_unsound, schemas)):
        families.add(FaultFamily.STRUCTURE)
    unchanged, selectable = set(), set()
    for version in objects(spec.get("versions")):
        name = str(version.get("name"))
        now, then = version_in_memory(version), version_in_memory(versions.get(name, {}))
        if name in versions and are_equal(now["Schema"], then["Schema"]):
            unchanged.add(name)
        fields = then["SelectableFields"] or ()
        if len(fields) > SELECTABLE_MAX and are_equal(now["SelectableFields"], fields):
            selectable |= {name, ""}
    webhook = within(before, "conversion", "webhook")
    reviews = webhook.get("conversionReviewVersions") or []
    bundle = within(webhook, "clientConfig").get("caBundle")
    return Allowances(
        frozenset(families),
        frozenset(rule for schema in schemas for rule in _rules(schema)),
        frozenset(unchanged),
        frozenset(selectable),
        no_schema=len(schemas) < len(objects(before.get("versions"))),
        unknown_review=bool(reviews) and not is_known_review(reviews),
        any_bundle=not _is_established(old)
        or (isinstance(bundle, str) and bundle != "" and bundle_fault(bundle) != ""),
    )


def immutable_faults(spec: Mapping[str, Any], old: Mapping[str, Any]) -> Iterator[DefinitionFault]:
    before = within(old, "spec")
    for path in (*(_IMMUTABLE_SINCE_SERVED if _is_established(old) else ()), *_IMMUTABLE):
        now, then = (within(each, *path[:-1]).get(path[-1]) or "" for each in (spec, before))
        if now != then:
            yield fault(("spec", *path), f"Invalid value: {show_value(now)}: field is immutable")


def storage_faults(spec: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[DefinitionFault]:
    """Checks stored versions: an apiserver adds the first version with ``storage: true``."""
    names = _stored_in(spec)
    stored = [*texts(within(old, "status").get("storedVersions"))]
    if not stored and old is not None:  # a manifest has no status: assume its storage version
        stored = _stored_in(within(old, "spec"))[:1]
    stored += [name for name in names[:1] if name not in stored]
    path: Path = ("spec", "versions")
    place = "status.storedVersions"
    if not stored:
        yield DefinitionFault(path, f"{place}: Invalid value: null: must have at least one stored version")
        return
    left = {name: index for index, name in enumerate(stored)}
    for version in objects(spec.get("versions")):
        name = text(version.get("name"))
        if version.get("storage") is True and name not in left:
            words = f"must have the storage version {name}"
            yield DefinitionFault(path, f"{place}: Invalid value: {json_text(stored)}: {words}")
        left.pop(name, None)
    for name, index in left.items():
        words = (
            f"missing from spec.versions; {name} was previously a storage version, and must remain in "
            f"spec.versions until a storage migration ensures no data remains persisted in {name} and "
            f"removes {name} from status.storedVersions"
        )
        yield DefinitionFault(path, f"{place}[{index}]: Invalid value: {quote_text(name)}: {words}")


def _stored_in(spec: Mapping[str, Any]) -> list[str]:
    return [text(each.get("name")) for each in objects(spec.get("versions")) if each.get("storage") is True]


def _takes_any_structure(spec: Mapping[str, Any]) -> bool:
    """Whether the schema keeps unknown fields and has no keyword that requires a structure."""
    schemas = [schema_of(each) for each in objects(spec.get("versions"))]
    return spec.get("preserveUnknownFields") is True and not any(
        has_keyword(schema, _STRUCTURAL_KEYWORDS) for schema in schemas
    )


def _is_established(old: Mapping[str, Any]) -> bool:
    conditions = objects(within(old, "status").get("conditions"))
    return any(each.get("type") == "Established" and each.get("status") == "True" for each in conditions)


def _rules(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for rule in objects(value.get("x-kubernetes-validations")):
            yield from (str(rule[key]) for key in ("rule", "messageExpression") if rule.get(key))
        for inner in value.values():
            yield from _rules(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _rules(inner)
