"""Compare small schemas pair by pair, and judge each pair by all small values.

    python tests/stress/stress_scopes.py [--share 1.0] [--seed 1] [--part 0/1]

Schemas of at most three nodes over type, nullable, enum, minimum, maximum, required, oneOf and
x-kubernetes-list-type; objects of at most two fields, lists of at most two items. Where a value was valid and
is no longer, a break for writers must be reported. Prints what was missed, and false alarms by rule: breaks
that no value shows. ``--share`` takes a part of the pairs, ``--part 0/2`` those of one of two processes.
Exits with 1 where something was missed.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from unittest import mock

import orjson

ROOT: Final = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests")]

from data.compared import compared_specs  # noqa: E402
from specmux_tools.differences import comparison  # noqa: E402
from specmux_tools.differences.findings import Result  # noqa: E402
from specmux_tools.differences.rules import Impact  # noqa: E402
from specmux_tools.differences.schema.schema_comparison import SchemaComparison  # noqa: E402

Schema = dict[str, Any]

LEAVES: Final[tuple[Schema, ...]] = (
    {"type": "string"},
    {"type": "string", "nullable": True},
    {"type": "string", "enum": ["a"]},
    {"type": "string", "enum": ["a", "b"]},
    {"type": "string", "enum": ["b", "c"]},
    {"type": "string", "enum": ["a", None], "nullable": True},
    {"type": "integer"},
    {"type": "integer", "nullable": True},
    {"type": "integer", "minimum": 1},
    {"type": "integer", "maximum": 1},
    {"type": "integer", "minimum": 1, "maximum": 1},
    {"type": "integer", "maximum": 1, "nullable": True},
    {"type": "integer", "enum": [1]},
    {"type": "integer", "enum": [0, 2]},
    {"type": "boolean"},
    {"type": "boolean", "nullable": True},
)
SCALARS: Final = ("a", "b", "c", 0, 1, 2, True, False, None)
ABSENT: Final = object()
BATCH: Final = 500
"""Pairs in one comparison."""
REQUIRED: Final[tuple[tuple[str, ...], ...]] = ((), ("p",), ("q",), ("p", "q"))
ONE_OF: Final = [{"required": ["p"]}, {"required": ["q"]}]


def schemas() -> list[Schema]:
    """All schemas of the scope, each of an object. Equal parts are the same object."""
    below: list[Schema] = [
        {"type": "array", "items": item, **kind}
        for item in LEAVES
        for kind in ({}, {"x-kubernetes-list-type": "atomic"}, {"x-kubernetes-list-type": "set"})
        if not (item.get("nullable") and kind.get("x-kubernetes-list-type") == "set")
    ]
    below += [{"type": "object"}, {"type": "object", "nullable": True}]
    below += [_object({"p": leaf}, *names) for leaf in LEAVES for names in REQUIRED[:2]]
    found: list[Schema] = [{"type": "object"}]
    found += [_object({"p": each}, *names) for each in (*LEAVES, *below) for names in REQUIRED[:2]]
    for first, second in itertools.product(LEAVES, repeat=2):
        both = {"p": first, "q": second}
        found += [_object(both, *names) for names in REQUIRED]
        found.append({**_object(both), "oneOf": ONE_OF})
    return found


def _object(properties: dict[str, Schema], *required: str) -> Schema:
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


def mirrored(schema: Schema) -> Schema:
    """The same schema with its two fields exchanged; it itself where it has not two."""
    names = {"p": "q", "q": "p"}
    known = schema.get("properties", {})
    if known.keys() != names.keys():
        return schema
    required = sorted(names[name] for name in schema.get("required", ()))
    return {**schema, "properties": {"p": known["q"], "q": known["p"]}} | (
        {"required": required} if required else {}
    )


def values() -> list[dict[str, Any]]:
    lists = [list(items) for size in range(3) for items in itertools.product(SCALARS, repeat=size)]
    objects: list[Any] = [{}, *({"p": each} for each in SCALARS)]
    alone = [{"p": each} for each in (*lists, *objects)]
    pairs = itertools.product((ABSENT, *SCALARS), repeat=2)
    named = (zip("pq", pair, strict=True) for pair in pairs)
    return [*alone, *({name: value for name, value in each if value is not ABSENT} for each in named)]


def is_valid(schema: Schema, value: Any) -> bool:
    """What an apiserver takes with strict field validation."""
    if value is None:
        return bool(schema.get("nullable"))
    match schema["type"]:
        case "object":
            known, branches = schema.get("properties", {}), schema.get("oneOf", ())
            return (
                isinstance(value, dict)
                and set(schema.get("required", ())) <= value.keys() <= known.keys()
                and sum(set(branch["required"]) <= value.keys() for branch in branches) == bool(branches)
                and all(is_valid(known[name], each) for name, each in value.items())
            )
        case "array":
            is_set = schema.get("x-kubernetes-list-type") == "set"
            return (
                isinstance(value, list)
                and all(is_valid(schema["items"], item) for item in value)
                and not (is_set and len({*map(repr, value)}) < len(value))
            )
        case "string":
            return isinstance(value, str) and value in schema.get("enum", [value])
        case "boolean":
            return isinstance(value, bool)
        case _:
            is_number = isinstance(value, int) and not isinstance(value, bool)
            is_within = is_number and schema.get("minimum", value) <= value <= schema.get("maximum", value)
            return is_within and value in schema.get("enum", [value])


class _Remembering(SchemaComparison):
    """Compares the same two schema objects once: fields and items are few, and in many pairs."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._results: dict[tuple[int, int], Result] = {}

    def compare(self, old: Any, new: Any) -> Result:
        if id(old) not in _SHARED or id(new) not in _SHARED:
            return super().compare(old, new)
        key = (id(old), id(new))
        if key not in self._results:
            self._results[key] = super().compare(old, new)
        return self._results[key]


