"""Random Swagger 2.0 documents, valid ones and ones with a fault, for any source of chance.

``random.Random(seed)`` makes the same document every time, so that a peer in another language can be asked
about it; hypothesis' own ``st.randoms(use_true_random=False)`` makes one that it can shrink.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from random import Random
from typing import Any

NAMES = ("A", "B", "Node", "Page«User»", "List[T]", "a/b", "io.k8s.api.core.v1.Pod")
SCALARS = ("string", "integer", "number", "boolean")
FORMATS = {
    "string": ("date", "byte", "password"),
    "integer": ("int32", "int64"),
    "number": ("double", "float"),
}
MEDIA_TYPES = ("application/json", "application/xml", "text/plain")
FORMS = ("multipart/form-data", "application/x-www-form-urlencoded")
METHODS = ("get", "put", "post", "delete", "options", "head", "patch")


class Swagger:
    """One document in the making."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._names = random.sample(NAMES, random.randint(1, 4))
        self._operations = 0

    def document(self) -> dict[str, Any]:
        random = self._random
        document: dict[str, Any] = {"swagger": "2.0", "info": {"title": "t", "version": "1"}, "paths": {}}
        if random.random() < 0.5:
            document |= {"host": "h.example", "schemes": ["https"]}
            document["basePath"] = random.choice(("/", "/v1", "/v1/"))
        if random.random() < 0.6:
            document["consumes"] = random.sample(MEDIA_TYPES, random.randint(1, 2))
        if random.random() < 0.6:
            document["produces"] = random.sample(MEDIA_TYPES, random.randint(1, 2))
        document["definitions"] = {name: self.schema(2) for name in self._names}
        document["parameters"] = {"page size": self.parameter("query", "size")}
        document["responses"] = {"not found": self.response()}
        document["securityDefinitions"] = {
            "my key": {"type": "apiKey", "in": "header", "name": "k"},
            "flow": {
                "type": "oauth2",
                "flow": "implicit",
                "authorizationUrl": "https://a.example",
                "scopes": {},
            },
        }
        if random.random() < 0.3:
            document["security"] = [{"my key": []}]
        for number in range(random.randint(1, 3)):
            document["paths"][f"/p{number}/{{id}}"] = self.path_item()
        return document

    def path_item(self) -> dict[str, Any]:
        random = self._random
        item: dict[str, Any] = {}
        for method in random.sample(METHODS, random.randint(1, 3)):
            item[method] = self.operation(method)
        return item

    def operation(self, method: str) -> dict[str, Any]:
        random = self._random
        self._operations += 1
        node: dict[str, Any] = {"operationId": f"o{self._operations}"}
        parameters: list[Any] = [{**self.parameter("path", "id"), "required": True}]
        for number in range(random.randint(0, 3)):
            parameters.append(self.parameter(random.choice(("query", "header")), f"p{number}"))
        if random.random() < 0.2:
            parameters.append({"$ref": "#/parameters/page size"})
        if method in ("put", "post", "patch"):
            self._add_body(node, parameters)
        node["parameters"] = parameters
        if random.random() < 0.3:
            node["produces"] = random.sample(MEDIA_TYPES, 1)
        node["responses"] = {
            status: self.response() for status in random.sample(("200", "201", "404", "default"), 2)
        }
        if random.random() < 0.2:
            node["responses"]["500"] = {"$ref": "#/responses/not found"}
        return self._with_words(node)

    def _add_body(self, node: dict[str, Any], parameters: list[Any]) -> None:
        random = self._random
        match random.randrange(3):
            case 0:
                body = {"in": "body", "name": "body", "schema": self.schema(2)}
                parameters.append({**body, "required": True} if random.random() < 0.5 else body)
                if random.random() < 0.4:
                    node["consumes"] = random.sample(MEDIA_TYPES, 1)
            case 1:
                node["consumes"] = [random.choice(FORMS)]
                for number in range(random.randint(1, 3)):
                    parameters.append(self.parameter("formData", f"f{number}"))

    def _with_words(self, node: dict[str, Any]) -> dict[str, Any]:
        random = self._random
        words = {
            "description": "d",
            "summary": "s",
            "deprecated": True,
            "tags": ["t"],
            "x-extra": {"$ref": "#/definitions/none", "type": "file"},
            "security": [{"flow": []}],
            "externalDocs": {"url": "https://d.example"},
        }
        return node | {key: words[key] for key in words if random.random() < 0.2}

    def parameter(self, location: str, name: str) -> dict[str, Any]:
        random = self._random
        node: dict[str, Any] = {"in": location, "name": name, **self._plain()}
        if random.random() < 0.25:
            node.pop("default", None)
            node = {key: value for key, value in node.items() if key in ("in", "name")}
            node |= {"type": "array", "items": self._plain()}
            formats: tuple[str, ...] = ("csv", "multi") if location in ("query", "formData") else ("csv",)
            node["collectionFormat"] = random.choice(
                (*formats, "ssv", "pipes") if location == "query" else formats
            )
            if random.random() < 0.3:
                del node["collectionFormat"]
        if random.random() < 0.3:
            node["required"] = True
        if random.random() < 0.3:
            node["description"] = "d"
        return node

    def _plain(self) -> dict[str, Any]:
        random = self._random
        kind = random.choice(SCALARS)
        node: dict[str, Any] = {"type": kind}
        if kind in FORMATS and random.random() < 0.3:
            node["format"] = random.choice(FORMATS[kind])
        elif kind == "string" and random.random() < 0.4:
            node |= random.choice(
                (
                    {"enum": ["a", "b"], "default": "a"},
                    {"pattern": "^[a-z]+$", "minLength": 1},
                    {"maxLength": 5, "default": "abc"},
                )
            )
        elif kind in ("integer", "number") and random.random() < 0.4:
            node |= random.choice(({"minimum": 1, "maximum": 5, "default": 2}, {"multipleOf": 2}))
        return node

    def response(self) -> dict[str, Any]:
        random = self._random
        node: dict[str, Any] = {"description": "d"}
        if random.random() < 0.6:
            node["schema"] = {"type": "file"} if random.random() < 0.05 else self.schema(1)
        if random.random() < 0.2:
            node["headers"] = {"X-A": self._plain()}
        if random.random() < 0.1:
            node["x-response"] = 1
        return node

    def schema(self, depth: int) -> dict[str, Any]:
        random = self._random
        node = self._shape(depth)
        if random.random() < 0.15:
            node["description"] = "d"
        if random.random() < 0.1:
            node["x-kept"] = {"default": 1, "$ref": "#/definitions/none"}
        return node

    def _shape(self, depth: int) -> dict[str, Any]:
        random = self._random
        match random.randrange(7 if depth else 3):
            case 0:
                return {"$ref": f"#/definitions/{self._escaped(random.choice(self._names))}"}
            case 1 | 2:
                return self._plain()
            case 3:
                properties = {f"m{number}": self.schema(depth - 1) for number in range(random.randint(1, 3))}
                node: dict[str, Any] = {"type": "object", "properties": properties}
                if random.random() < 0.5:
                    node["required"] = [random.choice([*properties])]
                if random.random() < 0.2:
                    node["discriminator"] = "m0"
                return node
            case 4:
                return {"type": "array", "items": self.schema(depth - 1)}
            case 5:
                return {"allOf": [self.schema(depth - 1) for _ in range(random.randint(1, 2))]}
            case _:
                return {
                    "type": "object",
                    "additionalProperties": random.choice((True, self.schema(depth - 1))),
                }

    @staticmethod
    def _escaped(name: str) -> str:
        return name.replace("~", "~0").replace("/", "~1")


