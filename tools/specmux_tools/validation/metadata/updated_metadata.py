"""Metadata that an update may not change (apimachinery, pkg/api/validation/objectmeta.go; apiserver,
pkg/endpoints/handlers and pkg/registry/rest/update.go)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from specmux_converters.go.text import quote_text
from specmux_converters.json_values import text, texts, within
from specmux_tools.validation.field_errors import FieldError, invalid

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
