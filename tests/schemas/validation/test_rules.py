"""Rules of custom resources (CEL), against what apiextensions-apiserver 0.34.1 said; see
``tests/benchmarks/go/apiextensions``."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from shared_data import DATA, needs_shared, read
from specmux_converters.crd import build
from specmux_converters.yaml.reader import parse_yaml_stream
from specmux_schemas.kinds import DocumentSet
from specmux_schemas.references import schemas_of
from specmux_schemas.validation import Check, Severity, Validator
from specmux_schemas.validation.rules.declared import RuleNode, escaped_name, rule_tree
from specmux_schemas.validation.rules.evaluation import evaluation

RECORDED = Path(__file__).parent / "recorded" / "rules.jsonl.gz"


def validator(schema: dict[str, Any], **options: Any) -> Validator:
    names = {"plural": "widgets", "kind": "Widget", "listKind": "WidgetList", "singular": "widget"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [version]}
    head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    definition = {**head, "metadata": {"name": "widgets.example.com"}, "spec": spec}
    return Validator(DocumentSet(build([definition]).documents), **options)


def widget(spec: Any) -> bytes:
    head = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}}
    return orjson.dumps({**head, "spec": spec})


def with_rules(inner: dict[str, Any], *rules: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"spec": {**inner, "x-kubernetes-validations": list(rules)}}}


def test_every_recorded_answer_is_ours(tally: Callable[[str, int], None]) -> None:
    cases = [orjson.loads(line) for line in gzip.decompress(RECORDED.read_bytes()).splitlines()]
    wrong, unchecked = [], 0
    for case in cases:
        report = validator(case["schema"], ratchets=False).validate(
            orjson.dumps(case["object"]), old=case.get("old")
        )
        found = sorted(each.message for each in report.violations if each.check is Check.RULE)
        if any(each.check is Check.NOT_CHECKED for each in report.violations):
            unchecked += 1
            wrong.append(f"not checked: {case['schema']}")
        elif found != case["answer"].get("rules", []):
            wrong.append(f"{found} instead of {case['answer'].get('rules')}: {case['object']}")
    tally("rules recorded from apiextensions", len(cases))
    tally("rules recorded, told as not checked", unchecked)
    assert len(cases) >= 300
    assert not wrong, "\n".join(wrong)


def test_rules_wait_for_the_schema() -> None:
    schema = with_rules({"type": "object", "properties": {"a": {"type": "string"}}}, {"rule": "false"})
    report = validator(schema).validate(widget({"a": 1}))
    assert [each.check for each in report.violations] == [Check.SCHEMA, Check.NOT_CHECKED]
    assert report.violations[1].severity is Severity.NOTE


def test_a_rule_that_would_take_long_is_not_started() -> None:
    items = {"type": "array", "items": {"type": "integer"}}
    nested = {"rule": "self.all(a, self.all(b, self.all(c, a + b + c < 0)))"}
    report = validator(with_rules(items, nested)).validate(widget(list(range(1000))))
    (violation,) = report.violations
    assert violation.check is Check.NOT_CHECKED
    assert "more than 1000000 steps" in violation.message
    assert report.is_valid


def test_a_rule_that_is_not_understood_is_told() -> None:
    report = validator(with_rules({"type": "integer"}, {"rule": "self.?a == 1"})).validate(widget(1))
    (violation,) = report.violations
    assert violation.check is Check.NOT_CHECKED
    assert violation.message.startswith("the rule 'self.?a == 1' is not checked: ")


def test_without_the_library_no_rule_is_passed_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "cel", None)
    assert evaluation() is None
    report = validator(with_rules({"type": "integer"}, {"rule": "self > 1"})).validate(widget(1))
    (violation,) = report.violations
    assert (violation.check, report.is_valid) == (Check.NOT_CHECKED, True)
    assert 'install "specmux[cel]"' in violation.message


@pytest.mark.parametrize(
    ("rule", "value", "holds"),
    [
        ("self.size() == 1 && size(self) == 1", "é", True),
        ("self.size() > 2", "éx", False),
        ("self == 'size(' + 'x'", "size(x", True),
        ("format.uuid().validate(self).value()[0] == 'does not match the UUID format'", "x", True),
        ("format.named('dns1035Label').value().validate(self).hasValue()", "1a", True),
        ("format.named('nothing').hasValue()", "a", False),
        ("format.dns1123LabelPrefix().validate(self).hasValue()", "a-", False),
    ],
)
def test_texts_are_measured_and_formatted_as_kubernetes_does(rule: str, value: str, holds: bool) -> None:
    report = validator(with_rules({"type": "string"}, {"rule": rule})).validate(widget(value))
    assert [each.check for each in report.violations] == ([] if holds else [Check.RULE])


@pytest.mark.parametrize(
    ("name", "escaped"),
    [
        ("a", "a"),
        ("a-b", "a__dash__b"),
        ("a.b/c", "a__dot__b__slash__c"),
        ("in", "__in__"),
        ("1a", "1a"),
        ("a__b", "a__underscores__b"),
    ],
)
def test_names_that_cel_knows(name: str, escaped: str) -> None:
    assert escaped_name(name) == escaped


def rules_in(node: RuleNode) -> Iterator[str]:
    yield from (rule.text for rule in node.rules)
    for each in (*node.properties.values(), *node.nested, node.additional, node.items):
        if each is not None:
            yield from rules_in(each)


@pytest.mark.parametrize("marked", [pytest.param(None, marks=needs_shared)])
def test_rules_of_real_definitions_compile(marked: None, tally: Callable[[str, int], None]) -> None:
    import cel

    manifests = [
        manifest
        for path in sorted((DATA / "crds").rglob("*"))
        if path.is_file() and path.name != "INDEX.json"
        for manifest in parse_yaml_stream(read(path))
        if manifest.get("kind") == "CustomResourceDefinition"
    ]
    rules = {
        rule
        for document in build(manifests).documents.values()
        for schema in schemas_of(document).values()
        for rule in rules_in(rule_tree(schema, schemas_of(document)))
    }
    faults = []
    for rule in sorted(rules):
        try:
            cel.compile(rule)
        except ValueError as error:
            faults.append(f"{rule}: {error}")
    tally("rules of real definitions, compiled", len(rules) - len(faults))
    tally("rules of real definitions, not understood and told so", len(faults))
    assert len(faults) <= len(rules) / 20, "\n".join(faults)
