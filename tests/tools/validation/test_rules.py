"""Rules of custom resources (CEL), against what apiextensions-apiserver 0.34.1 and 0.37.2 said; see
``tests/benchmarks/go/apiextensions``."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from shared_data import DATA, needs, read
from specmux_converters.crd import build
from specmux_converters.references import schemas_of
from specmux_converters.releases import UnknownRelease
from specmux_converters.yaml import parse_yaml_stream
from specmux_tools.kinds import DocumentSet
from specmux_tools.validation import Check, Severity, Validator
from specmux_tools.validation.rules.compiled_rule import NOT_INSTANTIATED, RuleCompiler
from specmux_tools.validation.rules.rule_tree import RuleNode, escaped_name, rule_tree

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


def is_same(found: list[str], wanted: list[str], release: str) -> bool:
    """Texts are the newest's: of an older release as many are as good."""
    return found == wanted if release == "1.37" else len(found) == len(wanted)


@pytest.mark.long
@pytest.mark.parametrize("release", ["1.34", "1.37"])
def test_every_recorded_answer_is_ours(release: str, tally: Callable[[str, int], None]) -> None:
    cases = [orjson.loads(line) for line in gzip.decompress(RECORDED.read_bytes()).splitlines()]
    wrong, unchecked = [], 0
    for case in cases:
        report = validator(case["schema"], ratchets=False, release=release).validate(
            orjson.dumps(case["object"]), old=case.get("old")
        )
        answer = case["answer"] if release == "1.34" else case.get("newest", case["answer"])
        found = sorted(each.message for each in report.violations if each.check is Check.RULE)
        if any(each.check is Check.NOT_CHECKED for each in report.violations):
            unchecked += 1
            wrong.append(f"not checked: {case['schema']}")
        elif not is_same(found, answer.get("rules", []), release):
            wrong.append(f"{found} instead of {answer.get('rules')}: {case['object']}")
    tally(f"rules recorded from apiextensions of {release}", len(cases))
    tally(f"rules recorded of {release}, told as not checked", unchecked)
    assert len(cases) >= 300
    assert not wrong, "\n".join(wrong)


def test_rules_wait_for_the_schema() -> None:
    schema = with_rules({"type": "object", "properties": {"a": {"type": "string"}}}, {"rule": "false"})
    report = validator(schema).validate(widget({"a": 1}))
    assert [each.check for each in report.violations] == [Check.SCHEMA, Check.NOT_CHECKED]
    assert report.violations[1].severity is Severity.NOTE


def test_a_rule_that_takes_long_ends_at_its_cost_limit() -> None:
    items = {"type": "array", "items": {"type": "integer"}}
    nested = {"rule": "self.all(a, self.all(b, self.all(c, a + b + c >= 0)))"}
    report = validator(with_rules(items, nested, {"rule": "false"})).validate(widget(list(range(1000))))
    (violation,) = report.violations
    assert violation.check is Check.RULE
    assert (
        "'operation cancelled: actual cost limit exceeded': no further validation rules" in violation.message
    )


@pytest.mark.long
def test_all_rules_of_an_object_have_one_budget() -> None:
    items = {"type": "array", "items": {"type": "integer"}}
    costly = [{"rule": f"self.all(a, self.all(b, a + b + {index} >= 0))"} for index in range(30)]
    report = validator(with_rules(items, *costly)).validate(widget(list(range(300))))
    (violation,) = report.violations
    assert "validation failed due to running out of cost budget" in violation.message


def test_a_rule_that_an_apiserver_refuses_blames_no_object() -> None:
    rules = ({"rule": "self.?a == 1"}, {"rule": "self ==", "message": "m"})
    report = validator(with_rules({"type": "integer"}, *rules)).validate(widget(1))
    assert [each.check for each in report.violations] == [Check.NOT_CHECKED, Check.NOT_CHECKED]
    assert report.is_valid
    assert "type 'int' does not support field selection" in report.violations[0].message
    assert "an apiserver refuses the definition: compilation failed: ERROR: <input>:1:8" in (
        report.violations[1].message
    )


def test_a_message_that_an_apiserver_refuses_is_named_once() -> None:
    rule = {"rule": "self > 0", "messageExpression": "self.zz"}
    schema = {"type": "object", "properties": {"spec": {"type": "array", "items": {"type": "integer"}}}}
    schema["properties"]["spec"]["items"]["x-kubernetes-validations"] = [rule]  # type: ignore[index]
    report = validator(schema).validate(widget([1, 2, -3]))
    assert [each.check for each in report.violations] == [Check.DEFINITION, Check.RULE]
    assert report.is_complete
    assert "messageExpression compilation failed" in report.violations[0].message
    assert report.violations[1].message == "spec[2]: Invalid value: -3: failed rule: self > 0"


