"""What every object says first: apiVersion and kind.

The texts are Kubernetes 1.34's; see ``meta_schemas``.
"""

from __future__ import annotations

from typing import Any, Final

TYPE_META: Final[dict[str, dict[str, Any]]] = {
    "apiVersion": {
        "description": (
            "APIVersion defines the versioned schema of this representation of an object. Servers "
            "should convert recognized schemas to the latest internal value, and may reject "
            "unrecognized values. More info: "
            "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources"
        ),
        "type": "string",
    },
    "kind": {
        "description": (
            "Kind is a string value representing the REST resource this object represents. Servers "
            "may infer this from the endpoint the client submits requests to. Cannot be updated. "
            "In CamelCase. More info: "
            "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds"
        ),
        "type": "string",
    },
}
