"""A sample of the pairs that ``make stress`` compares completely."""

from __future__ import annotations

from stress.stress_scopes import compare_all


def test_no_break_of_a_small_schema_is_missed() -> None:
    compared, missed, _, false = compare_all(share=0.01, seed=7)
    assert compared > 1000
    assert missed == []
    assert false < compared / 50