@pytest.mark.parametrize(
    ("release", "rule", "is_known"),
    [
        ("1.30", "self.all(i, v, v > i)", False),
        ("1.32", "self.all(i, v, v > i)", True),
        ("1.32", "semver('1.2.3').major() == 1", False),
        ("1.33", "semver('1.2.3').major() == 1", True),
        ("1.33", "self.sort() == self", False),
        ("1.34", "self.sort() == self", True),
        ("1.36", "self.includes(1)", False),
        ("1.37", "self.includes(1)", True),
    ],
)
def test_each_release_has_its_libraries(release: str, rule: str, is_known: bool) -> None:
    items = {"type": "array", "items": {"type": "integer"}}
    report = validator(with_rules(items, {"rule": rule}), release=release).validate(widget([1, 2, 3]))
    assert [each.check for each in report.violations] == ([] if is_known else [Check.NOT_CHECKED])


def test_a_pattern_that_is_not_understood_is_named() -> None:
    """One that is too large for RE2; it is no error of the object, and nothing absorbs it."""
    rule = {"rule": r"self.matches(r'\pL{1,1000}') || true"}
    report = validator(with_rules({"type": "string"}, rule)).validate(widget("α"))
    assert [each.check for each in report.violations] == [Check.NOT_CHECKED]
    assert not report.is_complete


def test_an_unknown_release_is_refused() -> None:
    with pytest.raises(UnknownRelease, match=r'no release "1.9": give one of 1.30 to 1.37'):
        validator(with_rules({"type": "integer"}, {"rule": "self > 0"}), release="1.9").validate(widget(1))


@pytest.mark.parametrize(
    ("rule", "old", "new", "holds"),
    [
        ("self.s == oldSelf.s", {"s": ["a", "b"]}, {"s": ["b", "a"]}, True),
        ("self.s + ['c'] == ['c', 'a', 'b']", None, {"s": ["b", "a"]}, True),
        ("self.m == oldSelf.m", {"m": [{"k": 1}, {"k": 2}]}, {"m": [{"k": 2}, {"k": 1}]}, True),
        ("self.l == oldSelf.l", {"l": [1, 2]}, {"l": [2, 1]}, False),
        ("self.m + oldSelf.m == self.m", {"m": [{"k": 1}]}, {"m": [{"k": 2}, {"k": 1}]}, True),
    ],
)
def test_lists_are_sets_and_maps_where_the_schema_says_so(rule: str, old: Any, new: Any, holds: bool) -> None:
    schema = {
        "type": "object",
        "properties": {
            "s": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "m": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["k"],
                "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "integer"}}},
            },
            "l": {"type": "array", "items": {"type": "integer"}},
        },
    }
    before = None if old is None else orjson.loads(widget(old))
    report = validator(with_rules(schema, {"rule": rule})).validate(widget(new), old=before)
    assert [each.check for each in report.violations] == ([] if holds else [Check.RULE])


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
        ("1a", None),
        ("a b", None),
        ("a__b", "a__underscores__b"),
    ],
)
def test_names_that_cel_knows(name: str, escaped: str | None) -> None:
    assert escaped_name(name) == escaped


def nodes_in(node: RuleNode) -> Iterator[RuleNode]:
    yield node
    for each in (*node.properties.values(), *node.nested, node.additional, node.items):
        if each is not None:
            yield from nodes_in(each)


@pytest.mark.long
@needs("data/crds")
@pytest.mark.parametrize("marked", [pytest.param(None)])
def test_rules_of_real_definitions_compile(marked: None, tally: Callable[[str, int], None]) -> None:
    manifests = [
        manifest
        for path in sorted((DATA / "crds").rglob("*"))
        if path.is_file() and path.name != "INDEX.json"
        for manifest in parse_yaml_stream(read(path))
        if manifest.get("kind") == "CustomResourceDefinition"
    ]
    compiler = RuleCompiler()
    rules = [
        rule
        for kind in DocumentSet(build(manifests).documents)
        for node in nodes_in(rule_tree(kind.schema, schemas_of(kind.document)))
        for rule in compiler.rules(node)
    ]
    faults = [rule.fault or rule.message_fault for rule in rules if rule.fault or rule.message_fault]
    tally("rules of real definitions, compiled", len(rules) - len(faults))
    assert len(rules) > 1000
    assert not faults, "\n".join(faults[:20])


