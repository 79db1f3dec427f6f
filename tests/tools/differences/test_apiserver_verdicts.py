"""Objects judged by apiextensions-apiserver 0.34.1 under two schemas, beside what the comparison says.

Recorded with the program in ``tests/benchmarks/go/apiextensions``, which prunes, drops nulls, fills in
defaults and validates: ``accepted`` is its verdict under the old schema of ``spec`` and under the new one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from data.compared import compared_specs, definition, of_manifests
from specmux_tools.differences import Comparison, compare
from specmux_tools.differences.rules import Impact

CASES = [
    orjson.loads(line)
    for line in (Path(__file__).parent / "apiserver_verdicts.jsonl").read_bytes().splitlines()
]
TYPED = {"field-typed"}
"""A warning by contract: who has other values in a field that had no type is not known."""


def writers(comparison: Comparison) -> Impact:
    return max((place.impacts.write for place in comparison.places), default=Impact.NONE)


@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
def test_a_change_breaks_writers_where_an_apiserver_refuses_what_it_took(case: Any) -> None:
    found = compared_specs(case["old"], case["new"])
    assert case["accepted"][0]
    if case["accepted"][1]:
        assert writers(found) < Impact.BREAKING
    elif {place.id for place in found.places} == TYPED:
        assert writers(found) is Impact.WARNING
    else:
        assert writers(found) is Impact.BREAKING


def test_a_branch_that_excludes_the_others_breaks_no_writer() -> None:
    """The same id, with the impacts of what it means here."""
    one_of = [{"enum": ["a"]}, {"enum": ["b"]}]
    string = {"type": "string"}
    apart = compared_specs({**string, "oneOf": one_of}, {**string, "oneOf": [*one_of, {"enum": ["c"]}]})
    beside = compared_specs({**string, "oneOf": one_of}, {**string, "oneOf": [*one_of, {"maxLength": 1}]})
    assert [(place.id, place.impacts.write) for place in apart.places] == [("branch-added", Impact.NONE)]
    assert [(place.id, place.impacts.write) for place in beside.places] == [("branch-added", Impact.BREAKING)]


def test_pruning_that_begins_breaks_what_writers_and_objects_kept() -> None:
    keeping, pruning = definition({"type": "object"}), definition({"type": "object"})
    keeping["spec"]["preserveUnknownFields"] = True
    pruning["spec"]["preserveUnknownFields"] = False
    (place,) = compare(of_manifests([keeping]), of_manifests([pruning])).places
    assert (place.id, place.path) == ("unknown-fields-pruned", "")
    assert place.impacts.write is place.impacts.stored is Impact.BREAKING


def test_another_field_that_is_scaled_breaks_who_scales() -> None:
    def scaled(**paths: str) -> Any:
        return of_manifests([definition({"type": "object"}, subresources={"scale": paths})])

    old = scaled(specReplicasPath=".spec.replicas", statusReplicasPath=".status.replicas")
    (place,) = compare(
        old, scaled(specReplicasPath=".spec.size", statusReplicasPath=".status.replicas")
    ).places
    assert (place.id, place.what, place.old, place.new) == (
        "scale-path-changed",
        "specReplicasPath",
        ".spec.replicas",
        ".spec.size",
    )
    assert place.impacts.write is place.impacts.read is Impact.BREAKING
    (place,) = compare(
        old, scaled(specReplicasPath=".spec.replicas", statusReplicasPath=".status.size")
    ).places
    assert (place.impacts.write, place.impacts.read) == (Impact.NONE, Impact.BREAKING)
    assert not compare(old, old).places
