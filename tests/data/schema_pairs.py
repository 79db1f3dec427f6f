"""Random pairs of structural schemas, one edited into the other, and objects that try their differences."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

import orjson

from data.compared import compared_specs, definition
from specmux_converters.crd import build
from specmux_tools.differences.changes import Place
from specmux_tools.differences.rules import Impact
from specmux_tools.kinds import DocumentSet
from specmux_tools.validation import Severity, Validator

Schema = dict[str, Any]

NAMES: Final = ("a", "b", "c")
TEXTS: Final = (
    "",
    "1",
    "a1",
    "ab1",
    "Zb",
    "aZ",
    "a",
    "b",
    "ab",
    "abc",
    "abcd",
    "abcde",
    "x1",
    "Z",
    "a-b",
    "12",
    "2024-01-01",
    "a.b",
)
UNDECIDED: Final = frozenset({"composition-changed", "constraint-changed", "field-typed", "nullable-removed"})
"""Warnings by contract: the schemas alone do not say whom the change concerns."""
PATTERNS: Final = ("^a", "^[a-z]+$", "b", "^.{2,3}$", "[0-9]", "^(a|b)$", "^[a-z]*$")
VALUES: Final = {
    "string": ("minLength", "maxLength", "pattern", "enum", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "enum"),
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties"),
}


class Schemas:
    """Makes schemas and edits them."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance

    def pair(self) -> tuple[Schema, Schema]:
        while True:
            old = self._schema(2)
            if old.get("type") not in ("object", "array"):
                continue
            new = copy.deepcopy(old)
            for _ in range(self._chance.randint(1, 2)):
                self._edit(new)
            if old != new:
                return old, new

    def _is(self, share: float) -> bool:
        return self._chance.random() < share

    def _values(self, kind: str) -> Schema:
        """Bounds and the like, of one type."""
        chance, found = self._chance, dict[str, Any]()
        kind = "number" if kind == "integer" else kind
        low, high = {
            "string": ("minLength", "maxLength"),
            "number": ("minimum", "maximum"),
            "array": ("minItems", "maxItems"),
            "object": ("minProperties", "maxProperties"),
        }.get(kind, ("", ""))
        top = {"string": 4, "number": 6}.get(kind, 3)
        if low and self._is(0.35):
            found[low] = chance.randint(0, top)
        if high and self._is(0.35):
            found[high] = chance.randint(found.get(low, 1), top + 1)
        if kind == "number":
            for bound, flag in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
                if bound in found and self._is(0.25):
                    found[flag] = True
            if self._is(0.15):
                found["multipleOf"] = chance.choice((1, 2, 3, 4))
            if self._is(0.12):
                return {"enum": sorted(chance.sample(range(7), chance.randint(1, 4)))}
        if kind == "string":
            if self._is(0.2):
                found["pattern"] = chance.choice(PATTERNS)
            if self._is(0.15):
                return {"enum": sorted(chance.sample(TEXTS, chance.randint(1, 4)))}
            if self._is(0.05):
                found["format"] = chance.choice(("date", "my-own"))
        return found

    def _branch(self, kind: str, fields: Schema) -> Schema:
        """A branch has no types: structural schemas say those outside."""
        roll = self._chance.random()
        if kind == "object":
            name = self._chance.choice(sorted(fields) or ["a"])
            inner = self._values(fields.get(name, {}).get("type", ""))
            if roll < 0.6 or not inner:
                return {"required": [name]}
            return {"not": {"required": [name]}} if roll < 0.75 else {"properties": {name: inner}}
        found: Schema = {}
        while not found:
            found = self._values(kind)
        return {"not": found} if roll < 0.1 else found

    def _combine(self, schema: Schema, kind: str) -> None:
        fields = schema.get("properties", {})
        for keyword in ("oneOf", "anyOf", "allOf"):
            if self._is(0.1 if kind == "object" else 0.03):
                count = self._chance.randint(1, 3)
                schema[keyword] = [self._part(keyword, kind, fields) for _ in range(count)]
        if self._is(0.04):
            schema["not"] = self._branch(kind, fields)

    def _part(self, keyword: str, kind: str, fields: Schema) -> Schema:
        if keyword == "allOf" and self._is(0.4):  # alternatives that hold together
            inner = self._chance.choice(("anyOf", "oneOf"))
            return {inner: [self._branch(kind, fields) for _ in range(2)]}
        return self._branch(kind, fields)

    def _schema(self, depth: int) -> Schema:
        simple = ["string", "integer", "number", "boolean", "either"]
        kind = self._chance.choice(
            [*simple, "string", "array", "object", "object", "map"] if depth else simple
        )
        schema: Schema
        match kind:
            case "either":
                schema = {"x-kubernetes-int-or-string": True}
            case "map":
                schema = {"type": "object", "additionalProperties": self._schema(depth - 1)}
            case "array":
                schema = {"type": "array", "items": self._schema(depth - 1), **self._values("array")}
            case "object":
                names = self._chance.sample(NAMES, self._chance.randint(1, 3))
                schema = {"type": "object", "properties": {name: self._schema(depth - 1) for name in names}}
                needed = [name for name in names if self._is(0.3)]
                schema |= {"required": needed} if needed else {}
                schema |= self._values("object") if self._is(0.2) else {}
                if self._is(0.08):
                    schema["x-kubernetes-preserve-unknown-fields"] = True
                self._combine(schema, "object")
            case _:
                schema = {"type": kind, **self._values(kind)}
                if kind != "boolean":
                    self._combine(schema, kind)
        if self._is(0.1) and "enum" not in schema:
            schema["nullable"] = True
        return schema

    def _edit(self, schema: Schema) -> None:
        holder, key = self._chance.choice(list(_places({"properties": {"spec": schema}})))
        node = holder[key]
        kind = node.get("type", "either")
        roll = self._chance.random()
        fields = node.get("properties")
        if roll < 0.1 and node is not schema:
            holder[key] = self._schema(1)
        elif roll < 0.18 and "enum" not in node:
            if node.pop("nullable", None) is None:
                node["nullable"] = True
        elif roll < 0.3 and fields:
            self._edit_fields(node)
        elif roll < 0.4 and fields:
            needed = set(node.get("required", ())) ^ {self._chance.choice(sorted(fields))}
            node.pop("required", None)
            node |= {"required": sorted(needed)} if needed else {}
        elif roll < 0.44 and fields:
            if node.pop("x-kubernetes-preserve-unknown-fields", None) is None:
                node["x-kubernetes-preserve-unknown-fields"] = True
        elif roll < 0.7 and kind in ("string", "integer", "number", "object"):
            self._edit_combination(node, kind)
        elif kind != "boolean":
            self._edit_values(node, "string" if kind == "either" else kind)

    def _edit_fields(self, node: Schema) -> None:
        name = self._chance.choice(NAMES)
        fields = node["properties"]
        needed = set(node.pop("required", ()))
        if name not in fields:
            fields[name] = self._schema(1)
            needed |= {name} if self._is(0.4) else set()
        elif len(fields) > 1:
            del fields[name]
            needed -= {name}
        node |= {"required": sorted(needed)} if needed else {}

    def _edit_combination(self, node: Schema, kind: str) -> None:
        fields = node.get("properties", {})
        keyword = self._chance.choice(("oneOf", "anyOf", "allOf", "not"))
        if keyword == "not":
            if node.pop("not", None) is None:
                node["not"] = self._branch(kind, fields)
        elif keyword in node and self._is(0.5) and len(node[keyword]) > 1:
            node[keyword].pop(self._chance.randrange(len(node[keyword])))
        elif keyword in node and self._is(0.2):
            del node[keyword]
        else:
            node.setdefault(keyword, []).append(self._part(keyword, kind, fields))

    def _edit_values(self, node: Schema, kind: str) -> None:
        fresh = self._values(kind)
        if node.get("nullable"):
            fresh.pop("enum", None)
        keywords = VALUES["number" if kind == "integer" else kind]
        for keyword in keywords:
            if self._is(0.3) or "enum" in fresh:
                node.pop(keyword, None)
        if "enum" not in node:  # what is listed is not bounded as well
            node.update(fresh)
        low, high = keywords[:2]
        if node.get(low, 0) > node.get(high, node.get(low, 0)):
            node.pop(high)
        for bound, flag in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
            if bound not in node:
                node.pop(flag, None)


