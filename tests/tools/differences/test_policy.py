"""Policies: what they allow, what they make of severities, and what is wrong with them."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from data.compared import compared_documents, compared_specs, document
from specmux_converters.errors import InvalidDocument
from specmux_tools.differences import ChangeSeverity, read_policy
from specmux_tools.differences.policy import baseline
from specmux_tools.differences.reports import Report, render, report_of

TODAY = "2026-11-22"
STRING = {"type": "string"}


def judged(policy: dict[str, Any], today: str = TODAY) -> Report:
    """Of a definition that lost ``spec.a`` and ``spec["b.c"]`` and got ``spec.d``."""
    old = {"type": "object", "properties": {"a": STRING, "b.c": STRING}}
    new = {"type": "object", "properties": {"d": STRING}}
    found = compared_specs(old, new)
    return report_of(found, old="a", new="b", policy=read_policy(policy), today=today)


def paths(report: Report) -> list[str]:
    return [change.location.path for change in report.changes]


def test_what_is_allowed_is_counted_and_not_told() -> None:
    report = judged({"allow": [{"id": "field-removed", "path": "spec.*", "reason": "never used"}]})
    assert paths(report) == ['spec["b.c"]', "spec.d"]
    assert report.allowed == 1
    assert report.notes == ()
    assert "1 place allowed by the policy" in render(report, "text")


@pytest.mark.parametrize(
    ("entry", "left"),
    [
        ({"path": 'spec["b.c"]'}, ["spec.a", "spec.d"]),
        ({"path": "spec[*"}, ["spec.a", "spec.d"]),
        ({"kind": "Wid?et", "id": "field-*"}, []),
        ({"groupVersion": "apis/example.com/*", "path": "*.a"}, ['spec["b.c"]', "spec.d"]),
        ({"groupVersion": "apis/other/*"}, ["spec.a", 'spec["b.c"]', "spec.d"]),
    ],
)
def test_globs_take_brackets_as_they_are(entry: dict[str, str], left: list[str]) -> None:
    assert sorted(paths(judged({"allow": [{**entry, "reason": "r"}]}))) == sorted(left)


def test_severities_are_those_of_the_policy() -> None:
    report = judged({"severity": {"field-removed": "notice", "field-added": "breaking"}})
    assert [(change.id, change.severity) for change in report.changes] == [
        ("field-added", ChangeSeverity.BREAKING),
        ("field-removed", ChangeSeverity.NOTICE),
        ("field-removed", ChangeSeverity.NOTICE),
    ]


def test_entries_that_allow_nothing_are_told() -> None:
    allow = [
        {"path": "spec.x", "reason": "r"},
        {"path": "spec.a", "reason": "r", "until": "2026-11-21"},
        {"path": "spec.d", "reason": "r", "until": "2026-11-22"},
    ]
    report = judged({"allow": allow})
    assert sorted(paths(report)) == ["spec.a", 'spec["b.c"]']
    assert report.notes == (
        "policy: the entry for path spec.a expired on 2026-11-21",
        "policy: the entry for path spec.x allows nothing that changed",
    )


def test_a_date_that_yaml_reads_as_one_is_a_date() -> None:
    policy = yaml.safe_load("allow:\n- {path: spec.a, reason: r, until: 2026-11-22}")
    assert "spec.a" not in paths(judged(policy))


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ([], "must be an object"),
        ({"allowed": []}, "/allowed: is not known here"),
        ({"severity": {"field-gone": "notice"}}, "/severity/field-gone: is no id of a change"),
        ({"severity": {"field-removd": "notice"}}, "is no id of a change; did you mean field-removed?"),
        ({"severity": {"field-added": "bad"}}, "must be one of notice, warning, breaking"),
        ({"allow": {"path": "a"}}, "/allow: must be a list"),
        ({"allow": ["a"]}, "/allow/0: must be an object"),
        ({"allow": [{"path": "a"}]}, "/allow/0/reason: must say why"),
        ({"allow": [{"path": "a", "reason": " "}]}, "/allow/0/reason: must say why"),
        ({"allow": [{"reason": "r"}]}, "/allow/0: must name one of"),
        ({"allow": [{"path": 1, "reason": "r"}]}, "/allow/0/path: must be a text"),
        ({"allow": [{"path": "a", "reason": "r", "until": "soon"}]}, "/allow/0/until: must be a date"),
        ({"allow": [{"path": "a", "reason": "r", "by": "me"}]}, "/allow/0/by: is not known here"),
    ],
)
def test_what_is_wrong_with_a_policy_is_told_with_its_place(policy: Any, said: str) -> None:
    with pytest.raises(InvalidDocument) as refused:
        read_policy(policy)
    assert said in str(refused.value)


def test_a_value_of_an_enum_is_allowed_by_itself() -> None:
    old = {**STRING, "enum": ["A", "B", "C"]}
    found = compared_specs(old, {**STRING, "enum": ["C"]})
    policy = read_policy({"allow": [{"id": "enum-value-removed", "what": "A", "reason": "never used"}]})
    report = report_of(found, old="a", new="b", policy=policy, today=TODAY)
    assert [change.what for change in report.changes] == ["B"]


def test_a_fingerprint_allows_the_change_with_all_its_places() -> None:
    """Of an edit that shows at two places, reports print one fingerprint."""
    there = {"$ref": "#/components/schemas/Shared"}
    both = {"type": "object", "properties": {"x": there, "y": there, "z": STRING}}
    old = document(both, {"Shared": {"type": "object", "properties": {"a": STRING}}})
    new = document({**both, "properties": {"x": there, "y": there}}, {"Shared": {"type": "object"}})
    found = compared_documents(old, new)
    changes = report_of(found, old="a", new="b").changes
    assert [len(change.places) for change in changes] == [2, 1]
    policy = read_policy({"allow": [{"fingerprint": changes[0].fingerprint, "reason": "r"}]})
    report = report_of(found, old="a", new="b", policy=policy, today=TODAY)
    assert [change.fingerprint for change in report.changes] == [changes[1].fingerprint]
    assert report.allowed == 2
    assert not report_of(found, old="a", new="b", policy=read_policy(baseline(changes, today=TODAY))).changes


@pytest.mark.parametrize("fingerprint", ["abc", 1234567890123456, "x" * 16])
def test_what_is_no_fingerprint_is_refused(fingerprint: Any) -> None:
    with pytest.raises(InvalidDocument, match="/allow/0/fingerprint"):
        read_policy({"allow": [{"fingerprint": fingerprint, "reason": "r"}]})
