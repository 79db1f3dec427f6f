"""Metadata of an object that is created, as every kind's is checked (apimachinery, pkg/api/validation), that
of embedded objects of a custom resource (apiextensions, pkg/apiserver/schema/objectmeta), and what an update
may not change of it (apiserver, pkg/endpoints/handlers and pkg/registry/rest/update.go)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import Any, Final

from specmux_converters.go.text import json_text, quote_text, size_of
from specmux_converters.json_values import array, mapping, text, texts, within
from specmux_tools.validation.decoding.type_meta import parse_group_version
from specmux_tools.validation.errors import Undecodable
from specmux_tools.validation.field_errors import FieldError, field_path, invalid, show_value, unsupported
from specmux_tools.validation.metadata.names import (
    NameRule,
    label_1035_faults,
    label_faults,
    label_value_faults,
    name_faults,
    qualified_name_faults,
)
from specmux_tools.validation.report import Path
from specmux_tools.validation.schema.structural import Structural, walk

MOST_ANNOTATIONS: Final = 256 * 1024
"""Bytes of all keys and values."""
_MOST_MANAGER: Final = 128
_MOST_SUBRESOURCE: Final = 256
_ORPHAN: Final = "orphan"
_FOREGROUND: Final = "foregroundDeletion"
_MOST_OWNERS: Final = 100
_EVENT_OWNS: Final = "/v1, Kind=Event is disallowed from being an owner"
_OWNER_TEXTS: Final = ("kind", "name", "uid")
_IMMUTABLE: Final = "field is immutable"
_NATIVE_PREFIXES: Final[Mapping[str, str]] = {
    "endpoints": "services/endpoints",
    "ingresses": "ingress",
    "nodes": "minions",
    "replicationcontrollers": "controllers",
    "services": "services/specs",
    "customresourcedefinitions": "apiextensions.k8s.io/customresourcedefinitions",
    "apiservices": "apiregistration.k8s.io/apiservices",
}
_SET_BY_SERVER: Final = ("deletionTimestamp", "deletionGracePeriodSeconds")


def metadata_errors(
    metadata: Mapping[str, Any],
    path: Path = ("metadata",),
    place: str = "metadata",
    *,
    needs_name: bool = True,
    rule: NameRule | None = NameRule.SUBDOMAIN,
) -> Iterator[FieldError]:
    """Check metadata that was decoded as ObjectMeta; ``place`` is how messages call ``path``.
    ``rule`` is that of the name; None for no check."""
    checks = _Checks(metadata, path, place)
    if rule is not None:
        yield from checks.names(rule, needs_name=needs_name)
    yield from checks.namespace()
    yield from checks.generation()
    yield from checks.labels()
    yield from checks.annotations()
    yield from checks.owners()
    yield from checks.finalizers()
    yield from checks.managed_fields()


def template_errors(metadata: Mapping[str, Any], path: Path, place: str) -> Iterator[FieldError]:
    """Labels and annotations of the metadata of a template at ``place`` (core ValidatePodTemplateSpec)."""
    checks = _Checks(metadata, path, place)
    yield from checks.labels()
    yield from checks.annotations()


class _Checks:
    def __init__(self, metadata: Mapping[str, Any], path: Path, place: str) -> None:
        self._metadata = metadata
        self._path = path
        self._place = place

    def names(self, rule: NameRule, *, needs_name: bool) -> Iterator[FieldError]:
        prefix, name = text(self._metadata.get("generateName")), text(self._metadata.get("name"))
        if prefix:
            yield from self._invalid(("generateName",), prefix, name_faults(rule, prefix, is_prefix=True))
        if name:
            yield from self._invalid(("name",), name, name_faults(rule, name))
        elif not prefix and needs_name:
            yield self._error(("name",), "Required value: name or generateName is required")

    def namespace(self) -> Iterator[FieldError]:
        namespace = text(self._metadata.get("namespace"))
        if namespace:
            yield from self._invalid(("namespace",), namespace, label_faults(namespace))

    def generation(self) -> Iterator[FieldError]:
        value = self._metadata.get("generation")
        if isinstance(value, int) and value < 0:
            yield from self._invalid(("generation",), value, ["must be greater than or equal to 0"])

    def labels(self) -> Iterator[FieldError]:
        for key, value in self._texts("labels").items():
            yield from self._invalid(("labels",), key, qualified_name_faults(key), at=key)
            yield from self._invalid(("labels",), value, label_value_faults(value), at=key)

    def annotations(self) -> Iterator[FieldError]:
        annotations = self._texts("annotations")
        for key in annotations:
            yield from self._invalid(("annotations",), key, qualified_name_faults(key.lower()), at=key)
        size = sum(size_of(key) + size_of(value) for key, value in annotations.items())
        if size > MOST_ANNOTATIONS:
            yield self._error(("annotations",), f"Too long: may not be more than {MOST_ANNOTATIONS} bytes")

    def owners(self) -> Iterator[FieldError]:
        owners = self._objects("ownerReferences")
        # Said once for each controller: of thousands the end is left out.
        listed = ",".join(map(_owner_text, owners[:_MOST_OWNERS]))
        listed += ",…" if len(owners) > _MOST_OWNERS else ""
        controllers: list[str] = []
        for index, owner in enumerate(owners):
            yield from self._owner(owner, ("ownerReferences", index))
            if owner.get("controller") is True:
                controllers.append(f"{owner.get('kind') or ''}/{owner.get('name') or ''}")
                if len(controllers) > 1:
                    names = f"{controllers[0]} and {controllers[-1]}"
                    said = "Only one reference can have Controller set to true"
                    detail = f'{said}. Found "true" in references for {names}'
                    yield self._error(("ownerReferences",), f"Invalid value: [{listed}]: {detail}")

    def _owner(self, owner: Mapping[str, Any], place: Path) -> Iterator[FieldError]:
        text = owner.get("apiVersion") or ""
        try:
            group, version = parse_group_version(text)
        except Undecodable:
            group, version = "", ""
        if not version and text:
            yield from self._invalid((*place, "apiVersion"), text, ["must be <group>/<version> or <version>"])
        for name in ("apiVersion", *_OWNER_TEXTS):
            if not owner.get(name):
                yield self._error((*place, name), "Required value: must not be empty")
        if (group, version, owner.get("kind")) == ("", "v1", "Event"):
            yield self._error(place, f"Invalid value: {_owner_text(owner)}: {_EVENT_OWNS}")

    def finalizers(self) -> Iterator[FieldError]:
        finalizers = [each or "" for each in array(self._metadata.get("finalizers"))]
        for finalizer in finalizers:
            yield from self._invalid(("finalizers",), finalizer, qualified_name_faults(finalizer))
        if _ORPHAN in finalizers and _FOREGROUND in finalizers:
            detail = f"finalizer {_ORPHAN} and {_FOREGROUND} cannot be both set"
            yield from self._invalid(("finalizers",), finalizers, [detail])

    def managed_fields(self) -> Iterator[FieldError]:
        for index, entry in enumerate(self._objects("managedFields")):
            yield from self._entry(("managedFields", index), entry)

    def _entry(self, place: Path, entry: Mapping[str, Any]) -> Iterator[FieldError]:
        operation = entry.get("operation") or ""
        if operation not in ("Apply", "Update"):
            supported = unsupported(operation, ("Apply", "Update"))
            detail = supported if operation else "Required value: must not be empty"
            yield self._error((*place, "operation"), detail)
        kind = entry.get("fieldsType") or ""
        if kind not in ("", "FieldsV1"):
            yield from self._invalid((*place, "fieldsType"), kind, ["must be `FieldsV1`"])
        for name, most in (("manager", _MOST_MANAGER), ("subresource", _MOST_SUBRESOURCE)):
            value = entry.get(name) or ""
            if size_of(value) > most:
                yield self._error((*place, name), f"Too long: may not be more than {most} bytes")
            elif name == "manager":
                for at, mark in enumerate(value):
                    if not mark.isprintable():
                        fault = f"invalid character U+{ord(mark):04X} (at position {size_of(value[:at])})"
                        yield from self._invalid((*place, name), value, [fault])

    def _invalid(
        self, field: Path, value: Any, faults: list[str], at: str | None = None
    ) -> Iterator[FieldError]:
        """``at`` is the key below the field that is meant; the message does not name it."""
        for fault in faults:
            yield self._error(field, f"Invalid value: {show_value(value)}: {fault}", at)

    def _error(self, field: Path, text: str, at: str | None = None) -> FieldError:
        path = (*self._path, *field) if at is None else (*self._path, *field, at)
        return FieldError(path, f"{self._place}.{field_path(field)}: {text}")

    def _texts(self, name: str) -> dict[str, str]:
        return {key: item or "" for key, item in mapping(self._metadata.get(name)).items()}

    def _objects(self, name: str) -> list[Mapping[str, Any]]:
        return [item or {} for item in array(self._metadata.get(name))]


def _owner_text(owner: Mapping[str, Any]) -> str:
    """An OwnerReference as Go writes it: in the order of its struct, without pointers that are not set."""
    fields = [(name, owner.get(name) or "") for name in ("apiVersion", *_OWNER_TEXTS)]
    pointers = ("controller", "blockOwnerDeletion")
    fields += [(name, owner[name]) for name in pointers if owner.get(name) is not None]
    return "{" + ",".join(f"{json_text(name)}:{json_text(value)}" for name, value in fields) + "}"


def embedded_errors(value: Any, schema: Structural) -> list[FieldError]:
    return [
        error
        for found, inner, path, place in walk(value, schema, attrgetter("has_embedded"))
        if inner.is_embedded and isinstance(found, dict)
        for error in _embed(found, path, place)
    ]


def _embed(value: dict[str, Any], path: Path, place: str) -> Iterator[FieldError]:
    prefix = f"{place}." if place else ""
    for name, faults in (("apiVersion", _version_faults), ("kind", _kind_faults)):
        if name not in value:
            yield FieldError((*path, name), f"{prefix}{name}: Required value")
        elif isinstance(value[name], str):
            detail = faults(value[name])
            if detail:
                yield FieldError((*path, name), invalid(f"{prefix}{name}", value[name], detail))
    metadata = value.get("metadata")
    if isinstance(metadata, dict):
        yield from metadata_errors(
            metadata,
            (*path, "metadata"),
            f"{prefix}metadata",
            needs_name=False,
            rule=NameRule.PATH_SEGMENT,
        )


def _version_faults(text: str) -> str:
    if not text:
        return "must not be empty"
    try:
        parse_group_version(text)
    except Undecodable as error:
        return error.text
    return ""


def _kind_faults(text: str) -> str:
    if not text:
        return "must not be empty"
    faults = label_1035_faults(text.lower())
    return f"may have mixed case, but should otherwise match: {','.join(faults)}" if faults else ""


def address_fault(new: Mapping[str, Any], old: Mapping[str, Any]) -> FieldError | None:
    """Why an object is no new state of the stored one: the URL has its name.

    Of metadata each; what the stored one does not say, such as a manifest's namespace, is not compared.
    """
    namespace, stored_namespace = text(new.get("namespace")), text(old.get("namespace"))
    if namespace and stored_namespace and namespace != stored_namespace:
        said = "the namespace of the provided object does not match the namespace sent on the request"
        return FieldError(("metadata", "namespace"), said)
    name, stored_name = text(new.get("name")), text(old.get("name"))
    if stored_name and name != stored_name:
        said = f"the name of the object ({name}) does not match the name on the URL ({stored_name})"
        return FieldError(("metadata", "name"), said)
    return None


def conflict(new: Mapping[str, Any], old: Mapping[str, Any], prefix: str) -> FieldError | None:
    """Why the stored object is not the one that the update means (HTTP 409). ``prefix``: see
    ``storage_prefix``."""
    uid, stored = text(new.get("uid")), text(old.get("uid"))
    if uid and stored and uid != stored:
        key = "/".join(each for each in (prefix, text(old.get("namespace")), text(old.get("name"))) if each)
        said = (
            f"StorageError: invalid object, Code: 4, Key: /{key}, ResourceVersion: 0, AdditionalErrorMsg:"
            f" Precondition failed: UID in precondition: {uid}, UID in object meta: {stored}"
        )
        return FieldError(("metadata", "uid"), said)
    version, stored = text(new.get("resourceVersion")), text(old.get("resourceVersion"))
    if version and stored and version != stored:
        said = "the object has been modified; please apply your changes to the latest version and try again"
        return FieldError(("metadata", "resourceVersion"), said)
    return None


def storage_prefix(group: str, resource: str, *, is_custom: bool) -> str:
    """The prefix of a resource's objects in etcd (kubeapiserver, default_storage_factory_builder.go)."""
    is_native = not is_custom and (not group.count(".") or group.endswith(".k8s.io"))
    return _NATIVE_PREFIXES.get(resource, resource) if is_native else f"{group}/{resource}"


def update_errors(new: Mapping[str, Any], old: Mapping[str, Any]) -> Iterator[FieldError]:
    """Compare the metadata of both. A resourceVersion that is left out is no error: manifests have none."""
    if old.get("deletionTimestamp") is not None:
        extra = sorted(set(texts(new.get("finalizers"))) - set(texts(old.get("finalizers"))))
        if extra:
            listed = ", ".join(map(quote_text, extra))
            said = (
                "no new finalizers can be added if the object is being deleted, "
                f"found new finalizers []string{{{listed}}}"
            )
            yield _error("finalizers", f"metadata.finalizers: Forbidden: {said}")
    uid, stored = text(new.get("uid")), text(old.get("uid"))
    if uid and stored and uid != stored:
        yield _error("uid", invalid("metadata.uid", uid, _IMMUTABLE))
    for name in _SET_BY_SERVER:
        if new.get(name) is not None and old.get(name) is None:
            yield _error(name, invalid(f"metadata.{name}", new[name], _IMMUTABLE))


def metadata_of(value: Any) -> Mapping[str, Any]:
    return within(value, "metadata")


def _error(field: str, text: str) -> FieldError:
    return FieldError(("metadata", field), text)
