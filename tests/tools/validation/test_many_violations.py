"""Objects with more faults than anybody reads: bounded lists, counted rests, true verdicts."""

from __future__ import annotations

import tracemalloc
from typing import Any

import orjson
import pytest

from specmux_converters.crd import build
from specmux_tools.kinds import DocumentSet
from specmux_tools.validation import Check, Directive, Severity, Validator, Violation
from specmux_tools.validation.decoding.body import read
from specmux_tools.validation.decoding.positions import Places
from specmux_tools.validation.decoding.yaml_reader import read_yaml
from specmux_tools.validation.messages import status_of
from specmux_tools.validation.report import MOST_VIOLATIONS, Path, bound_violations
from specmux_tools.validation.requests import BodyFormat, Operation

ITEM = {"type": "integer", "oneOf": [{"minimum": 5}, {"maximum": 0}]}
SPEC = {
    "type": "object",
    "required": ["ones"],
    "properties": {
        "ones": {"type": "array", "items": ITEM},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "objects": {
            "type": "array",
            "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
        },
    },
}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.org"},
    "spec": {
        "group": "example.org",
        "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": SPEC}}},
            }
        ],
    },
}
POD = {
    "openapi": "3.0.0",
    "info": {"title": "Kubernetes", "version": "v1"},
    "paths": {},
    "components": {
        "schemas": {
            "io.k8s.api.core.v1.Pod": {
                "type": "object",
                "properties": {
                    "apiVersion": {"type": "string"},
                    "kind": {"type": "string"},
                    "containers": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["name"],
                            "properties": {"name": {"type": "string"}},
                        },
                    },
                },
                "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Pod"}],
            }
        }
    },
}
COUNT = 30_000


@pytest.fixture(scope="module")
def validator() -> Validator:
    return Validator(DocumentSet({"api/v1": POD, **build([DEFINITION]).documents}))


def widget(**spec: Any) -> bytes:
    return orjson.dumps(
        {"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": spec}
    )


BODIES = {
    "required": b'{"apiVersion":"v1","kind":"Pod","containers":[%s]}' % b",".join([b"{}"] * COUNT),
    "types": b'{"apiVersion":"v1","kind":"Pod","containers":[%s]}' % b",".join([b"1"] * COUNT),
    "branches": widget(ones=list(range(1, 5)) * (COUNT // 4)),
    "missing": widget(ones=[], objects=[{}] * COUNT),
    "pruned": widget(ones=[], **{f"k{index}": 1 for index in range(COUNT)}),
    "sets": widget(ones=[], set=[str(index // 2) for index in range(2 * COUNT)]),
    "duplicates": b"apiVersion: v1\nkind: Pod\n" + b"containers: []\n" * (COUNT + 1),
}


@pytest.mark.parametrize("name", BODIES)
def test_what_is_listed_is_bounded_and_the_rest_counted(validator: Validator, name: str) -> None:
    media_type = "application/yaml" if name == "duplicates" else "application/json"
    report = validator.validate(BODIES[name], media_type)
    assert not report.is_valid
    assert len(report.violations) == MOST_VIOLATIONS + 1
    last = report.violations[-1]
    assert (last.check, last.severity) == (Check.LEFT_OUT, Severity.ERROR)
    listed = 2 * MOST_VIOLATIONS if name == "branches" else MOST_VIOLATIONS
    said = int(last.message.split()[1])
    assert COUNT - listed <= said <= 2 * COUNT
    status = status_of(report)
    assert status is not None
    assert len(orjson.dumps(status)) < 1_000_000


def test_memory_is_bounded_too(validator: Validator) -> None:
    body = BODIES["required"].replace(b"{}", b"{},{},{},{}")
    source = read(body, BodyFormat.JSON)
    validator.judge(source, Operation())
    tracemalloc.start()
    try:
        validator.judge(source, Operation())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 16 * 1024 * 1024  # a violation for each value would take four times that


def test_verdict_counts_what_is_not_listed() -> None:
    warnings = [Violation(Severity.WARNING, Check.METADATA, (index,), "a warning") for index in range(1000)]
    error = Violation(Severity.ERROR, Check.METADATA, (), "an error")
    kept = bound_violations([*warnings, error])
    assert error in kept
    assert len(kept) == MOST_VIOLATIONS + 1
    assert kept[-1].message == f"and {1001 - MOST_VIOLATIONS} more"


def test_few_are_all_listed(validator: Validator) -> None:
    report = validator.validate(widget(ones=[1, 2], objects=[{}]), directive=Directive.STRICT)
    assert [each.check for each in report.violations] == [Check.SCHEMA] * len(report.violations)


def test_places_are_the_same_wherever_reading_ends() -> None:
    text = '{"a": {"b": [{"c": 1}, {"c": 2}]}, "d": 3, "a2": {}, "d2": {"x": 1}}'
    for paths in (
        [("a", "b", 0, "c")],
        [("a", "b", 1, "x"), ("d",)],
        [(), ("d2", "x")],
        [("a",), ("a", "b")],
    ):
        early, whole = Places(paths), Places(paths)
        early.read_json(text)
        whole.read_json(text, repeats=True)
        assert [early.of(path) for path in paths] == [whole.of(path) for path in paths]


def test_a_place_below_an_alias_is_in_the_text_that_it_stands_for() -> None:
    text = "a: &a\n  b: [1, 2]\nc: *a\nd: {e: *a}\n"
    paths: list[Path] = [("c",), ("c", "b", 1), ("d", "e", "b"), ("c", "x")]
    places = Places(paths)
    places.read_yaml(read_yaml(text.encode()).marks)
    assert [places.of(path) for path in paths] == [(3, 1), (2, 10), (2, 3), (3, 1)]


def test_an_alias_stands_for_the_last_anchor_before_it() -> None:
    text = "a: &a {b: 1}\nc: *a\nd: &a {b: 2}\ne: *a\n"
    places = Places([("c", "b"), ("e", "b")])
    places.read_yaml(read_yaml(text.encode()).marks)
    assert (places.of(("c", "b")), places.of(("e", "b"))) == ((1, 8), (3, 8))
