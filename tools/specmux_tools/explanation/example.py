"""A manifest that an apiserver accepts: the skeleton, with values where a schema suggests none.

Requirements of built-in kinds beyond their schemas exist only in Go code (pkg/apis, validation.go), so they
are a table, ``example_objects.json``: the fields to write and their values. Custom resources state all in
their schemas, or in rules, which cannot be inverted: a text is the first of some usual ones that fits.
"""

from __future__ import annotations

from collections.abc import Mapping
from pkgutil import get_data
from typing import Any, Final

import orjson

from specmux_converters.document import Document
from specmux_converters.resources import GroupVersionKind
from specmux_tools.explanation.layers import Schema
from specmux_tools.explanation.skeleton import ManifestValues, manifest

KINDS: Final[Mapping[str, Mapping[str, Any]]] = orjson.loads(
    get_data(__package__, "example_objects.json") or b""
)
"""Keyed by group and kind ("apps Deployment"), or by the kind alone in the core group, for any version. The
signing request there is for CN=jane, with a discarded key. Fields that a version lacks are left out."""

_TEXTS: Final = (
    *("example", "example.com", "https://example.com", "Example", "1h", "1", "100m", "1Gi", "v1.0.0"),
    *("192.0.2.0/24", "192.0.2.1", "/example", "example.com/example", "example/example", "10-20", "0.0.0"),
    *("example:1", "arn:aws:iam::000000000000:role/example", "00000000-0000-0000-0000-000000000000"),
)


def example(document: Document, kind: GroupVersionKind, schema: Schema) -> str:
    """Returns YAML. ``schema`` is the kind's own."""
    own = KINDS.get(f"{kind.group} {kind.kind}".lstrip(), {})
    return manifest(document, kind, schema, ManifestValues(own, _TEXTS))
