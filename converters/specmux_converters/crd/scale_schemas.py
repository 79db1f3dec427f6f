"""What a scale subresource speaks: Scale of autoscaling/v1.

The texts are Kubernetes 1.34's; see ``meta_schemas``.
"""

from __future__ import annotations

from typing import Any, Final

from specmux_converters.crd.meta_schemas import PREFIX, reference
from specmux_converters.crd.type_meta import TYPE_META

SCALE: Final = "io.k8s.api.autoscaling.v1.Scale"

SCALE_SCHEMAS: Final[dict[str, dict[str, Any]]] = {
    "io.k8s.api.autoscaling.v1.Scale": {
        "description": "Scale represents a scaling request for a resource.",
        "properties": {
            "apiVersion": TYPE_META["apiVersion"],
            "kind": TYPE_META["kind"],
            "metadata": {
                "allOf": [reference(PREFIX + "ObjectMeta")],
                "default": {},
                "description": (
                    "Standard object metadata; More info: "
                    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata."
                ),
            },
            "spec": {
                "allOf": [reference("io.k8s.api.autoscaling.v1.ScaleSpec")],
                "default": {},
                "description": (
                    "spec defines the behavior of the scale. More info: "
                    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#spec-and-status."
                ),
            },
            "status": {
                "allOf": [reference("io.k8s.api.autoscaling.v1.ScaleStatus")],
                "default": {},
                "description": (
                    "status is the current status of the scale. More info: "
                    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
                    "#spec-and-status. Read-only."
                ),
            },
        },
        "type": "object",
        "x-kubernetes-group-version-kind": [{"group": "autoscaling", "kind": "Scale", "version": "v1"}],
    },
    "io.k8s.api.autoscaling.v1.ScaleSpec": {
        "description": "ScaleSpec describes the attributes of a scale subresource.",
        "properties": {
            "replicas": {
                "default": 0,
                "description": "replicas is the desired number of instances for the scaled object.",
                "format": "int32",
                "type": "integer",
            },
        },
        "type": "object",
    },
    "io.k8s.api.autoscaling.v1.ScaleStatus": {
        "description": "ScaleStatus represents the current status of a scale subresource.",
        "properties": {
            "replicas": {
                "default": 0,
                "description": "replicas is the actual number of observed instances of the scaled object.",
                "format": "int32",
                "type": "integer",
            },
            "selector": {
                "description": (
                    "selector is the label query over pods that should match the replicas count. This is "
                    "same as the label selector but in the string format to avoid introspection by "
                    "clients. The string will be in the same format as the query-param syntax. More info "
                    "about label selectors: "
                    "https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/"
                ),
                "type": "string",
            },
        },
        "required": ["replicas"],
        "type": "object",
    },
}