def _places(holder: Schema) -> Iterator[tuple[Schema, str]]:
    """Every schema below, as what holds it and under which key; of ``properties`` the map holds it."""
    for name, schema in holder.get("properties", {}).items():
        yield holder["properties"], name
        yield from _places(schema)
    for key in ("items", "additionalProperties"):
        if isinstance(holder.get(key), dict):
            yield holder, key
            yield from _places(holder[key])


class Instances:
    """Values of ``spec`` that fit one schema, and the other one rather not."""

    def __init__(self, chance: Random, old: Schema, new: Schema) -> None:
        self._chance = chance
        self._sides = old, new
        numbers, texts = set[float](), set(TEXTS)
        _constants((old, new), numbers, texts)
        near = {number + more for number in numbers for more in (-1, -0.5, 0, 0.5, 1)}
        self._numbers = sorted(near | {0, 7, 12, 0.5, 2.5})
        self._texts = sorted(texts)
        self._sizes = sorted({int(number) for number in near if 0 <= number <= 5} | {0, 1, 2, 3})

    def make(self) -> Any:
        old, new = self._sides if self._chance.random() < 0.6 else self._sides[::-1]
        return self._value(old, new, 0)

    def _value(self, schema: Schema, other: Any, depth: int) -> Any:
        """Of several, one that fits ``schema``, and ``other`` not, where that can be."""
        tried = [
            self._any(schema, other, depth)
            for _ in range(8 >> depth if schema.get("type") == "object" else 8)
        ]
        fitting = [value for value in tried if fits(schema, value)]
        refused = [value for value in fitting if not isinstance(other, dict) or not fits(other, value)]
        if refused and self._chance.random() < 0.6:
            return self._chance.choice(refused)
        return self._chance.choice(fitting or tried)

    def _any(self, schema: Schema, other: Any, depth: int) -> Any:
        chance = self._chance
        if schema.get("nullable") and chance.random() < 0.25:
            return None
        if "enum" in schema and chance.random() < 0.6:
            return chance.choice(schema["enum"])
        match schema.get("type", "either"):
            case "string":
                return chance.choice(self._texts)
            case "integer":
                return int(chance.choice(self._numbers))
            case "number":
                return chance.choice(self._numbers)
            case "boolean":
                return chance.random() < 0.5
            case "array":
                inner = schema["items"], _below(other, "items")
                return [self._value(*inner, depth + 1) for _ in range(chance.choice(self._sizes))]
            case "object":
                return self._object(schema, other, depth)
        return chance.choice([int(chance.choice(self._numbers)), chance.choice(self._texts)])

    def _object(self, schema: Schema, other: Any, depth: int) -> Any:
        chance = self._chance
        if "additionalProperties" in schema:
            inner = schema["additionalProperties"], _below(other, "additionalProperties")
            names = chance.sample([*NAMES, "d", "e"], min(chance.choice(self._sizes), 5))
            return {name: self._value(*inner, depth + 1) for name in names}
        fields, needed = schema["properties"], schema.get("required", ())
        share = chance.choice((0.0, 0.3, 0.6, 1.0))
        found = {
            name: self._value(each, _below(other, "properties", name), depth + 1)
            for name, each in fields.items()
            if name in needed or chance.random() < share
        }
        if schema.get("x-kubernetes-preserve-unknown-fields"):
            for name in NAMES:
                if name not in fields and chance.random() < 0.4:
                    found[name] = chance.choice(["x1", 3, True, [], {}, {"a": 1}])
        return found


