"""The cases that the KEP's test matrix names, and the properties behind them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmux_tools.unions import Member, Union, normalize, validate
from specmux_tools.unions.seed import Fault, Reason

ABC = Union(
    members=(Member("a", "A"), Member("b", "B"), Member("c", "C")),
    discriminator="type",
    allowed=frozenset({"A", "B", "C", ""}),
)
STRATEGY = Union(
    members=(Member("rollingUpdate", "RollingUpdate"),),
    discriminator="type",
    allowed=frozenset({"RollingUpdate", "Recreate"}),
)
MULTIPLE = 'multiple union members set (a, b) without a change of discriminator "type"'


def faults(union: Union, old: dict[str, Any] | None, new: dict[str, Any]) -> list[tuple[Reason, str]]:
    return [(fault.reason, fault.field) for fault in validate(union, normalize(union, old, new))]


@pytest.mark.parametrize(
    ("old", "new", "normal"),
    [
        ({"type": "C", "c": 1}, {"type": "", "c": 1}, {"type": ""}),
        ({"type": "C", "c": 1}, {"type": "A", "a": 1, "c": 1}, {"type": "A", "a": 1}),
        ({"type": "A", "a": 1}, {"type": "A", "a": 1, "b": 2}, {"type": "A", "a": 1, "b": 2}),
        (None, {"type": "A", "a": 1, "b": 2}, {"type": "A", "a": 1, "b": 2}),
        ({"type": "C", "c": 1}, {"c": 1}, {}),
    ],
    ids=["cases 22, 27", "cases 23, 28", "no change", "create", "left out means empty, which is allowed"],
)
def test_a_change_of_the_discriminator_clears(old: Any, new: Any, normal: Any) -> None:
    assert normalize(ABC, old, new) == normal


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"type": "C", "c": 1}, {"type": "C"}, [(Reason.REQUIRED, "c")]),
        ({"type": "A", "a": 1}, {"type": "D", "a": 1}, [(Reason.NOT_SUPPORTED, "type")]),
        ({"type": "A", "a": 1}, {"type": "A", "a": 1, "b": 2}, [(Reason.INVALID, "")]),
        ({"type": "A", "a": 1}, {"type": "A", "b": 2}, [(Reason.REQUIRED, "a"), (Reason.INVALID, "b")]),
        (None, {"type": "A", "a": 1, "b": 2}, [(Reason.INVALID, "")]),
        (None, {"type": "A", "a": 1}, []),
    ],
    ids=["cases 12, 16", "cases 34, 39", "two set", "another set", "create with two", "create"],
)
def test_what_is_wrong_is_told(old: Any, new: Any, expected: Any) -> None:
    assert faults(ABC, old, new) == expected


def test_the_words() -> None:
    assert validate(ABC, {"type": "A", "a": 1, "b": 1}) == (Fault(Reason.INVALID, "", MULTIPLE),)
    required, forbidden = validate(ABC, {"type": "A", "b": 2})
    assert required.detail == 'must be specified when `type` is "A"'
    assert forbidden.detail == 'may only be specified when `type` is "B"'


def test_a_value_without_a_member_allows_none() -> None:
    old = {"type": "RollingUpdate", "rollingUpdate": {}}
    new = normalize(STRATEGY, old, {"type": "Recreate", "rollingUpdate": {}})
    assert new == {"type": "Recreate"}
    assert validate(STRATEGY, new) == ()


def test_a_missing_discriminator_that_must_be_there_clears_nothing() -> None:
    old, new = {"type": "RollingUpdate", "rollingUpdate": {}}, {"rollingUpdate": {}}
    assert normalize(STRATEGY, old, new) == new
    assert [fault.reason for fault in validate(STRATEGY, new)] == [Reason.NOT_SUPPORTED]


values = st.none() | st.integers(0, 2)
objects = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["A", "B", "C", "", "X"]),
        "a": values,
        "b": values,
        "c": values,
        "x": values,
    },
)


@given(objects, objects)
def test_normalizing_is_idempotent_and_touches_members_only(old: dict[str, Any], new: dict[str, Any]) -> None:
    before = dict(new)
    normal = normalize(ABC, old, new)
    assert normalize(ABC, old, normal) == normal
    assert new == before
    assert {name: item for name, item in normal.items() if name not in ABC.fields} == {
        name: item for name, item in new.items() if name not in ABC.fields
    }
    if not validate(ABC, normal):
        assert len(ABC.set_fields(normal)) <= 1
