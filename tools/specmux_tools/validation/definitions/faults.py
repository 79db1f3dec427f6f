"""Faults of a CustomResourceDefinition that is created or updated (apiextensions-apiserver,
pkg/apis/apiextensions: ValidateCustomResourceDefinition, v1/conversion.go, v1/defaults.go)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from specmux_converters.go.text import quote_text
from specmux_converters.json_values import array, mapping, text, within
from specmux_converters.releases import NEWEST
from specmux_tools.validation.definitions.conversions import conversion_faults
from specmux_tools.validation.definitions.definition_fault import (
    DEFINITION,
    NO_ALLOWANCES,
    Allowances,
    DefinitionFault,
    fault,
    objects,
)
from specmux_tools.validation.definitions.internal_version import are_equal, version_in_memory, write_in_go
from specmux_tools.validation.definitions.keywords import has_keyword, structure_fault
from specmux_tools.validation.definitions.schemas import schema_faults, status_faults
from specmux_tools.validation.definitions.updates import allowances_of, immutable_faults, storage_faults
from specmux_tools.validation.definitions.version_fields import (
    column_faults,
    deprecation_faults,
    scale_faults,
    schema_of,
    selectable_faults,
)
from specmux_tools.validation.field_errors import unsupported
from specmux_tools.validation.metadata.names import (
    label_1035_faults,
    subdomain_faults,
    without_trailing_dash,
)
from specmux_tools.validation.report import Path
from specmux_tools.validation.schema.urls import BadUrl, read_url

_SCOPES: Final = ("Cluster", "Namespaced")
_PROTECTED: Final = ("k8s.io", "kubernetes.io")
_APPROVAL: Final = "api-approved.kubernetes.io"
_KEP: Final = "see https://github.com/kubernetes/enhancements/pull/1111"
_ANY_CASE: Final = "may have mixed case, but should otherwise match: "


def metadata_faults(
    manifest: Mapping[str, Any], spec: Mapping[str, Any], old: Mapping[str, Any] | None = None
) -> Iterator[DefinitionFault]:
    """An update cannot change the name and may keep an invalid approval."""
    metadata, group = mapping(manifest.get("metadata")), text(spec.get("group"))
    if old is not None:
        is_left = _approval_state(mapping(old.get("metadata"))) == _approval_state(metadata)
        yield from () if is_left else _approval_faults(metadata, group)
        return
    prefix, name = text(metadata.get("generateName")), text(metadata.get("name"))
    wanted = f"{text(within(spec, 'names').get('plural'))}.{group}"
    checks = (("generateName", prefix, without_trailing_dash(prefix)), ("name", name, name))
    for key, value, checked in checks:
        faults = subdomain_faults(checked) if value else []
        if value and value != wanted:
            faults.append('must be spec.names.plural+"."+spec.group')
        for each in faults:
            yield fault(("metadata", key), f"Invalid value: {quote_text(value)}: {each}")
    if not name and not prefix:
        yield fault(("metadata", "name"), "Required value: name or generateName is required")
    yield from _approval_faults(metadata, group)


def _approval_faults(metadata: Mapping[str, Any], group: str) -> Iterator[DefinitionFault]:
    """Groups of Kubernetes itself need an approval, or a statement that they have none."""
    if not any(group == each or group.endswith(f".{each}") for each in _PROTECTED):
        return
    approval = _approval(metadata)
    path = ("metadata", "annotations", _APPROVAL)
    place = f"metadata.annotations[{_APPROVAL}]"
    words = f"protected groups must have approval annotation {quote_text(_APPROVAL)}"
    if not approval:
        yield DefinitionFault(path, f"{place}: Required value: {words}, {_KEP}")
    elif not approval.startswith("unapproved") and not _is_url(approval):
        words = f'{words} with either a URL or a reason starting with "unapproved", {_KEP}'
        yield DefinitionFault(path, f"{place}: Invalid value: {quote_text(approval)}: {words}")


def _approval(metadata: Mapping[str, Any]) -> str:
    return text(within(metadata, "annotations").get(_APPROVAL))


def _approval_state(metadata: Mapping[str, Any]) -> str:
    approval = _approval(metadata)
    if not approval:
        return "missing"
    return "bypassed" if approval.startswith("unapproved") else "approved" if _is_url(approval) else "invalid"


def _is_url(text: str) -> bool:
    try:
        url = read_url(text)
    except BadUrl:
        return False
    return bool(url.scheme and url.host)


def spec_name_faults(spec: Mapping[str, Any]) -> Iterator[DefinitionFault]:
    group, scope = text(spec.get("group")), text(spec.get("scope"))
    faults = subdomain_faults(group)
    if not group:
        yield fault(("spec", "group"), "Required value")
    elif faults or "." not in group:
        words = ",".join(faults) or "should be a domain with at least one dot"
        yield fault(("spec", "group"), f"Invalid value: {quote_text(group)}: {words}")
    if not scope:
        yield fault(("spec", "scope"), "Required value")
    elif scope not in _SCOPES:
        yield fault(("spec", "scope"), unsupported(scope, _SCOPES))


def name_faults(names: Mapping[str, Any]) -> Iterator[DefinitionFault]:
    """``singular`` and ``listKind`` default to names derived from the kind."""
    kind = text(names.get("kind"))
    list_kind = text(names.get("listKind")) or (f"{kind}List" if kind else "")
    values = {
        "plural": text(names.get("plural")),
        "singular": text(names.get("singular")) or kind.lower(),
        "kind": kind,
        "listKind": list_kind,
    }
    for key, value in values.items():
        if not value:
            yield fault(("spec", "names", key), "Required value")
    for key, value in values.items():
        is_kind = key in ("kind", "listKind")
        faults = label_1035_faults(value.lower() if is_kind else value) if value else []
        if faults:
            words = _ANY_CASE * is_kind + ",".join(faults)
            yield fault(("spec", "names", key), f"Invalid value: {quote_text(value)}: {words}")
    yield from _label_faults(names, "shortNames")
    if kind and kind == list_kind:
        words = "kind and listKind may not be the same"
        yield fault(("spec", "names", "listKind"), f"Invalid value: {quote_text(kind)}: {words}")
    yield from _label_faults(names, "categories")


def _label_faults(names: Mapping[str, Any], key: str) -> Iterator[DefinitionFault]:
    for index, value in enumerate(array(names.get(key))):
        faults = label_1035_faults(text(value))
        if faults:
            words = ",".join(faults)
            yield fault(("spec", "names", key, index), f"Invalid value: {quote_text(text(value))}: {words}")


_LIFTED: Final = {
    "schema": "Schema",
    "subresources": "Subresources",
    "additionalPrinterColumns": "AdditionalPrinterColumns",
    "selectableFields": "SelectableFields",
}
"""Fields that are moved to the spec if all versions agree, with their names in Go: texts have them there."""


def definition_faults(
    manifest: Mapping[str, Any], *, minor: int = NEWEST, old: Mapping[str, Any] | None = None
) -> list[DefinitionFault]:
    """``manifest`` is of apiextensions.k8s.io/v1; one of another version has no faults here. ``minor`` is the
    release of Kubernetes, for its CEL. ``old`` is the stored definition, with its status, of an update."""
    if manifest.get("apiVersion") != f"{DEFINITION.group}/{DEFINITION.version}":
        return []
    spec = mapping(manifest.get("spec"))
    allowances = NO_ALLOWANCES if old is None else allowances_of(spec, old, minor=minor)
    return [
        *metadata_faults(manifest, spec, old),
        *spec_name_faults(spec),
        *_Versions(spec, minor, allowances).faults(),
        *storage_faults(spec, old),
        *conversion_faults(
            spec, needs_known_review=not allowances.unknown_review, takes_any_bundle=allowances.any_bundle
        ),
        *(immutable_faults(spec, old) if old is not None else ()),
        *_preserving_faults(spec, old),
    ]


def _preserving_faults(spec: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[DefinitionFault]:
    if spec.get("preserveUnknownFields") is not True:
        return
    path = ("spec", "preserveUnknownFields")
    if any(has_keyword(schema_of(each), ("default",)) for each in objects(spec.get("versions"))):
        yield fault(path, "Invalid value: true: must be false in order to use defaults in the schema")
    if within(old, "spec").get("preserveUnknownFields") is not True:
        words = "set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        yield fault(path, f"Invalid value: true: cannot set to true, {words}")


class _Versions:
    def __init__(self, spec: Mapping[str, Any], minor: int, allowances: Allowances) -> None:
        self._spec = spec
        self._minor = minor
        self._allowances = allowances
        self._versions = objects(spec.get("versions"))
        self._held = [version_in_memory(each) for each in self._versions]
        self._lifted = {
            key
            for key, name in _LIFTED.items()
            if self._held and all(are_equal(each[name], self._held[0][name]) for each in self._held)
        }
        for held in self._held:
            held.update(dict.fromkeys(map(_LIFTED.__getitem__, self._lifted)))

    def faults(self) -> Iterator[DefinitionFault]:
        yield from self._unread()
        for index, version in enumerate(self._versions):
            yield from self._name(index, version)
            place: Path = ("spec", "versions", index)
            yield from deprecation_faults(version, place)
            yield from self._fields(index, version, is_lifted=False)
        yield from self._count()
        yield from name_faults(mapping(self._spec.get("names")))
        if self._versions:
            yield from self._fields(0, self._versions[0], is_lifted=True)

    def _unread(self) -> Iterator[DefinitionFault]:
        """Versions without a schema."""
        for index, version in enumerate(self._versions):
            path = ("spec", "versions", index, "schema", "openAPIV3Schema")
            if schema_of(version) is not None:
                continue
            if not self._allowances.no_schema:
                yield fault(path, "Required value")
            elif version.get("served") is True and self._spec.get("preserveUnknownFields") is not True:
                yield fault(path, "Required value: because otherwise all fields are pruned")

    def _name(self, index: int, version: Mapping[str, Any]) -> Iterator[DefinitionFault]:
        name = text(version.get("name"))
        faults = label_1035_faults(name)
        if faults:
            words = f"Invalid value: {quote_text(name)}: {','.join(faults)}"
            yield fault(("spec", "versions", index, "name"), words)
            if index == 0 and name:  # the spec has its name, too
                yield DefinitionFault(("spec", "versions", 0, "name"), f"spec.version: {words}")

    def _count(self) -> Iterator[DefinitionFault]:
        names = [each.get("name") for each in self._versions]
        if any(name in names[:index] for index, name in enumerate(names)):
            yield self._of_all("must contain unique version names")
        stored = sum(each.get("storage") is True for each in self._versions)
        if stored != 1:
            yield self._of_all("must have exactly one version marked as storage version")

    def _of_all(self, words: str) -> DefinitionFault:
        value = write_in_go(self._held) if isinstance(self._spec.get("versions"), list) else "null"
        return fault(("spec", "versions"), f"Invalid value: {value}: {words}")

    def _fields(
        self, index: int, version: Mapping[str, Any], *, is_lifted: bool
    ) -> Iterator[DefinitionFault]:
        """Faults of the fields in the spec, or in each version."""
        path: Path = ("spec", "versions", index)
        text = "spec" if is_lifted else f"spec.versions[{index}]"
        if ("schema" in self._lifted) is is_lifted:
            yield from self._schema(version, (*path, "schema"), is_lifted=is_lifted, text=text)
        if ("subresources" in self._lifted) is is_lifted:
            yield from scale_faults(version, path, text)
        if ("additionalPrinterColumns" in self._lifted) is is_lifted:
            yield from column_faults(version, path, text)
        if ("selectableFields" in self._lifted) is is_lifted and version.get("selectableFields"):
            yield from self._selectable(version, path, text, is_lifted=is_lifted)

    def _selectable(
        self, version: Mapping[str, Any], path: Path, text: str, *, is_lifted: bool
    ) -> Iterator[DefinitionFault]:
        schema, place = schema_of(version), f"{text}.selectableFields"
        path = (*path, "selectableFields")
        if schema is None or ("schema" in self._lifted) is not is_lifted:
            others = ("validations.schema is included", "`version.schema.openAPIV3Schema` is not included")
            yield DefinitionFault(
                path, f'{place}: Invalid value: "": may only be set when {others[not is_lifted]}'
            )
            return
        unread = structure_fault(schema)
        if unread:
            yield DefinitionFault(path, f'{text}.schema.openAPIV3Schema: Invalid value: "": {unread}')
        name = "" if is_lifted else str(version.get("name"))
        takes_many = name in self._allowances.selectable
        yield from selectable_faults(version["selectableFields"], schema, path, place, takes_many=takes_many)

    def _schema(
        self, version: Mapping[str, Any], path: Path, *, is_lifted: bool, text: str
    ) -> Iterator[DefinitionFault]:
        schema = schema_of(version)
        if schema is None:
            return
        prefix = f"{text}.{'validation' if is_lifted else 'schema'}.openAPIV3Schema"
        root = (*path, "openAPIV3Schema")
        versions = self._versions if is_lifted else [version]
        if any(within(each, "subresources").get("status") is not None for each in versions):
            yield from status_faults(schema, root, prefix)
        found = schema_faults(
            schema,
            prefix,
            minor=self._minor,
            allowances=self._allowances,
            takes_cost=str(version.get("name")) in self._allowances.unchanged,
        )
        for each in found:
            yield DefinitionFault((*root, *each.path), each.text)
