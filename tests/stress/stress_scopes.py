"""Compare small schemas pair by pair, and judge each pair by all small values.

    python tests/stress/stress_scopes.py [--share 1.0] [--seed 1]

Schemas of at most three nodes over type, nullable, enum, minimum, maximum, required, oneOf and
x-kubernetes-list-type; objects of at most two fields, lists of at most two items. Where a value was valid and
is no longer, a break for writers must be reported. Prints what was missed, and false alarms by rule: breaks
that no value shows. ``--share`` takes a part of the pairs. Exits with 1 where something was missed.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests")]

from data.compared import compared_specs  # noqa: E402
from specmux_tools.differences.impacts import Impact  # noqa: E402

Schema = dict[str, Any]

LEAVES: Final[tuple[Schema, ...]] = (
    {"type": "string"},
    {"type": "string", "nullable": True},
    {"type": "string", "enum": ["a"]},
    {"type": "string", "enum": ["a", "b"]},
    {"type": "integer"},
    {"type": "integer", "minimum": 1},
    {"type": "integer", "minimum": 1, "maximum": 1},
    {"type": "integer", "maximum": 1, "nullable": True},
    {"type": "boolean"},
)
SCALARS: Final = ("a", "b", "c", 0, 1, 2, True, None)
ABSENT: Final = object()


def schemas() -> list[Schema]:
    """All schemas of the scope, each of an object."""
    arrays: list[Schema] = [
        {"type": "array", "items": item, **kind}
        for item in LEAVES
        for kind in ({}, {"x-kubernetes-list-type": "atomic"}, {"x-kubernetes-list-type": "set"})
        if not (item.get("nullable") and kind.get("x-kubernetes-list-type") == "set")
    ]
    found: list[Schema] = [{"type": "object"}]
    for leaf in (*LEAVES, *arrays):
        found += [_object({"p": leaf}), _object({"p": leaf}, "p")]
    for first, second in itertools.product(LEAVES, repeat=2):
        both = {"p": first, "q": second}
        found += [_object(both), _object(both, "p"), _object(both, "p", "q")]
        found.append({**_object(both), "oneOf": [{"required": ["p"]}, {"required": ["q"]}]})
    return found


def _object(properties: dict[str, Schema], *required: str) -> Schema:
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


def values() -> list[dict[str, Any]]:
    lists = [list(items) for size in range(3) for items in itertools.product(SCALARS, repeat=size)]
    first = (ABSENT, *SCALARS, *lists)
    pairs = ((p, q) for p in first for q in (ABSENT, *SCALARS) if q is ABSENT or not isinstance(p, list))
    named = (zip("pq", pair, strict=True) for pair in pairs)
    return [{name: value for name, value in each if value is not ABSENT} for each in named]


def is_valid(schema: Schema, value: Any) -> bool:
    """What an apiserver takes with strict field validation."""
    if value is None:
        return bool(schema.get("nullable"))
    match schema["type"]:
        case "object":
            known = schema.get("properties", {})
            branches = [set(branch["required"]) <= value.keys() for branch in schema.get("oneOf", ())]
            return (
                set(schema.get("required", ())) <= value.keys() <= known.keys()
                and (not branches or sum(branches) == 1)
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
            return is_number and schema.get("minimum", value) <= value <= schema.get("maximum", value)


def compare_all(*, share: float, seed: int) -> tuple[int, list[tuple[Schema, Schema]], Counter[str], int]:
    """Pairs compared, pairs missed, false alarms by rule, pairs with a false alarm."""
    chosen, random_ = schemas(), random.Random(seed)
    all_values = values()
    valid = [sum(is_valid(each, value) << place for place, value in enumerate(all_values)) for each in chosen]
    missed: list[tuple[Schema, Schema]] = []
    alarms: Counter[str] = Counter()
    compared = false = 0
    for (old, before), (new, after) in itertools.product(zip(chosen, valid, strict=True), repeat=2):
        if random_.random() >= share:
            continue
        compared += 1
        places = compared_specs(old, new).places
        breaks = {place.id for place in places if place.impacts.write is Impact.BREAKING}
        if before & ~after:
            missed += [] if breaks else [(old, new)]
        elif breaks:
            false += 1
            alarms.update(breaks)
    return compared, missed, alarms, false


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    compared, missed, alarms, false = compare_all(share=options.share, seed=options.seed)
    print(f"{compared} pairs of {len(schemas())} schemas, {len(values())} values each")
    for old, new in missed[:20]:
        print(f"missed: {old} -> {new}")
    print(f"{len(missed)} missed; {false} false alarms: {dict(alarms.most_common())}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
