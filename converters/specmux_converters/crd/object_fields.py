"""apiVersion, kind and metadata: what every object has and no CRD has to say.

The texts of metadata stand in the builder's own code, the same in every release from 1.30 to 1.36
(apiextensions-apiserver, pkg/controller/openapi/builder/builder.go).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from specmux_converters.crd.meta_schemas import PREFIX, reference

CONVENTIONS: Final = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"

_OBJECT_META: Final = {
    "description": f"Standard object's metadata. More info: {CONVENTIONS}#metadata",
    # OpenAPI 3.0 allows nothing beside a $ref, so upstream wraps it (kube-openapi, builder3/util, WrapRefs).
    "allOf": [reference(PREFIX + "ObjectMeta")],
}

_LIST_META: Final = {
    "description": f"Standard list metadata. More info: {CONVENTIONS}#types-kinds",
    "allOf": [reference(PREFIX + "ListMeta")],
}
EMBEDDED_FIELDS: Final[Mapping[str, Any]] = {
    "apiVersion": {
        "description": "apiVersion defines the versioned schema of this representation of an object."
        f" More info: {CONVENTIONS}#resources",
        "type": "string",
    },
    "kind": {
        "description": "kind is a string value representing the type of this object. In CamelCase."
        f" More info: {CONVENTIONS}#types-kinds",
        "type": "string",
    },
    "metadata": _OBJECT_META,
}


def object_fields(type_meta: Mapping[str, Any]) -> Mapping[str, Any]:
    """``type_meta``: apiVersion and kind as the release describes them."""
    return {**type_meta, "metadata": _OBJECT_META}


def list_fields(type_meta: Mapping[str, Any]) -> Mapping[str, Any]:
    """As ``object_fields``, of a list."""
    return {**type_meta, "metadata": _LIST_META}
