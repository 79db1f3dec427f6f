"""Names of Go types in decoding errors, derived from names of components."""

from __future__ import annotations

from typing import Final

ALIASES: Final = {
    "ObjectMeta.uid": "types.UID",
    "OwnerReference.uid": "types.UID",
    "ObjectReference.uid": "types.UID",
    "BoundObjectReference.uid": "types.UID",
    "Preconditions.uid": "types.UID",
    "StatusDetails.uid": "types.UID",
    "UserInfo.uid": "string",
}
"""Fields whose Go type is a named string, which OpenAPI shows as "string". Those of every kind."""


def go_type(component: str) -> str:
    """``v1.PodSpec`` for ``io.k8s.api.core.v1.PodSpec``: the package's last element, and the type."""
    package, _, name = component.rpartition(".")
    return f"{package.rpartition('.')[2].replace('-', '_')}.{name}" if package else name


def short_name(component: str) -> str:
    """``PodSpec`` for ``io.k8s.api.core.v1.PodSpec``."""
    return component.rpartition(".")[2]
