from __future__ import annotations

from typing import Any

import pytest

from shared_data import documents, load
from specmux_converters.references import schemas_of
from specmux_tools.unions import Member, unions_of


@pytest.mark.parametrize(
    "entry",
    [
        {"fields-to-discriminateBy": {"one": "One", "two": "Two"}},
        {"fieldsToDiscriminateBy": {"one": "One", "two": "Two"}},
        {"fields-to-discriminator-value": {"one": "One", "two": "Two"}},
        {"fieldMembers": {"One": "one", "Two": "two"}},
        {
            "fields": [
                {"fieldName": "one", "discriminatorValue": "One"},
                {"fieldName": "two", "memberName": "Two"},
            ]
        },
    ],
    ids=lambda entry: next(iter(entry)),
)
def test_every_form_is_read(entry: dict[str, Any]) -> None:
    (union,) = unions_of({"x-kubernetes-unions": [{"discriminator": "type", **entry}]})
    assert union.members == (Member("one", "One"), Member("two", "Two"))
    assert union.discriminator == "type"


def test_a_union_may_be_declared_at_its_discriminator() -> None:
    schema = {"properties": {"type": {"enum": ["A", "B"], "fieldMembers": {"A": "a"}}, "a": {}}}
    (union,) = unions_of(schema)
    assert union.members == (Member("a", "A"),)
    assert union.allowed == frozenset({"A", "B"})


@pytest.mark.parametrize("listed", [None, 1, [], [1], [{}], [{"fields": 1}], [{"fieldMembers": {"A": 1}}]])
def test_what_is_malformed_is_passed_over(listed: Any) -> None:
    assert unions_of({"x-kubernetes-unions": listed}) == ()


@pytest.mark.parametrize("marked", [pytest.param(None)])
def test_published_values_are_corrected(marked: None) -> None:
    found = {}
    for path in documents("1.35").values():
        for component, schema in schemas_of(load(path)).items():
            for union in unions_of(schema, component):
                found[component.rpartition(".")[2]] = union
    assert found["SeccompProfile"].member("Localhost") is not None
    assert found["AppArmorProfile"].member("LocalhostProfile") is None
    queue = found["LimitResponse"].member("Queue")
    assert queue is not None and queue.is_optional
    assert "Subject" in found and "PriorityLevelConfigurationSpec" in found