def random_swagger(random: Random) -> dict[str, Any]:
    return Swagger(random).document()


FAULTS: tuple[Any, ...] = (
    None, True, 0, -1, 1.5, 2**64, 10**30, "", "x", "$ref", "array", "null", [], {}, [None], ["a", "a"],
    {"$ref": "#/definitions/A"}, {"$ref": "#/definitions/none"}, {"$ref": "other.json"}, {"type": "array"},
    ["string", "null"], {"a b": "x"},
)  # fmt: skip
KEYS = (
    "$ref", "type", "items", "enum", "default", "pattern", "uniqueItems", "x-nullable", "required", "allOf",
    "security", "schemes", "consumes", "collectionFormat", "discriminator", "tags", "responses", "parameters",
    "unknown",
)  # fmt: skip


def with_faults(random: Random, document: dict[str, Any]) -> dict[str, Any]:
    """A copy in which some values are others, some keys are gone, and some are new."""
    broken = copy.deepcopy(document)
    for _ in range(random.randint(1, 4)):
        node = random.choice([*_containers(broken)])
        keys = [*node] if isinstance(node, dict) else [*range(len(node))]
        match random.randrange(3):
            case 0 if keys:
                node[random.choice(keys)] = copy.deepcopy(random.choice(FAULTS))
            case 1 if keys:
                del node[random.choice(keys)]
            case _ if isinstance(node, dict):
                node[random.choice(KEYS)] = copy.deepcopy(random.choice(FAULTS))
            case _:
                node.append(copy.deepcopy(random.choice(FAULTS)))
    return broken


def _containers(node: Any) -> Iterator[Any]:
    if isinstance(node, dict | list) and node:
        yield node
        for child in node.values() if isinstance(node, dict) else node:
            yield from _containers(child)
