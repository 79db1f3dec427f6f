"""A discriminator that is no member's value, by the algorithm that servers had until 2023."""

from __future__ import annotations

from specmux_tools.unions import Member, Union, normalize_update


def test_name_of_a_field_as_discriminator_keeps_the_field() -> None:
    union = Union((Member("one", "One"), Member("two", "Two")), discriminator="kind", deduces=True)
    old = {"kind": "Two", "two": 1, "one": 1}
    assert normalize_update([union], old, {"kind": "one", "two": 1, "one": 1}) == {"kind": "one", "one": 1}
    assert normalize_update([union], old, {"kind": "three", "two": 1, "one": 1}) == {"kind": "three"}
