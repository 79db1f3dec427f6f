"""Schemas of meta/v1 and of Scale, and query parameters, as Kubernetes 1.34 has them: ``templates.json``.

They are the API's own texts, word for word (kubernetes/apimachinery, Apache-2.0): a document without them
would differ from the one an apiserver serves. The texts of metadata stand in the builder's own code, the same
in every release from 1.30 to 1.36 (apiextensions-apiserver, pkg/controller/openapi/builder/builder.go).
"""

from __future__ import annotations

from collections.abc import Mapping
from pkgutil import get_data
from typing import Any, Final

import orjson

from specmux_converters.document import Document

PREFIX: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
SCALE: Final = "io.k8s.api.autoscaling.v1.Scale"
CONVENTIONS: Final = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"

_DATA: Final = orjson.loads(get_data(__package__, "templates.json") or b"")

META_SCHEMAS: Final[dict[str, Document]] = _DATA["meta"]
"""ObjectMeta, ListMeta and the schemas that they refer to."""

REQUEST_SCHEMAS: Final[dict[str, Document]] = _DATA["requests"]
"""Further schemas of requests and answers: DeleteOptions, Patch, Status."""

SCALE_SCHEMAS: Final[dict[str, Document]] = _DATA["scale"]

PARAMETERS: Final[dict[str, list[Document]]] = _DATA["parameters"]
"""By the action of a request; "pretty" belongs to every path."""

OPTIONS_KINDS_1_36: Final[list[dict[str, str]]] = _DATA["delete_options_1_36"]
"""The kinds of DeleteOptions in Kubernetes 1.36, whose built-in documents do not list those of all groups."""

_GONE_1_37: Final = ("scheduling.k8s.io", "v1alpha2")
_NEW_1_37: Final = (
    ("lifecycle.k8s.io", "v1alpha1"),
    ("scheduling.k8s.io", "v1alpha3"),
    ("storagemigration.k8s.io", "v1"),
)
OPTIONS_KINDS_1_37: Final[list[dict[str, str]]] = sorted(
    (
        *(kind for kind in OPTIONS_KINDS_1_36 if (kind["group"], kind["version"]) != _GONE_1_37),
        *({"group": group, "kind": "DeleteOptions", "version": version} for group, version in _NEW_1_37),
    ),
    key=lambda kind: (kind["group"], kind["version"]),
)

EMBEDDED_FIELDS: Final[Mapping[str, Any]] = {**_DATA["embedded_fields"], "metadata": _DATA["object_meta"]}
"""apiVersion, kind and metadata of an embedded object."""


def reference(component: str) -> Document:
    return {"$ref": f"#/components/schemas/{component}"}


def object_fields(type_meta: Mapping[str, Any]) -> Mapping[str, Any]:
    """``type_meta``: apiVersion and kind as described by the release."""
    return {**type_meta, "metadata": _DATA["object_meta"]}


def list_fields(type_meta: Mapping[str, Any]) -> Mapping[str, Any]:
    """As ``object_fields``, of a list."""
    return {**type_meta, "metadata": _DATA["list_meta"]}
