"""Random objects of a custom kind: right by its schema as far as a guess goes, and with one thing changed."""

from __future__ import annotations

import copy
import re
from random import Random
from typing import Any, Final

TEXTS: Final = (
    "a",
    "web-1",
    "example.com",
    "https://example.com/x",
    "10s",
    "1h30m",
    "100m",
    "2Gi",
    "50%",
    "Ready",
    "v1",
    "1",
    "A",
    "/metrics",
    "10.0.0.0/8",
    "2026-01-02T03:04:05Z",
    "YWJj",
    "apps/v1",
    "example.com/a",
)
"""Tried where a pattern or a format is to be met."""

FORMATS: Final = {
    "date-time": "2026-01-02T03:04:05Z",
    "date": "2026-01-02",
    "duration": "10s",
    "byte": "YWJj",
    "uri": "https://example.com/x",
    "ipv4": "10.0.0.1",
    "cidr": "10.0.0.0/8",
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
}

ODD: Final = (None, "", 0, -1, 1.5, 2**40, True, [], {}, "x" * 300, "No Such!", ["a", "a"], {"a": 1})
"""In the place of any value."""

Place = tuple[str | int, ...]


class ObjectMaker:
    """Objects of one version of a definition; the same seed makes the same ones."""

    def __init__(self, definition: dict[str, Any], version: dict[str, Any], seed: int) -> None:
        self._random = Random(f"{definition['metadata']['name']} {version['name']} {seed}")
        spec = definition["spec"]
        self._type = {"apiVersion": f"{spec['group']}/{version['name']}", "kind": spec["names"]["kind"]}
        self._schema = version["schema"]["openAPIV3Schema"]

    def made(self, name: str) -> dict[str, Any]:
        """An object that may be right."""
        found = self._value(self._schema, 0)
        rest = {key: value for key, value in found.items() if key not in ("apiVersion", "kind", "metadata")}
        return {**self._type, "metadata": {"name": name, "namespace": "default"}, **rest}

    def changed(self, given: dict[str, Any]) -> dict[str, Any]:
        """``given`` with something else somewhere below it, metadata left alone."""
        changed = copy.deepcopy(given)
        places = [each for each in _places(given) if each[0] not in ("apiVersion", "kind", "metadata")]
        if not places:
            return {**changed, "noSuchField": 1}
        *way, last = self._random.choice(places)
        holder = changed
        for step in way:
            holder = holder[step]
        match self._random.randrange(5):
            case 0 if isinstance(holder[last], dict):
                holder[last]["noSuchField"] = 1
            case 1 if isinstance(holder[last], list) and holder[last]:
                holder[last].append(copy.deepcopy(holder[last][0]))
            case 2 if isinstance(holder, dict):
                del holder[last]
            case _:
                holder[last] = copy.deepcopy(self._random.choice(ODD))
        return changed

    def _value(self, schema: dict[str, Any], depth: int) -> Any:
        if "enum" in schema:
            return self._random.choice(schema["enum"])
        if schema.get("x-kubernetes-int-or-string"):
            return self._random.choice((1, "50%"))
        match schema.get("type"):
            case "object":
                return self._object(schema, depth)
            case "array":
                least = schema.get("minItems", 0)
                count = max(least, self._random.randrange(3))
                return [self._value(schema.get("items", {}), depth + 1) for _ in range(min(count, 4))]
            case "integer" | "number":
                least, most = schema.get("minimum", 0), schema.get("maximum", 10**6)
                return self._random.choice((least, min(least + 1, most), most))
            case "boolean":
                return self._random.random() < 0.5
            case "string":
                return self._text(schema)
        return {"a": "b"}

    def _object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        required = schema.get("required", ())
        made = {
            name: self._value(each, depth + 1)
            for name, each in schema.get("properties", {}).items()
            if name in required or self._random.random() < 0.9 / (depth + 1)
        }
        more = schema.get("additionalProperties")
        if isinstance(more, dict):
            made["key"] = self._value(more, depth + 1)
        return made

    def _text(self, schema: dict[str, Any]) -> str:
        pattern, least, most = schema.get("pattern"), schema.get("minLength", 0), schema.get("maxLength", 300)
        form = FORMATS.get(schema.get("format", ""))
        for text in (form,) if form else self._random.sample(TEXTS, len(TEXTS)):
            if least <= len(text) <= most and (pattern is None or re.search(pattern, text)):
                return text
        return "a" * max(least, 1)


def _places(value: Any, way: Place = ()) -> list[Place]:
    items: Any = ()
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
    return [place for key, each in items for place in ((*way, key), *_places(each, (*way, key)))]