_SHARED: Final = frozenset(map(id, LEAVES))


@dataclass
class Verdicts:
    """``compared``: pairs, each with its mirror image; ``false``: pairs with a break that no value shows."""

    compared: int = 0
    missed: list[tuple[Schema, Schema]] = field(default_factory=list)
    broken: int = 0
    false: int = 0
    alarms: Counter[str] = field(default_factory=Counter)
    examples: dict[str, tuple[Schema, Schema]] = field(default_factory=dict)


def compare_all(*, share: float, seed: int, part: int = 0, parts: int = 1) -> Verdicts:
    """Judge all pairs, or a share of them. Pairs that differ by the names of the two fields are compared
    once and counted twice. ``part``: of ``parts``, for as many processes."""
    chosen, random_ = schemas(), random.Random(seed)
    places = {orjson.dumps(each): place for place, each in enumerate(chosen)}
    mirror = [places[orjson.dumps(mirrored(each))] for each in chosen]
    all_values = values()
    valid = [sum(is_valid(each, value) << place for place, value in enumerate(all_values)) for each in chosen]
    found = Verdicts()
    for old in range(part, len(chosen), parts):
        batch = [
            (old, new)
            for new in range(len(chosen))
            if (old, new) <= (mirror[old], mirror[new])
            if share == 1.0 or random_.random() < share
        ]
        for (_, new), breaks in zip(batch, _breaks(chosen, batch), strict=True):
            weight = 1 if (old, new) == (mirror[old], mirror[new]) else 2
            found.compared += weight
            if valid[old] & ~valid[new]:
                found.broken += weight
                found.missed += [] if breaks else [(chosen[old], chosen[new])]
            elif breaks:
                found.false += weight
                for each in breaks:
                    found.alarms[each] += weight
                    found.examples.setdefault(each, (chosen[old], chosen[new]))
    return found


def _breaks(chosen: list[Schema], batch: list[tuple[int, int]]) -> list[set[str]]:
    """The breaks for writers of each pair: one comparison of objects that have a field for each."""
    found: list[set[str]] = [set() for _ in batch]
    for start in range(0, len(batch), BATCH):
        pairs = batch[start : start + BATCH]
        sides = (
            {"type": "object", "properties": {f"f{place}": chosen[each] for place, each in enumerate(side)}}
            for side in zip(*pairs, strict=True)
        )
        for place in compared_specs(*sides).places:
            if place.impacts.write is Impact.BREAKING:
                name = place.path.removeprefix("spec.f").partition(".")[0]
                found[start + int(name)].add(place.id)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--part", default="0/1")
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    started = time.process_time()
    with mock.patch.object(comparison, "SchemaComparison", _Remembering):
        found = compare_all(share=options.share, seed=options.seed, part=part, parts=parts)
    seconds = time.process_time() - started
    print(f"{found.compared} pairs of {len(schemas())} schemas, {len(values())} values, {seconds:.0f} s")
    for old, new in found.missed[:20]:
        print(f"missed: {old} -> {new}")
    print(f"{len(found.missed)} missed of {found.broken}; {found.false} false alarms")
    for rule, count in found.alarms.most_common():
        print(f"{rule}: {count}, as {found.examples[rule][0]} -> {found.examples[rule][1]}")
    return 1 if found.missed else 0


if __name__ == "__main__":
    sys.exit(main())
