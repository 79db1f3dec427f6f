"""What an apiserver says of a CustomResourceDefinition that is created (apiextensions-apiserver,
pkg/apis/apiextensions: ValidateCustomResourceDefinition, v1/conversion.go, v1/defaults.go).

The values of ``default`` are not validated, nor are selectable fields and the client of a webhook.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from specmux_converters.go.text import json_text, quoted
from specmux_schemas.validation.definitions.definition_fault import (
    DEFINITION,
    DefinitionFault,
    fault,
    objects,
)
from specmux_schemas.validation.definitions.names import metadata_faults, name_faults, spec_name_faults
from specmux_schemas.validation.definitions.schemas import schema_faults, status_faults
from specmux_schemas.validation.definitions.version_fields import (
    column_faults,
    deprecation_faults,
    scale_faults,
)
from specmux_schemas.validation.metadata.field_errors import shown
from specmux_schemas.validation.metadata.names import label_1035_faults
from specmux_schemas.validation.releases import NEWEST
from specmux_schemas.validation.report import Path

_LIFTED: Final = {
    "schema": "Schema",
    "subresources": "Subresources",
    "additionalPrinterColumns": "AdditionalPrinterColumns",
    "selectableFields": "SelectableFields",
}
"""What is moved to the spec where all versions say the same, and its name in Go: texts have it there."""
_CONVERTERS: Final = ("None", "Webhook")
_REVIEWS: Final = ("v1", "v1beta1")


def definition_faults(manifest: Mapping[str, Any], *, minor: int = NEWEST) -> list[DefinitionFault]:
    """``manifest`` is of apiextensions.k8s.io/v1; one of another version has no faults here. ``minor`` is the
    release of Kubernetes, for its CEL."""
    if manifest.get("apiVersion") != f"{DEFINITION.group}/{DEFINITION.version}":
        return []
    spec = manifest.get("spec")
    spec = spec if isinstance(spec, Mapping) else {}
    found = [*metadata_faults(manifest, spec), *spec_name_faults(spec)]
    return [*found, *_Versions(spec, minor).faults(), *_conversion_faults(spec)]


class _Versions:
    def __init__(self, spec: Mapping[str, Any], minor: int) -> None:
        self._spec = spec
        self._minor = minor
        self._versions = objects(spec.get("versions"))
        first = self._versions[0] if self._versions else {}
        self._lifted = {
            key
            for key in _LIFTED
            if self._versions and all(each.get(key) == first.get(key) for each in self._versions)
        }

    def faults(self) -> Iterator[DefinitionFault]:
        for index, version in enumerate(self._versions):
            if _schema_of(version) is None:
                yield fault(("spec", "versions", index, "schema", "openAPIV3Schema"), "Required value")
        for index, version in enumerate(self._versions):
            yield from self._named(index, version)
            place: Path = ("spec", "versions", index)
            yield from deprecation_faults(version, place)
            yield from self._fields(index, version, is_lifted=False)
        yield from self._counted()
        names = self._spec.get("names")
        yield from name_faults(names if isinstance(names, Mapping) else {})
        if self._versions:
            yield from self._fields(0, self._versions[0], is_lifted=True)
        if self._spec.get("preserveUnknownFields") is True:
            words = "set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
            text = f"Invalid value: true: cannot set to true, {words}"
            yield fault(("spec", "preserveUnknownFields"), text)

    def _named(self, index: int, version: Mapping[str, Any]) -> Iterator[DefinitionFault]:
        name = version.get("name")
        name = name if isinstance(name, str) else ""
        faults = label_1035_faults(name)
        if faults:
            text = f"Invalid value: {quoted(name)}: {','.join(faults)}"
            yield fault(("spec", "versions", index, "name"), text)

    def _counted(self) -> Iterator[DefinitionFault]:
        names = [each.get("name") for each in self._versions]
        if any(name in names[:index] for index, name in enumerate(names)):
            yield self._of_all("must contain unique version names")
        stored = sum(each.get("storage") is True for each in self._versions)
        if stored != 1:
            yield self._of_all("must have exactly one version marked as storage version")
        if not stored:
            text = "Invalid value: null: must have at least one stored version"
            yield DefinitionFault(("spec", "versions"), f"status.storedVersions: {text}")

    def _of_all(self, words: str) -> DefinitionFault:
        written = f"[{','.join(map(self._written, self._versions))}]" if self._versions else "null"
        return fault(("spec", "versions"), f"Invalid value: {written}: {words}")

    def _written(self, version: Mapping[str, Any]) -> str:
        """As Go writes a version in memory, but for values that are not moved: those are the manifest's."""
        fields = {
            "Name": version.get("name") or "",
            **{key.capitalize(): version.get(key) is True for key in ("served", "storage", "deprecated")},
            "DeprecationWarning": version.get("deprecationWarning"),
            **{name: None if key in self._lifted else version.get(key) for key, name in _LIFTED.items()},
        }
        return "{" + ",".join(f"{json_text(name)}:{json_text(value)}" for name, value in fields.items()) + "}"

    def _fields(
        self, index: int, version: Mapping[str, Any], *, is_lifted: bool
    ) -> Iterator[DefinitionFault]:
        """Of what is in the spec, or in its own version."""
        path: Path = ("spec", "versions", index)
        text = "spec" if is_lifted else f"spec.versions[{index}]"
        if ("schema" in self._lifted) is is_lifted:
            yield from self._schema(version, (*path, "schema"), is_lifted=is_lifted, text=text)
        if ("subresources" in self._lifted) is is_lifted:
            yield from scale_faults(version, path, text)
        if ("additionalPrinterColumns" in self._lifted) is is_lifted:
            yield from column_faults(version, path, text)

    def _schema(
        self, version: Mapping[str, Any], path: Path, *, is_lifted: bool, text: str
    ) -> Iterator[DefinitionFault]:
        schema = _schema_of(version)
        if schema is None:
            return
        prefix = f"{text}.{'validation' if is_lifted else 'schema'}.openAPIV3Schema"
        root = (*path, "openAPIV3Schema")
        if any(map(_has_status, self._versions if is_lifted else [version])):
            yield from status_faults(schema, root, prefix)
        for found in schema_faults(schema, prefix, minor=self._minor):
            yield DefinitionFault((*root, *found.path), found.text)


