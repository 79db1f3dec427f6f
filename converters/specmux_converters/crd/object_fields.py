"""apiVersion, kind and metadata: what every object has and no CRD has to say.

The texts are Kubernetes 1.34's; see ``meta_schemas``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from specmux_converters.crd.meta_schemas import PREFIX, reference
from specmux_converters.crd.type_meta import TYPE_META

CONVENTIONS: Final = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"

_OBJECT_META: Final = {
    "description": f"Standard object's metadata. More info: {CONVENTIONS}#metadata",
    # OpenAPI 3.0 allows nothing beside a $ref, so upstream wraps it (kube-openapi, builder3/util, WrapRefs).
    "allOf": [reference(PREFIX + "ObjectMeta")],
}

OBJECT_FIELDS: Final[Mapping[str, Any]] = {**TYPE_META, "metadata": _OBJECT_META}
LIST_FIELDS: Final[Mapping[str, Any]] = {
    **TYPE_META,
    "metadata": {
        "description": f"Standard list metadata. More info: {CONVENTIONS}#types-kinds",
        "allOf": [reference(PREFIX + "ListMeta")],
    },
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
