"""What an apiserver says of the rules of a definition, in texts recorded from apiextensions 0.35.0."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from specmux_converters.releases import NEWEST
from specmux_tools.validation.definitions.definition_fault import Allowances
from specmux_tools.validation.definitions.schemas import schema_faults

PREFIX = "spec.validation.openAPIV3Schema"
AT = f"{PREFIX}.properties[spec].x-kubernetes-validations[0]"


def rule_json(text: str, **others: str) -> str:
    known = {"Rule": f'"{text}"', "Message": '""', "MessageExpression": '""', "Reason": "null"}
    known |= {"FieldPath": '""', "OptionalOldSelf": "null", **others}
    return "{" + ",".join(f'"{name}":{value}' for name, value in known.items()) + "}"


def faults(
    inner: dict[str, Any], *rules: dict[str, Any], minor: int = NEWEST, known: Collection[str] = ()
) -> list[str]:
    spec = {**inner, "x-kubernetes-validations": list(rules)}
    schema = {"type": "object", "properties": {"spec": spec}}
    allowances = Allowances(rules=frozenset(known))
    return [each.text for each in schema_faults(schema, PREFIX, minor=minor, allowances=allowances)]


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"rule": " "}, f"{AT}.rule: Required value: rule is not specified"),
        (
            {"rule": "true", "message": "a\nb"},
            f'{AT}.message: Invalid value: "a\\nb": must not contain line breaks',
        ),
        (
            {"rule": "true\n", "fieldPath": ".zz"},
            f'{AT}.fieldPath: Invalid value: ".zz": must be a valid path',
        ),
        (
            {"rule": "true", "reason": "Bad"},
            f'{AT}.reason: Unsupported value: "Bad": supported values: "FieldValueDuplicate", '
            '"FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"',
        ),
        (
            {"rule": "true", "optionalOldSelf": True},
            f"{AT}.optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule",
        ),
        (
            {"rule": "self.s"},
            f"{AT}.rule: Invalid value: {rule_json('self.s')}: cel expression must evaluate to a bool",
        ),
        (
            {"rule": "self.zz == 1"},
            f"{AT}.rule: Invalid value: {rule_json('self.zz == 1')}: compilation failed: "
            "ERROR: <input>:1:5: undefined field 'zz'\n | self.zz == 1\n | ....^",
        ),
        (
            {"rule": "self.l.all(a, self.l.all(b, a != b))"},
            f"{AT}.rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x (try "
            "simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and "
            "strings are declared)",
        ),
    ],
)
def test_a_rule_is_refused_in_an_apiservers_words(rule: dict[str, Any], said: str) -> None:
    texts = {"type": "array", "items": {"type": "string"}}
    found = faults({"type": "object", "properties": {"s": {"type": "string"}, "l": texts}}, rule)
    assert found[0] == said


def test_all_rules_together_have_a_limit() -> None:
    items = {"type": "array", "maxItems": 1000, "items": {"type": "string", "maxLength": 100}}
    rules = [{"rule": f"self.all(a, self.exists(b, a == b + '{index}'))"} for index in range(3)]
    found = faults(items, *rules)
    assert [text.partition(": ")[0] for text in found[-2:]] == [
        f"{PREFIX}.properties[spec].x-kubernetes-validations[2].rule",
        PREFIX,
    ]
    assert "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3" in found[-2]


def test_old_values_are_known_only_where_items_have_keys() -> None:
    inner = {"type": "integer", "x-kubernetes-validations": [{"rule": "self >= oldSelf"}]}
    (text,) = faults({"type": "array", "maxItems": 5, "items": inner})
    place = f"{PREFIX}.properties[spec].items.x-kubernetes-validations[0].rule"
    within = (
        f"oldSelf cannot be used on the uncorrelatable portion of the schema within {PREFIX}.properties[spec]"
    )
    assert text == f'{place}: Invalid value: "self >= oldSelf": {within}'


def test_a_definition_may_say_what_the_release_before_knew() -> None:
    rule = {"rule": "self.sort() == self"}
    items = {"type": "array", "maxItems": 5, "items": {"type": "integer"}}
    assert faults(items, rule, minor=35) == []
    assert len(faults(items, rule, minor=34)) == 1
    assert faults(items, rule, minor=34, known={rule["rule"]}) == []


def test_names_of_types_begin_anew_where_there_are_rules() -> None:
    """Recorded from 0.37.2, as the next: the type of ``self`` is selfType everywhere."""
    text = "self.n == self"
    inner = {"type": "object", "properties": {"n": {"type": "integer"}}}
    found = faults(
        {"type": "object", "properties": {"a": {**inner, "x-kubernetes-validations": [{"rule": text}]}}},
        {"rule": "self.a == self.a"},
    )
    assert len(found) == 1
    assert "applied to '(int, selfType)'" in found[0]


def test_a_fault_of_a_list_hides_no_rule_of_its_items() -> None:
    items = {"type": "string", "nullable": True, "x-kubernetes-validations": [{"rule": "self in self"}]}
    found = faults({"type": "array", "x-kubernetes-list-type": "set", "items": items, "maxItems": 1})
    assert [each.partition(": ")[0].removeprefix(PREFIX) for each in found] == [
        ".properties[spec].items.nullable",
        ".properties[spec].items.x-kubernetes-validations[0].rule",
    ]


def test_lists_have_types_of_their_own_names() -> None:
    item = {"type": "object", "properties": {"n": {"type": "integer"}}}
    listed = {"type": "array", "items": item, "maxItems": 1}
    ruled = {**listed, "x-kubernetes-validations": [{"rule": "self[0] == 1"}]}
    found = faults({"type": "object", "properties": {"a": ruled, "b": ruled}}, {"rule": "true"})
    assert len(found) == 2
    assert all("applied to '(selfType.@idx, int)'" in each for each in found)


def test_a_default_under_a_key_without_a_name_is_named_by_its_map() -> None:
    values = {"type": "object", "additionalProperties": {"type": "string", "maxLength": 1}}
    (found,) = faults({**values, "default": {"": "xx"}})
    assert found.startswith(f"{PREFIX}.properties[spec].default: Too long")


def test_rules_over_what_cel_has_no_type_for_end_a_default() -> None:
    values = {
        "x-kubernetes-preserve-unknown-fields": True,
        "x-kubernetes-validations": [{"rule": "true"}] * 2,
    }
    found = faults({"type": "object", "additionalProperties": values, "default": {"a": 1}})
    words = "rule compiler initialization error: failed to convert to declType for CEL validation rules"
    assert found == [f'{PREFIX}.properties[spec].default[a]: Invalid value: "": {words}']
