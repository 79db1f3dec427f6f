"""Metadata that an update may not change (apimachinery, pkg/api/validation/objectmeta.go; apiserver,
pkg/endpoints/handlers and pkg/registry/rest/update.go)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from specmux_converters.go.text import quoted
from specmux_converters.json_values import within
from specmux_schemas.validation.metadata.field_errors import invalid
from specmux_schemas.validation.metadata.object_metadata import MetadataError

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


def address_fault(new: Mapping[str, Any], old: Mapping[str, Any]) -> MetadataError | None:
    """Why an object is no new state of the stored one: the URL has its name.

    Of metadata each; what the stored one does not say, such as a manifest's namespace, is not compared.
    """
    namespace, stored_namespace = _text(new, "namespace"), _text(old, "namespace")
    if namespace and stored_namespace and namespace != stored_namespace:
        text = "the namespace of the provided object does not match the namespace sent on the request"
        return MetadataError(("metadata", "namespace"), text)
    name, stored_name = _text(new, "name"), _text(old, "name")
    if stored_name and name != stored_name:
        text = f"the name of the object ({name}) does not match the name on the URL ({stored_name})"
        return MetadataError(("metadata", "name"), text)
    return None


def conflict(new: Mapping[str, Any], old: Mapping[str, Any], prefix: str) -> MetadataError | None:
    """Why the stored object is not the one that the update means (HTTP 409). ``prefix``: see
    ``storage_prefix``."""
    uid, stored = _text(new, "uid"), _text(old, "uid")
    if uid and stored and uid != stored:
        key = "/".join(each for each in (prefix, _text(old, "namespace"), _text(old, "name")) if each)
        text = (
            f"StorageError: invalid object, Code: 4, Key: /{key}, ResourceVersion: 0, AdditionalErrorMsg:"
            f" Precondition failed: UID in precondition: {uid}, UID in object meta: {stored}"
        )
        return MetadataError(("metadata", "uid"), text)
    version, stored = _text(new, "resourceVersion"), _text(old, "resourceVersion")
    if version and stored and version != stored:
        text = "the object has been modified; please apply your changes to the latest version and try again"
        return MetadataError(("metadata", "resourceVersion"), text)
    return None


def storage_prefix(group: str, resource: str, *, is_custom: bool) -> str:
    """Where objects of a resource lie in etcd (kubeapiserver, default_storage_factory_builder.go)."""
    is_native = not is_custom and (not group.count(".") or group.endswith(".k8s.io"))
    return _NATIVE_PREFIXES.get(resource, resource) if is_native else f"{group}/{resource}"


def update_errors(new: Mapping[str, Any], old: Mapping[str, Any]) -> Iterator[MetadataError]:
    """Of metadata each. A resourceVersion that is left out is no error: manifests have none."""
    if old.get("deletionTimestamp") is not None:
        extra = sorted(set(_texts(new)) - set(_texts(old)))
        if extra:
            listed = ", ".join(map(quoted, extra))
            text = (
                "no new finalizers can be added if the object is being deleted, "
                f"found new finalizers []string{{{listed}}}"
            )
            yield _error("finalizers", f"metadata.finalizers: Forbidden: {text}")
    uid, stored = _text(new, "uid"), _text(old, "uid")
    if uid and stored and uid != stored:
        yield _error("uid", invalid("metadata.uid", uid, _IMMUTABLE))
    for name in _SET_BY_SERVER:
        if new.get(name) is not None and old.get(name) is None:
            yield _error(name, invalid(f"metadata.{name}", new[name], _IMMUTABLE))


def metadata_of(value: Any) -> Mapping[str, Any]:
    return within(value, "metadata")


def _error(field: str, text: str) -> MetadataError:
    return MetadataError(("metadata", field), text)


def _text(metadata: Mapping[str, Any], name: str) -> str:
    value = metadata.get(name)
    return value if isinstance(value, str) else ""


def _texts(metadata: Mapping[str, Any]) -> list[str]:
    found = metadata.get("finalizers")
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []
