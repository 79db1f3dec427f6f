"""Nothing is lost in silence: what is written into a Swagger 2.0 document at any place can be read in the
result, or a loss names the place (or a reference to it), or the document is refused.

Each place is given a mark that stands nowhere else, one at a time. What stands under a key that the converter
does not know, and a value that it does not expect, are places too.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest

from sampling import share
from shared_data import DATA, files, read
from specmux_converters import ConverterError, convert
from specmux_converters.from_swagger2.conversion import convert_whole
from specmux_converters.from_swagger2.reading.source import Profile
from specmux_converters.losses import Loss, pointer_to
from specmux_converters.recognise import DocumentKind, recognise

MARK = "mark-q7"
NUMBER = 918273645
LARGE = 300_000
"""Bytes of a document in which one place is enough."""

Place = tuple[str | int, ...]
Run = Callable[[Any, Profile], tuple[bytes, tuple[Loss, ...]]]

OK = {"200": {"description": "d", "schema": {"$ref": "#/definitions/A"}}}
DOCUMENT: dict[str, Any] = {
    "swagger": "2.0",
    "info": {
        "title": "t",
        "version": "v",
        "description": "d",
        "termsOfService": "u",
        "contact": {"name": "n", "url": "u", "email": "e"},
        "license": {"name": "l", "url": "u"},
        "x-i": 1,
    },
    "host": "h.example",
    "basePath": "/base",
    "schemes": ["https", "http"],
    "consumes": ["application/json"],
    "produces": ["application/json", "application/yaml"],
    "tags": [{"name": "t", "description": "d", "externalDocs": {"url": "u", "description": "d"}, "x-t": 1}],
    "externalDocs": {"url": "u"},
    "x-root": {"a": 1},
    "security": [{"key": []}],
    "securityDefinitions": {
        "key": {"type": "apiKey", "name": "n", "in": "header", "description": "d", "x-s": 1},
        "basic": {"type": "basic", "description": "d"},
        "code": {
            "type": "oauth2",
            "flow": "accessCode",
            "authorizationUrl": "a",
            "tokenUrl": "t",
            "scopes": {"s": "d", "x-sc": 1},
        },
        "implicit": {"type": "oauth2", "flow": "implicit", "authorizationUrl": "a", "scopes": {}},
    },
    "parameters": {
        "Q": {
            "name": "q",
            "in": "query",
            "type": "array",
            "items": {"type": "string", "enum": ["a"], "default": "a"},
            "collectionFormat": "multi",
            "description": "d",
        },
        "B": {
            "name": "body",
            "in": "body",
            "description": "d",
            "required": True,
            "schema": {"$ref": "#/definitions/A"},
        },
        "F": {"name": "f", "in": "formData", "type": "file", "description": "d", "required": True},
    },
    "responses": {
        "R": {
            "description": "d",
            "schema": {"$ref": "#/definitions/A"},
            "headers": {"H": {"type": "integer", "description": "d", "format": "int32", "maximum": 3}},
            "examples": {"application/json": {"a": 1}},
        }
    },
    "paths": {
        "x-p": 1,
        "/api/v1/a/{id}": {
            "x-pi": 1,
            "parameters": [
                {
                    "name": "id",
                    "in": "path",
                    "required": True,
                    "type": "integer",
                    "format": "int64",
                    "minimum": 1,
                }
            ],
            "get": {
                "tags": ["t"],
                "summary": "s",
                "description": "d",
                "externalDocs": {"url": "u"},
                "operationId": "o",
                "deprecated": True,
                "schemes": ["wss"],
                "security": [{"code": ["s"]}],
                "x-o": 2,
                "parameters": [
                    {"$ref": "#/parameters/Q"},
                    {
                        "name": "h",
                        "in": "header",
                        "type": "number",
                        "default": 1.5,
                        "allowEmptyValue": True,
                        "x-h": 1,
                    },
                    {
                        "name": "e",
                        "in": "query",
                        "type": "string",
                        "allowEmptyValue": True,
                        "pattern": "^a",
                        "maxLength": 3,
                        "minLength": 1,
                        "enum": ["a"],
                    },
                    {
                        "name": "m",
                        "in": "query",
                        "type": "array",
                        "collectionFormat": "tsv",
                        "items": {
                            "type": "array",
                            "collectionFormat": "pipes",
                            "items": {"type": "integer", "maximum": 5},
                        },
                        "uniqueItems": True,
                        "maxItems": 3,
                    },
                ],
                "produces": ["text/plain"],
                "responses": {
                    "200": {"$ref": "#/responses/R"},
                    "201": {"description": "d", "schema": {"type": "file"}},
                    "default": {"description": "d", "x-r": 1},
                    "x-rs": 1,
                },
            },
            "put": {
                "consumes": ["multipart/form-data"],
                "parameters": [
                    {"$ref": "#/parameters/F"},
                    {
                        "name": "g",
                        "in": "formData",
                        "type": "array",
                        "items": {"type": "string"},
                        "collectionFormat": "ssv",
                        "description": "d",
                        "default": ["a"],
                        "allowEmptyValue": True,
                        "x-f": 1,
                    },
                ],
                "responses": OK,
            },
            "post": {"parameters": [{"$ref": "#/parameters/B"}], "responses": OK},
            "patch": {
                "consumes": ["application/json", "text/yaml"],
                "parameters": [
                    {
                        "name": "patch",
                        "in": "body",
                        "schema": {"type": "object", "properties": {"a": {"type": "string"}}},
                        "x-b": 1,
                    },
                    {"name": "f2", "in": "formData", "type": "string"},
                ],
                "responses": {
                    "200": {
                        "description": "d",
                        "headers": {
                            "X": {"type": "array", "items": {"type": "string"}, "collectionFormat": "csv"}
                        },
                    }
                },
            },
            "delete": {"parameters": [{"$ref": "#/parameters/B"}], "responses": OK},
        },
        "/api/v1/b": {"$ref": "#/x-items/b", "x-own": 1},
    },
    "x-items": {"b": {"get": {"responses": {"200": {"$ref": "#/responses/R"}}}}},
    "definitions": {
        "A": {
            "type": "object",
            "title": "t",
            "description": "d",
            "required": ["a"],
            "discriminator": "a",
            "x-d": 1,
            "externalDocs": {"url": "u"},
            "example": {"a": "b"},
            "maxProperties": 4,
            "properties": {
                "a": {
                    "type": "string",
                    "readOnly": True,
                    "default": "x",
                    "xml": {"name": "n", "attribute": True, "x-x": 1},
                },
                "b": {"type": "array", "items": {"$ref": "#/definitions/B"}, "minItems": 1},
                "c": {"$ref": "#/definitions/B", "description": "d", "default": {}, "x-k": 1},
                "d": {"$ref": "#/definitions/B", "description": "d"},
                "n": {"type": ["string", "null"], "x-nullable": True},
                "m": {
                    "type": "object",
                    "additionalProperties": {
                        "type": "number",
                        "multipleOf": 2.5,
                        "exclusiveMaximum": True,
                        "maximum": 9,
                    },
                },
                "t": {"type": "array", "items": [{"type": "string"}, {"type": "integer"}]},
                "any": {"anyOf": [{"type": "string"}, {"not": {"type": "integer"}}]},
                "bad": {"type": "integer", "default": "x"},
            },
        },
        "B": {
            "allOf": [
                {"$ref": "#/definitions/C"},
                {"type": "object", "properties": {"z": {"type": "boolean", "enum": [True]}}},
            ]
        },
        "C": {"type": "object", "additionalProperties": False},
    },
}


def whole(document: Any, profile: Profile) -> tuple[bytes, tuple[Loss, ...]]:
    made = convert_whole(document, profile=profile)
    return orjson.dumps(made.document), made.losses


def split(document: Any, profile: Profile) -> tuple[bytes, tuple[Loss, ...]]:
    made = convert(document, profile=profile)
    return b"".join(made.json(key) for key in made.documents), made.losses


def places(node: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    yield place, node
    for key, value in node.items() if isinstance(node, dict) else enumerate(node):
        if isinstance(value, dict | list):
            yield from places(value, (*place, key))
        else:
            yield (*place, key), value


def marked(document: Any, place: Place, node: Any) -> Iterator[tuple[Any, Place]]:
    """The document with a mark at this place, in each way that there is, and where the mark is."""
    if isinstance(node, dict):
        yield put(document, place, {**node, MARK: MARK}), (*place, MARK)
        yield put(document, place, {**node, MARK: {MARK: MARK}}), (*place, MARK)
    elif isinstance(node, list):
        yield put(document, place, [*node, MARK]), (*place, len(node))
    else:
        yield put(document, place, MARK), place
        yield put(document, place, NUMBER), place


def put(node: Any, place: Place, value: Any) -> Any:
    """A copy that shares all that is beside the place."""
    if not place:
        return value
    copied = [*node] if isinstance(node, list) else {**node}
    copied[place[0]] = put(node[place[0]], place[1:], value)
    return copied


def is_silent(document: Any, where: Place, run: Run, profile: Profile) -> bool:
    try:
        text, losses = run(document, profile)
    except ConverterError:
        return False
    if MARK.encode() in text or str(NUMBER).encode() in text:
        return False
    if any(MARK in loss.construct or MARK in loss.reason for loss in losses):
        return False
    lost = {loss.pointer for loss in losses}
    lost |= {ref.removeprefix("#") for ref in map(partial(reference_at, document), lost) if ref}
    return lost.isdisjoint(pointer_to(*where[:length]) for length in range(len(where) + 1))


def reference_at(document: Any, pointer: str) -> str | None:
    """What the place refers to, when it is a reference and nothing else."""
    node = resolved(document, pointer)
    return node["$ref"] if isinstance(node, dict) and [*node] == ["$ref"] else None


def resolved(document: Any, pointer: str) -> Any:
    node = document
    for token in pointer.split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        if isinstance(node, list):
            node = node[int(name)] if int(name) < len(node) else None
        else:
            node = node.get(name) if isinstance(node, dict) else None
    return node


def is_shared_and_unused(where: Place) -> bool:
    """What no path refers to is in none of the documents of group-versions."""
    return len(where) == 2 and where[0] in ("definitions", "parameters", "responses") and where[1] == MARK


@pytest.mark.parametrize("profile", ["kubernetes", "oas"])
@pytest.mark.parametrize("run", [whole, split])
def test_every_place_shows_in_the_result_or_in_a_loss(run: Run, profile: Profile) -> None:
    tried = [each for place, node in places(DOCUMENT) for each in marked(DOCUMENT, place, node)]
    silent = [where for document, where in tried if is_silent(document, where, run, profile)]
    assert len(tried) > 600
    assert [where for where in silent if run is whole or not is_shared_and_unused(where)] == []


def test_a_silent_place_would_be_noticed() -> None:
    document, where = next(iter(marked(DOCUMENT, ("info",), DOCUMENT["info"])))

    def forgetful(document: Any, profile: Profile) -> tuple[bytes, tuple[Loss, ...]]:
        return whole(put(document, ("info",), DOCUMENT["info"]), profile)

    assert is_silent(document, where, forgetful, "oas")


def is_list_of_media_types(where: Place) -> bool:
    """``consumes`` where nothing is sent, ``produces`` where no response has a body: they say nothing."""
    return len(where) > 1 and where[-2] in ("consumes", "produces")


@pytest.mark.parametrize("path", files(DATA / "v2-other") + files(DATA / "aggregated-v2"))
def test_places_of_a_real_document(path: Path, tally: Callable[[str, int], None]) -> None:
    data = read(path)
    try:
        found = recognise(data)
    except ConverterError:
        pytest.skip("an index, or deliberately invalid")
    if found.kind is not DocumentKind.SWAGGER_2:
        pytest.skip("not Swagger 2.0")
    document = found.documents[0]
    every = list(places(document))
    wanted = share(8) if len(data) < LARGE else 1
    chosen = random.Random(path.name).sample(every, min(wanted, len(every)))
    tried = [each for place, node in chosen for each in marked(document, place, node)]
    profiles: tuple[Profile, ...] = ("kubernetes", "oas")
    for profile in profiles:
        silent = [where for other, where in tried if is_silent(other, where, whole, profile)]
        assert [where for where in silent if not is_list_of_media_types(where)] == []
    tally("real documents: places marked, none lost in silence", len(tried))
