from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict

from data.built_in_swagger import swagger_of
from shared_data import DATA, read
from specmux_converters.codecs import protobuf_v2
from specmux_converters.document import Limits
from specmux_converters.errors import InvalidDocument

LIMITS = Limits()


def any_of(text: str) -> dict[str, str]:
    return {"f2": text}


SCHEMA = {
    "f1": "#/definitions/B",
    "f5": any_of("[1, a]\n"),
    "f15": 7,
    "f19": ["a"],
    "f20": [any_of("on\n")],
    "f21": {"f2": False},
    "f22": {"f1": ["string"]},
    "f23": {"f1": [{"f22": {"f1": ["integer", "null"]}}]},
    "f25": {"f1": [{"f1": "p", "f2": {"f21": {"f1": {"f2": "int64"}}}}]},
    "f31": [{"f1": "x-a", "f2": any_of("a: 1\n")}],
}
BODY = {"f1": {"f1": {"f2": "body", "f3": "body", "f5": {"f1": "#/definitions/A"}}}}
QUERY = {"f1": {"f2": {"f3": {"f1": True, "f2": "query", "f4": "q", "f6": "string", "f13": 0.5}}}}
OPERATION = {
    "f7": ["application/json"],
    "f8": [BODY, QUERY, {"f2": {"f1": "#/parameters/P"}}],
    "f9": {
        "f1": [
            {"f1": "200", "f2": {"f1": {"f2": {"f1": {"f1": "#/definitions/A"}}}}},
            {"f1": "default", "f2": {"f2": {"f1": "#/responses/R"}}},
        ]
    },
}
DOCUMENT = {
    "f1": "2.0",
    "f2": {"f1": "t", "f2": "v"},
    "f8": {"f2": [{"f1": "/a", "f2": {"f4": OPERATION}}]},
    "f9": {"f1": [{"f1": "A", "f2": SCHEMA}]},
    "f12": [{"f1": [{"f1": "key", "f2": {}}]}],
    "f13": {"f1": [{"f1": "key", "f2": {"f2": {"f1": "apiKey", "f2": "k", "f3": "header"}}}]},
}
EXPECTED = {
    "swagger": "2.0",
    "info": {"title": "t", "version": "v"},
    "paths": {
        "/a": {
            "post": {
                "consumes": ["application/json"],
                "parameters": [
                    {"name": "body", "in": "body", "schema": {"$ref": "#/definitions/A"}},
                    {"required": True, "in": "query", "name": "q", "type": "string", "minimum": 0.5},
                    {"$ref": "#/parameters/P"},
                ],
                "responses": {
                    "200": {"description": "", "schema": {"$ref": "#/definitions/A"}},
                    "default": {"$ref": "#/responses/R"},
                },
            }
        }
    },
    "definitions": {
        "A": {
            "$ref": "#/definitions/B",
            "default": [1, "a"],
            "minItems": 7,
            "required": ["a"],
            "enum": ["on"],
            "additionalProperties": False,
            "type": "string",
            "items": {"type": ["integer", "null"]},
            "properties": {"p": {"additionalProperties": {"format": "int64"}}},
            "x-a": {"a": 1},
        }
    },
    "security": [{"key": []}],
    "securityDefinitions": {"key": {"type": "apiKey", "name": "k", "in": "header"}},
}


def test_a_document_is_read_when_protobuf_itself_has_written_it(document_v2: Any) -> None:
    data = ParseDict(DOCUMENT, document_v2()).SerializeToString()
    assert protobuf_v2.decode(data, limits=LIMITS) == EXPECTED


def test_bytes_are_refused_when_they_are_no_such_message() -> None:
    with pytest.raises(InvalidDocument):
        protobuf_v2.decode(b'{"swagger": "2.0"}', limits=LIMITS)


PARAMETERS = "#/parameters/"


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from references(item)


def test_a_whole_release_is_read_whole() -> None:
    """As a live server gave it, else made of the built-in release."""
    captured = DATA / "openapi-v2-protobuf" / "v1_21_2" / "swagger.pb.gz"
    made = swagger_of("1.35")
    if captured.exists():
        document = protobuf_v2.decode(read(captured), limits=LIMITS)
        assert document["info"] == {"title": "Kubernetes", "version": "v1.21.2"}
        assert (len(document["paths"]), len(document["definitions"])) == (507, 618)
    else:
        document = protobuf_v2.decode(protobuf_v2.encode(made), limits=LIMITS)
        assert all(document[key].keys() == made[key].keys() for key in ("info", "paths", "definitions"))
    names = document["definitions"].keys()
    targets = Counter(each for each in references(document) if not each.startswith(PARAMETERS))
    assert len(targets) > 500
    assert {target.removeprefix("#/definitions/") for target in targets} <= names
    pod = document["definitions"]["io.k8s.api.core.v1.Pod"]
    assert pod["x-kubernetes-group-version-kind"] == [{"group": "", "kind": "Pod", "version": "v1"}]
    quantity = document["definitions"]["io.k8s.apimachinery.pkg.util.intstr.IntOrString"]
    assert (quantity["type"], quantity["format"]) == ("string", "int-or-string")
    port = document["definitions"]["io.k8s.api.core.v1.ContainerPort"]
    assert port["required"] == ["containerPort"]
    assert port["properties"]["containerPort"]["format"] == "int32"
    watch = document["paths"]["/api/v1/watch/pods"]
    parameters = [
        document["parameters"][each["$ref"].removeprefix(PARAMETERS)] if "$ref" in each else each
        for each in watch["parameters"]
    ]
    assert {parameter["in"] for parameter in parameters} == {"query"}
    assert watch["get"]["responses"].keys() == {"200", "401"}
