"""The document for kustomize's ``openapi: path:``: definitions of kinds, and how their lists are merged.

kustomize (kyaml/openapi) reads patch strategies and merge keys from definitions, and whether a kind is
namespaced from paths. CustomResourceDefinitions express the former only with the keys of server-side apply.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from specmux_converters.document import Document
from specmux_converters.group_versions import GroupVersion
from specmux_converters.json_values import within
from specmux_converters.operations import GROUP_VERSION_KIND
from specmux_converters.to_swagger2.conversion import join_pieces, piece_of

_KEYS: Final = "x-kubernetes-list-map-keys"
_STRATEGY: Final = "x-kubernetes-patch-strategy"
_MERGE_KEY: Final = "x-kubernetes-patch-merge-key"


def kustomize_schema(documents: Mapping[GroupVersion, Document]) -> Document:
    """From OpenAPI v3 documents. Raises InvalidDocument, LimitExceeded."""
    whole = join_pieces({key: piece_of(document) for key, document in documents.items()}).document
    return {
        "swagger": whole["swagger"],
        "info": whole["info"],
        "paths": {path: item for path, node in whole["paths"].items() if (item := _path(node))},
        "definitions": {name: _add_patch_strategy(schema) for name, schema in whole["definitions"].items()},
    }


def _path(node: Document) -> Document:
    """The kind that the path reads; empty if it reads none."""
    kind = within(node, "get").get(GROUP_VERSION_KIND)
    return {"get": {GROUP_VERSION_KIND: kind, "responses": {"200": {"description": "OK"}}}} if kind else {}


def _add_patch_strategy(schema: Any) -> Any:
    """With a patch strategy for lists that are maps and have none."""
    if not isinstance(schema, dict):
        return schema
    result = dict(schema)
    keys = schema.get(_KEYS)
    if isinstance(keys, list) and keys and schema.get("x-kubernetes-list-type") == "map":
        result.setdefault(_STRATEGY, "merge")
        result.setdefault(_MERGE_KEY, keys[0])
    properties = within(schema, "properties")
    if properties:
        result["properties"] = {name: _add_patch_strategy(item) for name, item in properties.items()}
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            result[key] = _add_patch_strategy(schema[key])
    return result
