"""The annotation in which client-side ``kubectl apply`` keeps an object, and its limit."""

from __future__ import annotations

from typing import Any, Final

import orjson

from specmux_converters.json_values import within

ANNOTATIONS_MAX: Final = 262_144
"""Bytes of all annotations of an object (apimachinery, TotalAnnotationSizeLimitB)."""
LARGE: Final = ANNOTATIONS_MAX // 6
"""Bytes of a text below which its JSON cannot be too large: escapes may make it longer than its YAML."""
_KEY: Final = "kubectl.kubernetes.io/last-applied-configuration"
_ESCAPED: Final = {b"<": 5, b">": 5, b"&": 5, "\u2028".encode(): 3, "\u2029".encode(): 3}
"""Characters that Go's JSON escapes, and by how many bytes they grow."""


def apply_hint(value: Any) -> str | None:
    """Advice for an object too large for client-side apply; None for others."""
    if not isinstance(value, dict):
        return None
    said = within(value, "metadata", "annotations")
    annotations = {str(name): str(each) for name, each in said.items() if name != _KEY}
    metadata = {**within(value, "metadata"), "annotations": annotations}
    data = orjson.dumps({**value, "metadata": metadata}, default=float)
    size = len(data) + 1 + sum(data.count(each) * more for each, more in _ESCAPED.items())  # and a line break
    total = size + len(_KEY) + sum(len(f"{name}{each}".encode()) for name, each in annotations.items())
    if total <= ANNOTATIONS_MAX:
        return None
    return (
        f"client-side kubectl apply would fail: it keeps the {size} bytes in an annotation, which may have "
        f"{ANNOTATIONS_MAX}; use kubectl apply --server-side"
    )
