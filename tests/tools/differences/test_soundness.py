"""Soundness: an object that was valid and is refused has an entry that breaks writers; one that was
impossible and is valid has an entry. The oracle is the project's validator; ``tests/stress/stress_diff.py``
asks Kubernetes' own code as well, about thousands of pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from random import Random
from typing import Any

import orjson
import pytest

import shared_data
from data.compared import of_manifests
from data.schema_pairs import UNDECIDED, Schemas, outcome
from sampling import ends
from shared_data import DATA, needs
from specmux_converters.crd import build
from specmux_converters.yaml import parse_yaml_stream
from specmux_tools.differences import compare
from specmux_tools.differences.rules import Impact
from specmux_tools.kinds import DocumentSet
from specmux_tools.validation import Severity, Validator

PAIRS = 12
TRIES = 12


@pytest.mark.parametrize("seed", ends(range(8)))
def test_random_pairs_say_what_breaks(seed: int, tally: Callable[[str, int], None]) -> None:
    chance = Random(seed)
    schemas = Schemas(chance)
    for _ in range(PAIRS):
        old, new = schemas.pair()
        found = outcome(chance, old, new, TRIES)
        if found is None:
            continue
        tally("random pairs of schemas compared", 1)
        if found.refused:
            assert found.writers is Impact.BREAKING or found.ids & UNDECIDED, (old, new, found.refused)
            assert found.writers is not Impact.NONE, (old, new, found.refused)
        if found.fresh:
            assert found.places, (old, new, found.fresh)


RELEASES = sorted((DATA / "crd-pairs" / "gateway-api").glob("v*")) if DATA.is_dir() else []


def manifests(release: Any) -> list[Any]:
    files = sorted(release.rglob("*.yaml*"))
    return [item for path in files for item in parse_yaml_stream(shared_data.read(path))]


@needs("data/crd-pairs", "data/manifests")
def test_real_releases_say_what_breaks_real_objects(tally: Callable[[str, int], None]) -> None:
    """Each object of the manifests whose kind both releases have."""
    objects = [
        item
        for path in sorted((DATA / "manifests").rglob("*.yaml*"))
        if b"gateway.networking.k8s.io" in (data := shared_data.read(path)) and b"{{" not in data
        for item in parse_yaml_stream(data)
        if isinstance(item, dict) and str(item.get("apiVersion", "")).startswith("gateway.networking")
    ]
    objects += [minimal(kind, fields) for kind, fields in MADE]
    for before, after in pairwise(RELEASES):
        sides = manifests(before), manifests(after)
        places = compare(of_manifests(sides[0]), of_manifests(sides[1])).places
        broken = {place.kind for place in places if place.impacts.write is Impact.BREAKING}
        validators = [Validator(DocumentSet(build(side).documents)) for side in sides]
        for item in objects:
            tally("real objects judged under two releases", 1)
            was, now = (is_valid(validator, item) for validator in validators)
            assert not (was and not now) or item["kind"] in broken or "" in broken, (before, after, item)


MADE: list[tuple[str, dict[str, Any]]] = [
    ("GatewayClass", {"controllerName": "example.com/controller"}),
    ("Gateway", {"gatewayClassName": "c", "listeners": [{"name": "a", "port": 80, "protocol": "HTTP"}]}),
    (
        "HTTPRoute",
        {
            "parentRefs": [{"name": "g"}],
            "hostnames": ["example.com"],
            "rules": [
                {
                    "matches": [{"path": {"type": "PathPrefix", "value": "/a"}}],
                    "backendRefs": [{"name": "s", "port": 80, "weight": 1}],
                    "filters": [
                        {
                            "type": "RequestHeaderModifier",
                            "requestHeaderModifier": {"set": [{"name": "x", "value": "1"}]},
                        }
                    ],
                }
            ],
        },
    ),
]


def minimal(kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    head = {"apiVersion": "gateway.networking.k8s.io/v1", "kind": kind}
    return {**head, "metadata": {"name": "x", "namespace": "d"}, "spec": spec}


def is_valid(validator: Validator, item: Any) -> bool:
    report = validator.validate(orjson.dumps(item))
    return report.is_known and not any(each.severity is Severity.ERROR for each in report.violations)
