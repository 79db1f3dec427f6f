"""Swagger 2.0 as Protobuf: the bytes of an apiserver are written again, and releases round-trip."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Any

import pytest

from sampling import ends
from shared_data import DATA, PAIRS, PUBLISHED, load, needs, read
from specmux_converters.codecs import protobuf_v2
from specmux_converters.document import Limits
from specmux_converters.errors import Unrepresentable


@needs("data/openapi-v2-protobuf")
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


GO = {
    "1.29": "c717a274d20a28a04580793023a4802ceb1bf288eb5f1bcf270da209541c44a2",
    "1.30": "c6e670df9da4a8795ca01538efe12d91026c6766e66a96a1a28211380b1fd8cb",
    "1.32": "0ed8e26e980755a75c7836d7fe131b7c203fc5f11d5a1fd8a71c00ef709d081d",
    "1.35": "ceacbb5387dec718ff2d39e5775e0eaf7c490dc0444033daebda69a4469563eb",
}
"""SHA-256 of ``tests/benchmarks/go``, ``peer answer swagger``, for the published documents without spaces."""


@needs(PUBLISHED, "data/k8s-pairs/1.29")
def test_bytes_of_releases_are_those_of_go(tally: Callable[[str, int], None]) -> None:
    made = {
        release: sha256(protobuf_v2.encode(load(DATA / "k8s-pairs" / release / "v2" / "swagger.json.gz")))
        for release in PAIRS
        if release in GO
    }
    print(f"openapi-v2-protobuf: releases without a record: {len(set(PAIRS) - made.keys())}")
    if not made:
        pytest.skip("no release with a record")
    assert {release: digest.hexdigest() for release, digest in made.items()} == {r: GO[r] for r in made}
    tally("golden openapi.v2 protobuf of releases: equal to Go", len(made))


@needs(PUBLISHED)
@pytest.mark.parametrize("release", ends(PAIRS))
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


@pytest.mark.parametrize(
    ("rest", "digest"),
    [
        ({"parameters": {"p": {"name": "p", "type": "string"}}}, "c4fe3ba89eba8ce6"),
        ({"parameters": {"p": {"name": "p", "required": True, "type": "string"}}}, "fb948c4b45d9d5fa"),
        ({"parameters": {"p": {}}}, "f3684aad8c0833c7"),
        ({"parameters": {"p": 5}}, "f3684aad8c0833c7"),
        (
            {
                "paths": {
                    "/a": {
                        "get": {
                            "responses": {},
                            "parameters": [None, [], {"$ref": "#/parameters/p", "in": "query"}],
                        }
                    }
                }
            },
            "1dcea7d091e30169",
        ),
        ({"parameters": {"p": {"name": "p", "in": None, "type": "string"}}}, None),
        ({"parameters": {"p": {"name": "p", "in": "query", "type": "object"}}}, None),
        (
            {
                "parameters": {
                    "p": {"name": "p", "in": "header", "type": "array", "collectionFormat": "multi"}
                }
            },
            None,
        ),
        (
            {"parameters": {"p": {"name": "p", "in": "query", "type": "array", "items": {"type": "file"}}}},
            None,
        ),
        ({"parameters": {"p": {"in": "body", "name": "b"}}}, None),
        (
            {
                "paths": {
                    "/a": {
                        "get": {
                            "responses": {
                                "200": {"description": "d", "schema": {"type": "file", "allOf": []}}
                            }
                        }
                    }
                }
            },
            "6d89887c46f450a0",
        ),
        (
            {
                "paths": {
                    "/a": {
                        "get": {
                            "responses": {
                                "200": {"description": "d", "schema": {"type": "file", "description": "f"}}
                            }
                        }
                    }
                }
            },
            "bd20996917599a47",
        ),
        (
            {"paths": {"/a": {"get": {"responses": {"200": {"description": "d", "schema": None}}}}}},
            "569087e6dfba6b78",
        ),
        (
            {
                "paths": {
                    "/a": {
                        "get": {
                            "responses": {"200": {"description": "d", "headers": {"h": {"type": "object"}}}}
                        }
                    }
                }
            },
            None,
        ),
        ({"paths": {"/a": {"get": {"responses": {"200": {"$ref": 1.5}}}}}}, None),
        ({"paths": {"/a": {"get": {"responses": {}, "schemes": ["ftp"]}}}}, None),
        ({"schemes": ["https", "ws"]}, "73a6287601dc8bee"),
        ({"swagger": "1.2"}, None),
        ({"definitions": {"S": {"items": [{"type": "string"}, {"type": "integer"}]}}}, "7f98d6bff0c2f463"),
        ({"definitions": {"S": {"type": None}}}, "a4b776aa5cffcee9"),
        ({"definitions": {"S": {"type": [True, 1, 1.5, "a"]}}}, "85efc8fd8cbd64a7"),
        ({"definitions": {"S": {"type": {}}}}, None),
        ({"definitions": {"S": {"allOf": [{"type": ["a", {}]}]}}}, None),
        ({"securityDefinitions": {"k": {"type": "apiKey", "name": "n", "in": "cookie"}}}, None),
        ({"securityDefinitions": {"k": {"type": "basic", "flow": "implicit"}}}, None),
    ],
)
def test_odd_values_are_read_as_gnostic_reads_them(rest: dict[str, Any], digest: str | None) -> None:
    """Recorded with ``peer answer swagger``: the start of the SHA-256, None where gnostic refuses."""
    if digest is None:
        with pytest.raises(Unrepresentable):
            protobuf_v2.encode(document(**rest))
    else:
        assert sha256(protobuf_v2.encode(document(**rest))).hexdigest().startswith(digest)
