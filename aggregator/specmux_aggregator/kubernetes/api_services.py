"""Parse APIService objects (apiregistration.k8s.io/v1). Pure.

A malformed object is reported by name and affects no other.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from specmux_converters.errors import cut
from specmux_converters.group_versions import GroupVersion, join_group_version
from specmux_converters.json_values import array, mapping

PORT: Final = 443
"""The port of a service reference without one."""

AUTOMANAGED: Final = "kube-aggregator.kubernetes.io/automanaged"
"""Label of the APIServices that an apiserver creates itself: "onstart" for its own, "true" for those of
CustomResourceDefinitions."""

_LABEL: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(
    r"(?=.{1,253}$)[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*"
)


@dataclass(frozen=True, slots=True)
class Condition:
    """The condition ``Available``, as seen by the cluster's aggregator."""

    is_true: bool
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class ServiceReference:
    """The Service of an extension apiserver."""

    name: str
    namespace: str
    port: int
    ca_data: bytes | None
    insecure_skip_verify: bool


@dataclass(frozen=True, slots=True)
class APIService:
    """A valid APIService. ``service``: None if the apiserver itself serves it."""

    name: str
    group_version: GroupVersion
    priorities: tuple[int, int]
    service: ServiceReference | None
    is_builtin: bool
    """Whether it belongs to the apiserver itself rather than to a CustomResourceDefinition."""
    available: Condition


def read_api_services(objects: Iterable[Mapping[str, Any]]) -> tuple[tuple[APIService, ...], tuple[str, ...]]:
    """The valid ones, sorted by name, and messages about the others."""
    services: list[APIService] = []
    problems: list[str] = []
    for item in objects:
        try:
            services.append(_api_service(item))
        except _MalformedObject as fault:
            problems.append(f"APIService {_shown_name(item)}: {fault}")
    return tuple(sorted(services, key=lambda service: service.name)), tuple(sorted(problems))


def write_note(objects: Iterable[Mapping[str, Any]]) -> bytes:
    """The input of ``recall`` after a restart: everything except what the apiserver creates for definitions.
    Status is omitted, so it changes rarely."""
    return b"[" + b",".join(filter(None, map(_note_item, objects))) + b"]"


def _note_item(item: Mapping[str, Any]) -> bytes | None:
    metadata = mapping(item.get("metadata"))
    managed = mapping(metadata.get("labels")).get(AUTOMANAGED)
    if managed == "true" or not metadata:
        return None
    short = {"name": metadata.get("name"), "labels": {AUTOMANAGED: managed}}
    try:
        return orjson.dumps({"metadata": short, "spec": item.get("spec")})
    except orjson.JSONEncodeError:
        return None  # nested too deeply to be serialized


def recall(note: bytes) -> list[Mapping[str, Any]]:
    """The objects of a note; empty for a foreign one."""
    try:
        objects = orjson.loads(note)
    except orjson.JSONDecodeError:
        return []
    return [item for item in objects if isinstance(item, dict)] if isinstance(objects, list) else []


class _MalformedObject(ValueError):
    """The object contains something invalid for an APIService; the message says where."""


def _api_service(item: Mapping[str, Any]) -> APIService:
    metadata, spec = _object(item, "metadata"), _object(item, "spec")
    name = _text(metadata, "name", "metadata.name")
    group, version = spec.get("group") or "", spec.get("version")
    if not isinstance(version, str) or not _LABEL.fullmatch(version):
        raise _MalformedObject("spec.version is no version")
    if not isinstance(group, str) or (group and not _SUBDOMAIN.fullmatch(group)):
        raise _MalformedObject("spec.group is no API group")
    if name != f"{version}.{group}":
        raise _MalformedObject(f'is not called "{version}.{cut(group)}", after its version and group')
    service = spec.get("service")
    if service is not None and not group:
        raise _MalformedObject("gives the core group to a service")
    labels = metadata.get("labels")
    return APIService(
        name=name,
        group_version=join_group_version(group, version),
        priorities=(_number(spec, "groupPriorityMinimum"), _number(spec, "versionPriority")),
        service=None if service is None else _service(_object(spec, "service"), spec),
        is_builtin=service is None and isinstance(labels, dict) and labels.get(AUTOMANAGED) == "onstart",
        available=_available(item.get("status")),
    )


def _service(service: Mapping[str, Any], spec: Mapping[str, Any]) -> ServiceReference:
    insecure = spec.get("insecureSkipTLSVerify") or False
    if not isinstance(insecure, bool):
        raise _MalformedObject("spec.insecureSkipTLSVerify is neither true nor false")
    bundle = spec.get("caBundle")
    if insecure and bundle:
        raise _MalformedObject("has spec.caBundle and spec.insecureSkipTLSVerify; it can be only one of them")
    port = service.get("port")
    port = PORT if port is None else port
    if not isinstance(port, int) or isinstance(port, bool) or not 1 <= port <= 65535:
        raise _MalformedObject("spec.service.port is no port")
    return ServiceReference(
        name=_label(service, "name"),
        namespace=_label(service, "namespace"),
        port=port,
        ca_data=_pem(bundle) if bundle else None,
        insecure_skip_verify=insecure,
    )


def _pem(bundle: object) -> bytes:
    try:
        return base64.b64decode(bundle, validate=True)  # type: ignore[arg-type]  # told by the TypeError
    except (TypeError, ValueError):
        raise _MalformedObject("spec.caBundle is not base64") from None


def _label(service: Mapping[str, Any], key: str) -> str:
    """A DNS label, since it becomes part of a URL."""
    value = service.get(key)
    if not isinstance(value, str) or not _LABEL.fullmatch(value):
        raise _MalformedObject(f"spec.service.{key} is no DNS label")
    return value


def _available(status: object) -> Condition:
    for condition in array(mapping(status).get("conditions")):
        if isinstance(condition, dict) and condition.get("type") == "Available":
            return Condition(
                condition.get("status") == "True",
                _words(condition.get("reason")),
                _words(condition.get("message")),
            )
    return Condition(False, "", "its cluster has not said whether it is available")


def _words(value: object) -> str:
    return cut(value) if isinstance(value, str) else ""


def _object(item: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = item.get(key)
    if not isinstance(value, dict):
        raise _MalformedObject(f"its {key} is no object")
    return value


def _text(item: Mapping[str, Any], key: str, where: str) -> str:
    value = item.get(key)
    if not isinstance(value, str) or not value:
        raise _MalformedObject(f"has no {where}")
    return value


def _number(spec: Mapping[str, Any], key: str) -> int:
    value = spec.get(key) or 0
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise _MalformedObject(f"spec.{key} is no number")
    return value


def _shown_name(item: Mapping[str, Any]) -> str:
    name = mapping(item.get("metadata")).get("name")
    return cut(name) if isinstance(name, str) and name else "without a name"
