"""Figures that got worse than the recorded ones are said."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

from figures import PLOTS, Column, Figures, Row, in_page  # noqa: E402
from pages import pages  # noqa: E402
from recorded_figures import MARGINS, changes  # noqa: E402

COLUMNS = (Column("ours", "ours"), Column("Go", "Go", is_ours=False))
THEN = Figures(
    "encoding", "", "ms", COLUMNS, (Row("a", (1.0, 1.0)), Row("b", (2.0, None)), Row("c", (1.0, 2.0)))
)
DEFAULT = {"default": {"ratio": 0.2, "value": 0.5}}


def now(*rows: Row) -> Figures:
    return Figures("encoding", "", "ms", COLUMNS, rows)


@pytest.mark.parametrize(
    ("row", "is_worse"),
    [
        (Row("a", (11.0, 10.0)), False),  # a slower machine
        (Row("a", (13.0, 10.0)), True),
        (Row("a", (0.9, 0.5)), True),  # a faster one
        (Row("a", (1.4, None)), False),  # no peer here: by value
        (Row("a", (1.6, None)), True),
        (Row("b", (2.9, 1.0)), False),
        (Row("b", (3.1, 1.0)), True),
    ],
)
def test_row_is_worse_beyond_its_margin(row: Row, is_worse: bool) -> None:
    assert [change.is_worse for change in changes(now(row), THEN, DEFAULT)] == [is_worse]


def test_margin_of_a_row_is_the_first_whose_pattern_is_found() -> None:
    margins = {**DEFAULT, "encoding": {"^c": 1.0, "": 0.0}}
    found = list(
        changes(now(Row("a", (1.1, 1.0)), Row("c", (1.9, 2.0)), Row("new", (9.0, 1.0))), THEN, margins)
    )
    assert [(change.name, change.margin, change.is_worse) for change in found] == [
        ("encoding: a", 0.0, True),
        ("encoding: c", 1.0, False),
    ]
    assert str(found[0]).startswith("worse")


def test_margins_are_of_tables_that_exist() -> None:
    margins = tomllib.loads(MARGINS.read_text())
    assert set(margins["default"]) == {"ratio", "value"}
    assert set(margins) - {"default"} <= set(PLOTS)


def test_recorded_tables_are_as_recorded() -> None:
    shown = "\n".join(pages().values())
    for name in PLOTS:
        then = in_page(shown, name)
        found = list(changes(then, then, DEFAULT))
        assert found, name
        assert not any(change.is_worse for change in found)
