"""Schemas of meta/v1 and of Scale, and query parameters, as each release has them: ``templates.json`` has the
newest release's, and merge patches (RFC 7386) to the older ones; ``tests/converters/crd/record_templates.py``
writes it.

They are the API's own texts, word for word (kubernetes/apimachinery, Apache-2.0): a document without them
would differ from the one an apiserver serves. The texts of metadata stand in the builder's own code, the same
in every release (apiextensions-apiserver, pkg/controller/openapi/builder/builder.go).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pkgutil import get_data
from typing import Any, Final

import orjson

from specmux_converters.document import Document
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.operations import GROUP_VERSION_KIND
from specmux_converters.releases import NEWEST, OLDEST

PREFIX: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
DELETE_OPTIONS: Final = PREFIX + "DeleteOptions"
SCALE: Final = "io.k8s.api.autoscaling.v1.Scale"
CONVENTIONS: Final = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"

_DATA: Final = orjson.loads(get_data(__package__, "templates.json") or b"")

META_SCHEMAS: Final[Mapping[str, Document]] = _DATA["schemas"]
"""ObjectMeta, ListMeta and what they refer to, of the newest release."""

EMBEDDED_FIELDS: Final[Mapping[str, Any]] = {**_DATA["embedded_fields"], "metadata": _DATA["object_meta"]}
"""apiVersion, kind and metadata of an embedded object."""


@dataclass(frozen=True, slots=True)
class SharedParts:
    """The parts that documents of custom resources share in a release."""

    schemas: Mapping[str, Document]
    parameters: Mapping[str, tuple[Document, ...]]
    """The parameters by the action of a request; "pretty" belongs to every path."""
    options_kinds: list[dict[str, str]]
    """The kinds of DeleteOptions, which no built-in document lists for all groups since Kubernetes 1.36."""


@lru_cache(maxsize=NEWEST - OLDEST + 1)
def shared_parts(minor: int) -> SharedParts:
    """The shared parts of a known minor release."""
    data = _DATA
    for row in _DATA["older"]:
        if minor < row["until"]:
            data = _merge_patch(data, row["patch"])
    versions = sorted(each.split("/") for each in data["options"])
    kinds = [{"group": group, "kind": "DeleteOptions", "version": version} for group, version in versions]
    schemas: dict[str, Document] = data["schemas"]
    return SharedParts(
        schemas={**schemas, DELETE_OPTIONS: {**schemas[DELETE_OPTIONS], GROUP_VERSION_KIND: kinds}},
        parameters={
            action: tuple(listed[name] for name in sorted(listed))
            for action, listed in data["parameters"].items()
        },
        options_kinds=kinds,
    )


def _merge_patch(value: Any, patch: Any) -> Any:
    if not (isinstance(value, dict) and isinstance(patch, dict)):
        return patch
    kept = {key: item for key, item in value.items() if key not in patch}
    return kept | {key: _merge_patch(value.get(key), each) for key, each in patch.items() if each is not None}


def reference(component: str) -> Document:
    return {"$ref": f"#/components/schemas/{component}"}


def object_fields(type_meta: Mapping[str, Any]) -> Mapping[str, Any]:
    """``type_meta``: apiVersion and kind as described by the release."""
    return {**type_meta, "metadata": _DATA["object_meta"]}


def list_fields(type_meta: Mapping[str, Any]) -> Mapping[str, Any]:
    """The ``object_fields`` of a list."""
    return {**type_meta, "metadata": _DATA["list_meta"]}
