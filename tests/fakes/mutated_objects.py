"""Objects of all kinds of some documents, and mutants of them."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterable, Iterator
from typing import Any

import orjson
import yaml

from specmux_tools.explanation.skeleton import skeleton
from specmux_tools.kinds import DocumentSet

MUTANTS = 12
"""Of each object."""
VALUES = (None, True, 0, -1, 1.5, 2**40, "", "a", "10%", "2026-01-01T00:00:00Z", [], ["a"], {}, {"a": 1})


def mutants(objects: Iterable[Any], *, each: int = MUTANTS) -> Iterator[bytes]:
    """The same with each call."""
    chance = random.Random(1)
    for value in objects:
        for _ in range(each):
            mutant = copy.deepcopy(value)
            for _ in range(chance.randint(1, 3)):
                _mutate(mutant, chance)
            yield orjson.dumps(mutant, default=str)


def skeletons(known: DocumentSet) -> Iterator[Any]:
    for each in known:
        if "metadata" in each.schema.get("properties", {}):
            yield yaml.safe_load(skeleton(each.document, each.kind, each.schema))


def _mutate(value: Any, chance: random.Random) -> None:
    """Changes one place: another value, a member less, a misspelt one, an item twice."""
    places = [(parent, key) for parent, key in _places(value) if key not in ("apiVersion", "kind")]
    if not places:
        return
    parent, key = chance.choice(places)
    match chance.randrange(4):
        case 0:
            del parent[key]
        case 1 if isinstance(parent, dict):
            parent[f"{key}x"] = parent.pop(key)
        case 2 if isinstance(parent, list):
            parent.append(copy.deepcopy(parent[key]))
        case _:
            parent[key] = copy.deepcopy(chance.choice(VALUES))


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    for key, each in (
        list(value.items())
        if isinstance(value, dict)
        else list(enumerate(value))
        if isinstance(value, list)
        else []
    ):
        yield value, key
        yield from _places(each)
