"""Updates that leave alone what they do not change (KEP-4008), against what apiextensions-apiserver 0.34.1
and 0.37.2 said; see ``tests/benchmarks/go/apiextensions``."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from specmux_converters.crd import build
from specmux_tools.kinds import DocumentSet
from specmux_tools.validation import Check, Severity, ValidationReport, Validator

RECORDED = Path(__file__).parent / "recorded" / "ratcheting.jsonl.gz"
CHECKS = {"schema": Check.SCHEMA, "lists": Check.LIST, "rules": Check.RULE}


def validator(schema: dict[str, Any], release: str = "1.34") -> Validator:
    names = {"plural": "widgets", "kind": "Widget", "listKind": "WidgetList", "singular": "widget"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [version]}
    head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    definition = {**head, "metadata": {"name": "widgets.example.com"}, "spec": spec}
    return Validator(DocumentSet(build([definition]).documents), release=release)


def told(report: ValidationReport) -> dict[str, list[str]]:
    found = {
        name: {
            each.message
            for each in report.violations
            if each.check is check and each.severity is Severity.ERROR
        }
        for name, check in CHECKS.items()
    }
    found["warnings"] = {
        each.message for each in report.violations if (each.check, each.severity) == (Check.RULE, "warning")
    }
    return {name: sorted(texts) for name, texts in found.items() if texts}


@pytest.mark.parametrize("release", ["1.34", "1.37"])
def test_every_recorded_answer_is_ours(release: str, tally: Callable[[str, int], None]) -> None:
    cases = [orjson.loads(line) for line in gzip.decompress(RECORDED.read_bytes()).splitlines()]
    wrong = []
    for case in cases:
        answer = case["answer"] if release == "1.34" else case.get("newest", case["answer"])
        wanted = {name: sorted(set(texts)) for name, texts in answer.items()}
        report = validator(case["schema"], release).validate(orjson.dumps(case["object"]), old=case["old"])
        if any("some validation rules were not checked" in each.message for each in report.violations):
            wanted.pop("rules", None)  # the judge evaluates them all the same, the strategy does not
            wanted.pop("warnings", None)
        found = told(report)
        if release == "1.34":  # texts are the newest's
            found, wanted = ({name: len(texts) for name, texts in each.items()} for each in (found, wanted))
        if found != wanted:
            wrong.append(f"{told(report)} instead of {wanted}: {case['object']} after {case['old']}")
    tally(f"updates recorded from apiextensions of {release}", len(cases))
    assert len(cases) >= 400
    assert not wrong, "\n".join(wrong)


def widget(spec: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": spec}


PARTS = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "size": {"type": "integer", "minimum": 1}},
        "required": ["name"],
    },
}
SPEC = {
    "type": "object",
    "properties": {
        "size": {"type": "integer", "minimum": 1},
        "other": {"type": "string"},
        "parts": PARTS,
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "any": {"anyOf": [{"required": ["a"]}], "type": "object", "properties": {"b": {"type": "string"}}},
    },
}


def errors(spec: Any, old: Any) -> list[str]:
    checker = validator({"type": "object", "properties": {"spec": SPEC}})
    report = checker.validate(orjson.dumps(widget(spec)), old=widget(old))
    return [each.message.partition(":")[0] for each in report.violations if each.severity is Severity.ERROR]


def test_unchanged_values_are_left_alone() -> None:
    assert errors({"size": 0, "other": "a"}, {"size": 0, "other": "b"}) == []
    assert errors({"size": -1}, {"size": 0}) == ["spec.size"]
    assert errors({"size": 0}, {}) == ["spec.size"]
    assert errors({"any": {"b": "x"}}, {"any": {"b": "x"}}) == []
    assert "spec.any.a" in errors({"any": {"b": "x"}}, {"any": {"b": "y"}})


def test_items_are_known_by_their_keys_and_nothing_else() -> None:
    bad, good = {"name": "a", "size": 0}, {"name": "b", "size": 1}
    assert errors({"parts": [good, bad]}, {"parts": [bad]}) == []
    assert errors({"parts": [{**bad, "name": "c"}]}, {"parts": [bad]}) == ["spec.parts[0].size"]


def test_sets_that_were_none_stay_so() -> None:
    assert errors({"tags": ["a", "a", "b"]}, {"tags": ["a", "a"]}) == []
    assert errors({"tags": ["a", "a"]}, {"tags": ["a"]}) == ["spec.tags[1]"]