def _below(schema: Any, *keys: str) -> Any:
    for key in keys:
        schema = schema.get(key) if isinstance(schema, dict) else None
    return schema


def fits(schema: Schema, value: Any) -> bool:
    """A short reading of the schema, to look for values with: the verdicts are those of a Judge."""
    if value is None:
        return bool(schema.get("nullable"))
    kind = schema.get("type")
    types = {
        "string": str,
        "integer": int,
        "number": (int, float),
        "boolean": bool,
        "array": list,
        "object": dict,
    }
    if kind and not (isinstance(value, types[kind]) and isinstance(value, bool) == (kind == "boolean")):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if not _is_within(schema, value):
        return False
    if isinstance(value, dict):
        fields, others = schema.get("properties", {}), schema.get("additionalProperties", {})
        if not all(name in value for name in schema.get("required", ())):
            return False
        if not all(fits(fields.get(name, others), each) for name, each in value.items() if each is not None):
            return False
    if isinstance(value, list) and not all(fits(schema.get("items", {}), each) for each in value):
        return False
    count = sum(fits(branch, value) for branch in schema.get("oneOf", ()))
    return (
        ("oneOf" not in schema or count == 1)
        and ("anyOf" not in schema or any(fits(branch, value) for branch in schema["anyOf"]))
        and all(fits(branch, value) for branch in schema.get("allOf", ()))
        and not ("not" in schema and fits(schema["not"], value))
    )


