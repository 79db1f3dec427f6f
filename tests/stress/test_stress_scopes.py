"""A sample of the pairs that ``make stress`` compares completely."""

from __future__ import annotations

from stress.stress_scopes import compare_all, mirrored, schemas


def test_no_break_of_a_small_schema_is_missed() -> None:
    found = compare_all(share=0.002, seed=7)
    assert found.compared > 3000
    assert found.missed == []
    assert found.false < found.compared / 400


def test_mirror_images_of_the_scope_are_in_the_scope() -> None:
    known = schemas()
    assert all(mirrored(each) in known and mirrored(mirrored(each)) == each for each in known)
    assert len(known) ** 2 > 2_000_000
