"""Parse the manifest of a CustomResourceDefinition.

v1 follows the API. v1beta1, which clusters dropped with Kubernetes 1.22 and users still keep, is converted as
by its last servers (apiextensions/v1/conversion.go): ``spec.version`` is the only version if
``spec.versions`` is empty; ``spec.validation`` and ``spec.subresources`` apply to every version.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NoReturn

from specmux_converters.errors import InvalidDocument, cut
from specmux_converters.group_versions import GroupVersion
from specmux_converters.json_values import mapping, within
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.losses import pointer_to


@dataclass(frozen=True, slots=True)
class Problem:
    """A fault of a manifest. ``crd``: its name, "" if it has none; ``pointer`` (RFC 6901) into the manifest.

    ``construct``: what is missing from the documents: "manifest" for everything, "version", or "schema".
    """

    crd: str
    pointer: str
    construct: str
    reason: str


_V1: Final = "apiextensions.k8s.io/v1"
_V1BETA1: Final = "apiextensions.k8s.io/v1beta1"

_LABEL: Final = re.compile(r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?")
"""DNS-1035, as the API requires for plurals, kinds (in lower case) and versions."""
_SUBDOMAIN: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_SUBDOMAIN_MAX: Final = 253


@dataclass(frozen=True, slots=True)
class Version:
    """A served version. ``schema``: the value at ``schema_path``; None if there is none."""

    name: str
    schema: Any
    schema_path: tuple[str | int, ...]
    has_status: bool
    has_scale: bool
    selectable_fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CRD:
    group: str
    kind: str
    list_kind: str
    plural: str
    is_namespaced: bool
    versions: tuple[Version, ...]

    @property
    def name(self) -> str:
        """The required ``metadata.name``."""
        return f"{self.plural}.{self.group}"

    def group_version(self, version: Version) -> GroupVersion:
        return GroupVersion(f"apis/{self.group}/{version.name}")


def read_manifest(manifest: Any, problems: list[Problem]) -> CRD:
    """Faults of one version are added to ``problems`` and affect only that version.

    Raises InvalidDocument if all versions are affected.
    """
    root = _Place(manifest)
    if root.value("kind") != "CustomResourceDefinition":
        root.refuse("must be CustomResourceDefinition", "kind")
    if root.value("apiVersion") not in (_V1, _V1BETA1):
        root.refuse(f"must be {_V1} or {_V1BETA1}", "apiVersion")
    is_beta = root.value("apiVersion") == _V1BETA1
    spec = root.object("spec")
    names = spec.object("names")
    group = spec.subdomain("group")
    kind = names.label("kind", fold=True)
    plural = names.label("plural")
    return CRD(
        group=group,
        kind=kind,
        list_kind=_list_kind(names, kind),
        plural=plural,
        is_namespaced=_is_namespaced(spec, is_beta),
        versions=tuple(_versions(spec, is_beta, f"{plural}.{group}", problems)),
    )


def shown_name(manifest: Any) -> str:
    """A name for a manifest of any content."""
    name = within(manifest, "metadata").get("name")
    return cut(name) if isinstance(name, str) else ""


def _list_kind(names: _Place, kind: str) -> str:
    if not names.value("listKind"):
        return f"{kind}List"
    list_kind = names.label("listKind", fold=True)
    if list_kind == kind:
        names.refuse("must not be the kind", "listKind")
    return list_kind


def _is_namespaced(spec: _Place, is_beta: bool) -> bool:
    scope = spec.value("scope")
    if is_beta and not scope:
        return True
    if scope not in ("Namespaced", "Cluster"):
        spec.refuse("must be Namespaced or Cluster", "scope")
    return bool(scope == "Namespaced")


def _versions(spec: _Place, is_beta: bool, crd: str, problems: list[Problem]) -> Iterator[Version]:
    seen: set[str] = set()
    for entry, *path in _version_entries(spec, is_beta):
        try:
            version = _version(_Place(entry, *path), spec, is_beta)
            if version is None:
                continue
            if version.name in seen:
                raise InvalidDocument("the version is there twice", pointer=pointer_to(*path, "name"))
        except InvalidDocument as fault:
            problems.append(Problem(crd, fault.pointer, "version", fault.reason))
            continue
        seen.add(version.name)
        yield version


def _version_entries(spec: _Place, is_beta: bool) -> list[tuple[Any, *tuple[str | int, ...]]]:
    """Each with its path."""
    entries = spec.value("versions")
    if is_beta and not entries and spec.value("version"):
        return [({"name": spec.value("version"), "served": True}, "spec")]
    if not isinstance(entries, list) or not entries:
        spec.refuse("must be an array of versions", "versions")
    return [(entry, "spec", "versions", index) for index, entry in enumerate(entries)]


def _version(place: _Place, spec: _Place, is_beta: bool) -> Version | None:
    """None for a version that is not served."""
    served = place.value("served")
    if served is not None and not isinstance(served, bool):
        place.refuse("must be a boolean", "served")
    if not served:
        return None
    common = spec if is_beta else None
    subresources = _either(common, "subresources", place, "subresources")
    holder = _either(common, "validation", place, "schema")
    return Version(
        name=place.label("name"),
        schema=holder.value("openAPIV3Schema") if holder else None,
        schema_path=(*holder.path, "openAPIV3Schema") if holder else (),
        has_status=subresources is not None and subresources.optional("status") is not None,
        has_scale=subresources is not None and subresources.optional("scale") is not None,
        selectable_fields=tuple(_selectable_fields(common, place)),
    )


def _either(common: _Place | None, common_key: str, place: _Place, key: str) -> _Place | None:
    """The setting for all versions (v1beta1), or of this version."""
    found = common.optional(common_key) if common else None
    return found if found is not None else place.optional(key)


def _selectable_fields(common: _Place | None, place: _Place) -> Iterator[str]:
    where = place if common is None or common.value("selectableFields") is None else common
    fields = where.value("selectableFields")
    if fields is None:
        return
    if not isinstance(fields, list):
        where.refuse("must be an array", "selectableFields")
    for index, field in enumerate(fields):
        json_path = mapping(field).get("jsonPath")
        if not isinstance(json_path, str):
            where.refuse("must have a jsonPath", "selectableFields", index)
        yield json_path.removeprefix(".")


class _Place:
    """An object in the manifest, with its path."""

    def __init__(self, node: Any, *path: str | int) -> None:
        self.path = path
        if not isinstance(node, dict):
            self.refuse("must be an object")
        self._node = node

    def refuse(self, reason: str, *step: str | int) -> NoReturn:
        raise InvalidDocument(reason, pointer=pointer_to(*self.path, *step))

    def value(self, key: str) -> Any:
        """None if absent; to the API, null means absent."""
        return self._node.get(key)

    def object(self, key: str) -> _Place:
        return _Place(self.value(key), *self.path, key)

    def optional(self, key: str) -> _Place | None:
        return None if self.value(key) is None else self.object(key)

    def label(self, key: str, *, fold: bool = False) -> str:
        """``fold``: compare in lower case, as for kinds."""
        value = self.value(key)
        if not isinstance(value, str) or not _LABEL.fullmatch(value.lower() if fold else value):
            self.refuse("must be a DNS-1035 label" + " in any case" * fold, key)
        return value

    def subdomain(self, key: str) -> str:
        value = self.value(key)
        if not isinstance(value, str) or len(value) > _SUBDOMAIN_MAX or not _SUBDOMAIN.fullmatch(value):
            self.refuse("must be a DNS-1123 subdomain", key)
        return value