def _is_within(schema: Schema, value: Any) -> bool:
    if isinstance(value, bool):
        return True
    if isinstance(value, int | float):
        low, high = schema.get("minimum", value), schema.get("maximum", value)
        is_inside = low <= value <= high and value % schema.get("multipleOf", value or 1) == 0
        touches = (schema.get("exclusiveMinimum") and "minimum" in schema and value == low) or (
            schema.get("exclusiveMaximum") and "maximum" in schema and value == high
        )
        return bool(is_inside and not touches)
    size = len(value)
    word = {str: "Length", list: "Items", dict: "Properties"}[type(value)]
    if not schema.get(f"min{word}", 0) <= size <= schema.get(f"max{word}", size):
        return False
    return not isinstance(value, str) or re.search(schema.get("pattern", ""), value) is not None


def _constants(value: Any, numbers: set[float], texts: set[str]) -> None:
    if isinstance(value, dict):
        for key, each in value.items():
            if key in ("minLength", "maxLength") and isinstance(each, int):
                lengths = [max(each + more, 0) for more in (-1, 0, 1)]
                texts.update(of * length for length in lengths for of in ("a", "b", "1", "Z"))
            _constants(each, numbers, texts)
    elif isinstance(value, list | tuple):
        for each in value:
            _constants(each, numbers, texts)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        numbers.add(value)


class Judge:
    """The project's own validator, asked as an apiserver is that refuses unknown fields."""

    def __init__(self, schema: Schema) -> None:
        built = build([definition(schema)])
        self.problems = built.problems
        self._schema = schema
        self._validator = Validator(DocumentSet(built.documents), release="1.34")

    def takes(self, value: Any) -> bool:
        """Whether it is accepted as it is: a null that is dropped is lost to its writer."""
        report = self._validator.validate(orjson.dumps(widget(value)))
        is_refused = report.fatal or any(each.severity is Severity.ERROR for each in report.violations)
        return not is_refused and not _drops(self._schema, value)


def widget(spec: Any) -> dict[str, Any]:
    head = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
    return {**head, "spec": spec}


def _drops(schema: Schema, value: Any) -> bool:
    if value is None:
        return bool(schema.get("type") or schema.get("x-kubernetes-int-or-string")) and not schema.get(
            "nullable"
        )
    if isinstance(value, dict):
        fields, others = schema.get("properties", {}), schema.get("additionalProperties")
        inner = ((fields.get(name, others), each) for name, each in value.items())
        return any(_drops(each, item) for each, item in inner if isinstance(each, dict))
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        return any(_drops(schema["items"], each) for each in value)
    return False


@dataclass(slots=True)
class Outcome:
    """One pair: what is said of it, and the values that prove it."""

    places: tuple[Place, ...]
    refused: list[Any] = field(default_factory=list)
    """Taken before, and refused after."""
    fresh: list[Any] = field(default_factory=list)
    """Taken after, and impossible before."""
    taken_values: list[Any] = field(default_factory=list)

    @property
    def taken(self) -> int:
        return len(self.taken_values)

    @property
    def is_reached(self) -> bool:
        """Whether a value that was taken before has something at a place that breaks writers. Where none has,
        the old schema may let none through: nothing can be said of noise."""
        broken = {place.path for place in self.places if place.impacts.write is Impact.BREAKING}
        return any(broken & {"", *paths} for paths in map(_paths, self.taken_values))

    @property
    def ids(self) -> set[str]:
        return {place.id for place in self.places}

    @property
    def writers(self) -> Impact:
        return max((place.impacts.write for place in self.places), default=Impact.NONE)

    @property
    def readers(self) -> Impact:
        return max((place.impacts.read for place in self.places), default=Impact.NONE)


def _paths(value: Any, above: str = "spec") -> Iterator[str]:
    """Those that a value has something at, as places are written; a map's keys are fields, too."""
    yield above
    if isinstance(value, dict):
        for name, each in value.items():
            yield from _paths(each, f"{above}.{name}")
            yield from _paths(each, f"{above}{{}}")
    elif isinstance(value, list):
        for each in value:
            yield from _paths(each, f"{above}[]")


def outcome(chance: Random, old: Schema, new: Schema, tries: int) -> Outcome | None:
    """None where a schema is not one that an apiserver takes."""
    judges = Judge(old), Judge(new)
    if any(judge.problems for judge in judges):
        return None
    found = Outcome(compared_specs(old, new).places)
    values = Instances(chance, old, new)
    for _ in range(tries):
        value = values.make()
        before, after = judges[0].takes(value), judges[1].takes(value)
        if before:
            found.taken_values.append(value)
        if before and not after:
            found.refused.append(value)
        if after and not before:
            found.fresh.append(value)
        if found.refused and found.fresh:
            break
    return found
