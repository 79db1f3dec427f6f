"""A manifest that an apiserver takes: the skeleton, with values where a schema names none.

What Kubernetes' own kinds need beyond their schemas is in Go code alone (pkg/apis, validation.go), so it is a
table, ``example_objects.json``: the fields that are written and their values. Custom resources say all in
their schemas, or in rules that nobody can turn round: a text is the first of some usual ones that fits.
"""

from __future__ import annotations

from collections.abc import Mapping
from pkgutil import get_data
from typing import Any, Final

import orjson

from specmux_converters.document import Document
from specmux_schemas.explanation.layers import Schema
from specmux_schemas.explanation.skeleton import ManifestValues, manifest
from specmux_schemas.resources import GroupVersionKind

KINDS: Final[Mapping[str, Mapping[str, Any]]] = orjson.loads(
    get_data(__package__, "example_objects.json") or b""
)
"""By group and kind ("apps Deployment"), or the kind alone in the core group, whatever the version. The
signing request there is of CN=jane, with a key that nobody has. Fields that a version lacks are left out."""

_TEXTS: Final = (
    *("example", "example.com", "https://example.com", "Example", "1h", "1", "100m", "1Gi", "v1.0.0"),
    *("192.0.2.0/24", "192.0.2.1", "/example", "example.com/example", "example/example", "10-20", "0.0.0"),
    *("example:1", "arn:aws:iam::000000000000:role/example", "00000000-0000-0000-0000-000000000000"),
)


def example(document: Document, kind: GroupVersionKind, schema: Schema) -> str:
    """YAML. ``schema`` is the kind's own."""
    own = KINDS.get(f"{kind.group} {kind.kind}".lstrip(), {})
    return manifest(document, kind, schema, ManifestValues(own, _TEXTS))
