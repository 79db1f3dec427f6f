"""Unions as schemas of today say them: ``oneOf``, rules of CEL, and what of a declaration cannot be read."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest

from specmux_tools.unions import Member, Union, UnionForm, read_unions, union_text, unions_of

AB = (Member("a", "a"), Member("b", "b"))


def ruled(*rules: str, **properties: Any) -> dict[str, Any]:
    return {"properties": properties, "x-kubernetes-validations": [{"rule": rule} for rule in rules]}


@pytest.mark.parametrize(
    ("branches", "takes_none"),
    [
        ([{"required": ["a"]}, {"required": ["b"]}], False),
        ([{"properties": {"a": {}}, "required": ["a"]}, {"required": ["b"]}], False),
        (
            [
                {"not": {"anyOf": [{"required": ["b"]}, {"required": ["a"]}]}},
                {"required": ["a"]},
                {"required": ["b"]},
            ],
            True,
        ),
    ],
)
def test_branches_that_require_a_field_each(branches: list[Any], takes_none: bool) -> None:
    (union,) = unions_of({"oneOf": branches})
    assert union == Union(AB, form=UnionForm.ONE_OF, takes_none=takes_none)


@pytest.mark.parametrize(
    "branches",
    [
        [{"type": "string"}, {"type": "integer"}],
        [{"required": ["a"]}],
        [{"required": ["a"]}, {"required": ["a"]}],
        [{"required": ["a", "b"]}, {"required": ["c"]}],
        [{"required": ["a"], "properties": {"a": {"type": "string"}}}, {"required": ["b"]}],
        [{"not": {"required": ["a"]}}, {"required": ["a"]}, {"required": ["b"]}],
        [{"not": {"anyOf": [{"required": ["a"]}]}}, {"required": ["a"]}, {"required": ["b"]}],
        "text",
        [],
    ],
)
def test_other_branches_are_no_union(branches: Any) -> None:
    assert unions_of({"oneOf": branches}) == ()


@pytest.mark.parametrize(
    ("rule", "takes_none"),
    [
        ("has(self.a) != has(self.b)", False),
        ("has(self.a) ? !has(self.b) : has(self.b)", False),
        ("(has(self.a) && !has(self.b)) || (!has(self.a) && has(self.b))", False),
        ("[has(self.a), has(self.b)].exists_one(x, x)", False),
        ("[has(self.a), has(self.b)].filter(x, x == true).size() == 1", False),
        ("(has(self.a) ? 1 : 0) + (has(self.b) ? 1 : 0) <= 1", True),
        ("size([has(self.a), has(self.b)].filter(x, x)) < 2", True),
        ("!(has(self.a) && has(self.b))", True),
        ("!has(self.a) || !has(self.b)", True),
    ],
)
def test_a_choice_however_a_rule_writes_it(rule: str, takes_none: bool) -> None:
    assert unions_of(ruled(rule)) == (Union(AB, form=UnionForm.RULES, takes_none=takes_none),)


@pytest.mark.parametrize(
    "rule",
    [
        "has(self.a) || has(self.b)",
        "!has(self.a) || has(self.b)",
        "has(self.a) == has(self.b)",
        "has(self.a) || self.b == 1",
        "has(self.a.c) != has(self.a.b)",
        "has(oldSelf.a) != has(self.b)",
        "self.type == 'A' || self.type == 'B' ? has(self.a) : !has(self.a)",
        "has(self.type) && self.type == 'A'",
        "self.type.startsWith('A') ? has(self.a) : !has(self.a)",
        "has(self.",
        "has(self.a) + 1 == 2 || !has(self.b)",
    ],
)
def test_other_rules_are_no_union(rule: str) -> None:
    assert unions_of(ruled(rule)) == ()


def test_rules_of_one_discriminator_are_a_union() -> None:
    schema = ruled(
        "!(has(self.a) && self.type != 'A')",
        "!(!has(self.a) && self.type == 'A')",
        "has(self.type) && self.type == 'B' ? has(self.b) : !has(self.b)",
        "self.type == 'C' || !has(self.c)",
        type={"enum": ["A", "B", "C"]},
    )
    (union,) = unions_of(schema)
    assert union.discriminator == "type" and union.allowed == frozenset("ABC")
    assert union.members == (Member("a", "A"), Member("b", "B"), Member("c", "C", is_optional=True))
    assert union_text(union) == "by type: A takes a, B takes b, C may take c"


def test_a_rule_is_tried_with_every_pair_of_its_fields() -> None:
    names = "abcdefgh"
    total = " + ".join(f"(has(self.{name}) ? 1 : 0)" for name in names)
    (union,) = unions_of(ruled(f"{total} == 1"))
    assert union.fields == frozenset(names) and not union.takes_none
    allowed = [f"(has(self.{a}) && has(self.{b}))" for a, b in list(combinations(names, 2))[-1:]]
    assert unions_of(ruled(f"{total} == 1 || {' || '.join(allowed)}")) == ()


@pytest.mark.parametrize(
    ("schema", "fault"),
    [
        ({"x-kubernetes-unions": "text"}, "an entry is no union"),
        ({"x-kubernetes-unions": [{"discriminator": "type"}]}, "no member that can be read"),
        ({"x-kubernetes-unions": [{"fields": ["a", 1]}]}, "an entry is no union"),
        ({"x-kubernetes-unions": [{"fields": ["a", "b"]}], "properties": {"a": {}}}, "b is no field"),
        (
            {
                "x-kubernetes-unions": [{"discriminator": "t", "fields-to-discriminateBy": {"a": "Ax"}}],
                "properties": {"t": {"enum": ["A"]}, "a": {}},
            },
            "Ax is no value of the discriminator t",
        ),
        ({"x-kubernetes-unions": [{"fields": ["a", "b"]}, {"fields": ["b", "c"]}]}, "a field in common"),
    ],
)
def test_what_cannot_be_read_is_told(schema: dict[str, Any], fault: str) -> None:
    (told,) = read_unions(schema).faults
    assert told.startswith("x-kubernetes-unions: ") and fault in told