def _schema_of(version: Mapping[str, Any]) -> Mapping[str, Any] | None:
    holder = version.get("schema")
    schema = holder.get("openAPIV3Schema") if isinstance(holder, Mapping) else None
    return schema if isinstance(schema, Mapping) else None


def _has_status(version: Mapping[str, Any]) -> bool:
    subresources = version.get("subresources")
    return isinstance(subresources, Mapping) and subresources.get("status") is not None


def _conversion_faults(spec: Mapping[str, Any]) -> Iterator[DefinitionFault]:
    conversion = spec.get("conversion")
    if not isinstance(conversion, Mapping):
        return
    path: Path = ("spec", "conversion")
    strategy = conversion.get("strategy") or ""
    if not strategy:
        yield fault((*path, "strategy"), "Required value")
    elif strategy not in _CONVERTERS:
        choices = ", ".join(map(quoted, _CONVERTERS))
        yield fault((*path, "strategy"), f"Unsupported value: {shown(strategy)}: supported values: {choices}")
    webhook = conversion.get("webhook")
    webhook = webhook if isinstance(webhook, Mapping) else {}
    client, reviews = webhook.get("clientConfig"), webhook.get("conversionReviewVersions") or []
    places = [
        ((*path, "webhook", "clientConfig"), "spec.conversion.webhookClientConfig"),
        ((*path, "webhook", "conversionReviewVersions"), "spec.conversion.conversionReviewVersions"),
    ]
    if strategy != "Webhook":
        for value, (place, text) in zip((client, reviews), places, strict=True):
            if value or value == {}:
                words = "Forbidden: should not be set when strategy is not set to Webhook"
                yield DefinitionFault(place, f"{text}: {words}")
        return
    place, text = places[0]
    if not isinstance(client, Mapping):
        yield DefinitionFault(place, f"{text}: Required value: required when strategy is set to Webhook")
    elif (client.get("url") is None) == (client.get("service") is None):
        yield DefinitionFault(place, f"{text}: Required value: exactly one of url or service is required")
    place, text = places[1]
    if not reviews:
        yield DefinitionFault(place, f"{text}: Required value")
    elif isinstance(reviews, list) and not any(each in _REVIEWS for each in reviews):
        words = f"must include at least one of {', '.join(_REVIEWS)}"
        yield DefinitionFault(place, f"{text}: Invalid value: {shown(reviews)}: {words}")