NO_LIST = "*types.Err is not traits.Lister: missing method Add"


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("[1 / self, 2].sort() == [1] || true", NO_LIST),
        ("[1 / self].distinct() == [1] || true", NO_LIST),
        ("[1 / self].sortBy(x, x) == [1] || true", NO_LIST),
        ("['a'].sortBy(x, 1 / self) == ['a'] || true", NO_LIST),
        ("[[1]].flatten(1 / self) == [1] || true", "ref.Val is *types.Err, not types.Int"),
    ],
)
def test_nothing_absorbs_what_ends_an_evaluation_upstream(rule: str, words: str) -> None:
    """Texts by apiextensions-apiserver 0.37.2: the meter of these calls panics at an error as argument."""
    report = validator(with_rules({"type": "integer"}, {"rule": rule})).validate(widget(0))
    said = f"internal error: interface conversion: {words} evaluating rule: {rule}"
    assert [each.message for each in report.violations] == [f'spec: Invalid value: "integer": {said}']


def test_a_message_that_cannot_be_instantiated_is_a_warning() -> None:
    rule = {"rule": "self > 0", "messageExpression": "'abc'.find('[')"}
    report = validator(with_rules({"type": "integer"}, rule)).validate(widget(0))
    assert [each.severity for each in report.violations] == [Severity.WARNING, Severity.ERROR]
    assert NOT_INSTANTIATED in report.violations[0].message


@pytest.mark.parametrize(("number", "shown"), [("-2.5", "-2.500000×10⁰⁰"), ("1e300", "1.000000×10³⁰⁰")])
def test_scientific_notation_is_that_of_an_apiserver(number: str, shown: str) -> None:
    """Recorded from 0.37.2; cel-go's page has narrow spaces there, which its printer does not write."""
    rule = {"rule": "false", "messageExpression": f"'%.2e'.format([{number}])"}
    report = validator(with_rules({"type": "integer"}, rule)).validate(widget(0))
    assert [each.message for each in report.violations] == [f"spec: Invalid value: 0: {shown}"]


@pytest.mark.parametrize(
    ("name", "is_equal"), [("a", False), ("x__y", False), ("__dot__", True), ("__a__", True)]
)
def test_a_field_named_like_an_escape_is_not_compared(name: str, is_equal: bool) -> None:
    """Of 0.34.4 to 0.37.2: objects are compared by fields that are looked up by names with escapes."""
    spec = {"type": "object", "properties": {name: {"type": "integer"}}}
    checked = validator(with_rules(spec, {"rule": "self == oldSelf"}), ratchets=False)
    report = checked.validate(widget({name: 3}), old=orjson.loads(widget({name: 2})))
    assert bool(report.violations) is not is_equal


@pytest.mark.parametrize(
    ("keys", "rule", "holds"),
    [
        (["name"], "self == oldSelf", True),
        (["namespace"], "self == oldSelf", False),
        (["name", "namespace"], "self == oldSelf", True),
        (["a-b", "c/d"], "self == oldSelf", False),
        (["a-b", "c/d"], "self + [] == oldSelf", True),
        (["namespace"], "size(self + oldSelf) == 2", True),
        (["name"], "dyn(self) == dyn([1, 2])", False),
        (["name"], "size(dyn(self) + dyn([{'name': 'z'}, {'name': 'z'}])) == 4", True),
    ],
)
def test_keys_of_lists_are_looked_up_as_upstream_does(keys: list[str], rule: str, holds: bool) -> None:
    """Recorded from 0.37.2: two lists that are the same differ where CEL has another name for all keys."""
    item = {"type": "object", "required": keys, "properties": {key: {"type": "string"} for key in keys}}
    marks = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys}
    spec = {"type": "array", "items": item, **marks}
    value = widget([dict.fromkeys(keys, "a"), dict.fromkeys(keys, "b")])
    report = validator(with_rules(spec, {"rule": rule}), ratchets=False).validate(
        value, old=orjson.loads(value)
    )
    assert (not report.violations) is holds


def test_nothing_before_a_set_is_the_set() -> None:
    spec = {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}
    rule = {"rule": "self.filter(x, false) + oldSelf == self"}
    report = validator(with_rules(spec, rule), ratchets=False).validate(
        widget(["a", "b"]), old=orjson.loads(widget(["b", "a"]))
    )
    assert not report.violations
