"""Swagger 2.0 as Protobuf: the bytes of an apiserver are written again, and releases round-trip."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from shared_data import DATA, PAIRS, load, read, shared
from specmux_converters.codecs import protobuf_v2
from specmux_converters.document import Limits
from specmux_converters.errors import Unrepresentable


@shared
def test_bytes_are_those_of_an_apiserver(tally: Callable[[str, int], None]) -> None:
    files = sorted((DATA / "openapi-v2-protobuf").rglob("*.pb.gz"))
    unlike = []
    for path in files:
        data = read(path)
        if protobuf_v2.encode(protobuf_v2.decode(data, limits=Limits())) != data:
            unlike.append(path.name)
    print(f"openapi-v2-protobuf: {len(files) - len(unlike)} of {len(files)}")
    assert files
    assert not unlike
    tally("golden openapi.v2 protobuf: equal to an apiserver's", len(files))


@shared
@pytest.mark.parametrize("release", PAIRS)
def test_a_release_comes_back(release: str) -> None:
    document = load(DATA / "k8s-pairs" / release / "v2" / "swagger.json.gz")
    again = protobuf_v2.decode(protobuf_v2.encode(document), limits=Limits())
    assert again.keys() == document.keys()
    assert again["definitions"].keys() == document["definitions"].keys()
    assert protobuf_v2.encode(again) == protobuf_v2.encode(document)


def document(**rest: Any) -> dict[str, Any]:
    return {"swagger": "2.0", "info": {"title": "t", "version": "1"}, "paths": {}, **rest}


SCHEMA = {
    "type": ["object", "null"],
    "properties": {"a": {"$ref": "#/definitions/S", "description": "d"}},
    "additionalProperties": False,
    "items": {"type": "string"},
    "enum": ["a", 1],
    "x-kubernetes-group-version-kind": [{"group": "", "kind": "S", "version": "v1"}],
}


@pytest.mark.parametrize(
    "rest",
    [
        {"definitions": {"S": SCHEMA}},
        {"parameters": {"b": {"name": "body", "in": "body", "schema": {"$ref": "#/definitions/S"}}}},
        {"parameters": {"q": {"name": "q", "in": "query", "type": "array", "items": {"type": "string"}}}},
        {"parameters": {"h": {"name": "h", "in": "header", "type": "string"}}},
        {"paths": {"/a": {"get": {"parameters": [{"$ref": "#/parameters/q"}],
                                  "responses": {"200": {"description": "d", "schema": {"type": "file"}}}}}}},
        {"securityDefinitions": {"b": {"type": "basic"}},
         "security": [{"b": []}]},
    ],
)  # fmt: skip
def test_documents_come_back(rest: dict[str, Any]) -> None:
    data = protobuf_v2.encode(document(**rest))
    assert protobuf_v2.decode(data, limits=Limits()) == document(**rest)


@pytest.mark.parametrize(
    "rest",
    [
        {"definitions": {"S": {"nullable": True}}},
        {"parameters": {"q": {"name": "q", "in": "cookie", "type": "string"}}},
        {"securityDefinitions": {"o": {"type": "openIdConnect"}}},
    ],
)
def test_what_the_messages_have_no_place_for_is_refused(rest: dict[str, Any]) -> None:
    with pytest.raises(Unrepresentable):
        protobuf_v2.encode(document(**rest))
