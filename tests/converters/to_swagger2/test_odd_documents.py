"""Documents with anything anywhere are converted or refused, and never written into."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampling import examples
from specmux_converters.errors import ConverterError
from specmux_converters.group_versions import GroupVersion
from specmux_converters.profiles import schemas_only, with_shared_components
from specmux_converters.to_swagger2.conversion import convert_to_v2
from specmux_converters.to_swagger2.encoded import encode_piece, join_json
from specmux_converters.to_swagger2.kustomize import kustomize_schema

DOCUMENT: dict[str, Any] = {
    "openapi": "3.0.3",
    "info": {"title": "t", "version": "1"},
    "servers": [{"url": "https://{a}/b", "variables": {"a": {"default": "h"}}}],
    "tags": [{"name": "a"}],
    "security": [{"b": []}],
    "paths": {
        "/a/{p}": {
            "parameters": [
                {"name": "p", "in": "path", "required": True, "schema": {"type": "string"}},
                {"$ref": "#/components/parameters/P"},
            ],
            "post": {
                "tags": ["a"],
                "operationId": "o",
                "parameters": [
                    {
                        "name": "l",
                        "in": "query",
                        "style": "form",
                        "explode": False,
                        "schema": {"type": "array", "items": {"$ref": "#/components/schemas/A"}},
                    }
                ],
                "requestBody": {
                    "required": True,
                    "content": {
                        "multipart/form-data": {
                            "schema": {
                                "type": "object",
                                "properties": {
                                    "f": {"type": "string", "format": "binary"},
                                    "g": {"type": "array", "items": {"type": "string"}},
                                },
                                "required": ["f"],
                            },
                            "encoding": {"g": {"style": "form"}},
                        }
                    },
                },
                "responses": {
                    "200": {
                        "description": "d",
                        "headers": {"x": {"schema": {"type": "string"}}},
                        "content": {
                            "application/json": {"schema": {"$ref": "#/components/schemas/S"}, "example": 1}
                        },
                    },
                    "4XX": {"$ref": "#/components/responses/R"},
                },
                "x-kubernetes-group-version-kind": {"group": "g", "version": "v", "kind": "K"},
            },
            "get": {"responses": {"default": {"description": "d"}}},
        }
    },
    "components": {
        "parameters": {"P": {"name": "h", "in": "header", "schema": {"type": "integer"}}},
        "responses": {"R": {"description": "d"}},
        "securitySchemes": {
            "b": {"type": "http", "scheme": "basic"},
            "o": {"type": "oauth2", "flows": {"implicit": {"authorizationUrl": "u", "scopes": {"s": "t"}}}},
        },
        "schemas": {
            "S": {
                "type": "object",
                "allOf": [{"$ref": "#/components/schemas/T"}],
                "description": "d",
                "nullable": True,
            },
            "T": {
                "oneOf": [{"type": "string"}, {"type": "integer"}],
                "discriminator": {"propertyName": "k", "mapping": {"a": "b"}},
            },
            "A": {"type": "array", "items": {"$ref": "#/components/schemas/A"}},
            "com.example.v1.W": {
                "type": "object",
                "properties": {
                    "spec": {
                        "type": "object",
                        "nullable": True,
                        "required": ["a"],
                        "properties": {"a": {"type": "string", "nullable": True}},
                    },
                    "l": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["k"],
                        "items": {"type": "object"},
                    },
                },
                "required": ["spec"],
                "x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "W"}],
            },
        },
    },
}

JUNK: list[Any] = [
    None, True, 0, 1.5, "", "x", "#/components/schemas/S", [], [1], ["a", {}], {}, {"a": 1}, {"$ref": 1},
    {"$ref": "#/nope"}, {"$ref": "#/components/schemas/S"}, {"type": ["a"]}, {"type": {}},
    {"in": []}, {"name": {}},
]  # fmt: skip


def places(node: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    yield path
    if isinstance(node, dict | list):
        for key, inner in node.items() if isinstance(node, dict) else enumerate(node):
            yield from places(inner, (*path, key))


PLACES = [path for path in places(DOCUMENT) if path]
USES: list[Callable[[dict[str, Any]], object]] = [
    convert_to_v2,
    lambda document: convert_to_v2(document, profile="oas"),
    lambda document: join_json({"a": encode_piece(document), "b": encode_piece(document)}),
    lambda document: kustomize_schema({GroupVersion("a"): document}),
    schemas_only,
    with_shared_components,
]


@pytest.mark.parametrize("use", range(len(USES)))
@examples(150)
@given(changes=st.lists(st.tuples(st.sampled_from(PLACES), st.sampled_from(JUNK)), min_size=1, max_size=3))
def test_junk_is_converted_or_refused(use: int, changes: list[tuple[tuple[str | int, ...], Any]]) -> None:
    document = copy.deepcopy(DOCUMENT)
    for path, junk in changes:
        node: Any = document
        with contextlib.suppress(KeyError, IndexError, TypeError):
            for key in path[:-1]:
                node = node[key]
            if isinstance(node, list) == isinstance(path[-1], int):
                node[path[-1]] = copy.deepcopy(junk)
    before = orjson.dumps(document)
    with contextlib.suppress(ConverterError):
        USES[use](document)
    assert orjson.dumps(document) == before
