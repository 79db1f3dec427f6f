"""Parsed JSON of any type, read without a check before each step."""

from typing import Any

import pytest

from specmux_converters.json_values import array, mapping, members, objects, text, texts, within
from specmux_converters.references import resolve_part

MIXED: list[Any] = [None, 3, "x", [{}], {"a": 1}]


@pytest.mark.parametrize("value", [None, 3, "x", ["x", {}], {"x": 3}, {"a": {"b": [{}]}}])
def test_what_has_another_type_reads_as_empty(value: Any) -> None:
    assert mapping(value) == (value if isinstance(value, dict) else {})
    assert within(value, "a", "b") == {}
    assert array(value) == (value if isinstance(value, list) else [])
    assert text(value) == ("x" if value == "x" else "")


def test_members_and_items_of_one_type() -> None:
    assert within({"a": {"b": {"c": 1}}}, "a", "b") == {"c": 1}
    assert objects(MIXED) == [{"a": 1}]
    assert texts(MIXED) == ("x",)
    assert dict(members({"one": {}, "two": [], "three": {"a": 1}})) == {"one": {}, "three": {"a": 1}}


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ("#/components/parameters/a~1b", {"name": "watch"}),
        ("#/components/schemas/a~1b", {}),
        ("#/components/parameters/absent", {}),
        ("#/parameters/a~1b", {}),
        ("other.json#/components/parameters/a~1b", {}),
    ],
)
def test_a_reference_is_followed_to_the_section_that_it_names(reference: str, found: Any) -> None:
    document = {"components": {"parameters": {"a/b": {"name": "watch"}}}}
    assert resolve_part(document, {"$ref": reference}) == found


def test_a_part_without_a_reference_is_itself() -> None:
    assert resolve_part({}, {"name": "watch"}) == {"name": "watch"}
    assert resolve_part({}, "watch") == {}
