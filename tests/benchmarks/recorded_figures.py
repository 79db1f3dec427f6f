"""Compares figures of a run with the recorded ones of docs/benchmarks/, row by row.

``python tests/benchmarks/recorded_figures.py`` reads what benchmarks left in bench-out. ``run_all.py`` prints
the same after its runs. Margins are in margins.toml.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parent))

from figures import FOLDER, Figures, Row, in_page, kept
from pages import pages

MARGINS: Final = Path(__file__).resolve().parent / "margins.toml"


@dataclass(frozen=True, slots=True)
class RowChange:
    """A row beside its recorded one. ``is_ratio``: values are ratios to the first peer."""

    name: str
    then: float
    now: float
    margin: float
    is_ratio: bool

    @property
    def is_worse(self) -> bool:
        return self.now > self.then * (1 + self.margin)

    def __str__(self) -> str:
        what = "of the peer" if self.is_ratio else "recorded in the same unit"
        verdict = "worse" if self.is_worse else "as recorded"
        figures = f"{self.now:.3g}, was {self.then:.3g} {what}"
        return f"{verdict:<11} {self.name}: {figures} (margin {self.margin:.0%})"


def changes(now: Figures, then: Figures, margins: Mapping[str, Mapping[str, float]]) -> Iterator[RowChange]:
    """The rows that both have. Rows that the run or the table lacks are compared with nothing."""
    before = {row.name: row for row in then.rows}
    for row in now.rows:
        if row.name not in before:
            continue
        old, new = _ratio(then, before[row.name]), _ratio(now, row)
        is_ratio = old is not None and new is not None
        if not is_ratio:
            old, new = _ours(then, before[row.name]), _ours(now, row)
        if old and new:
            margin = _margin(margins, now.name, row.name, is_ratio=is_ratio)
            yield RowChange(f"{now.name}: {row.name}", old, new, margin, is_ratio)


def report(folder: Path = FOLDER) -> list[RowChange]:
    """Every kept row beside its recorded one."""
    margins: dict[str, Any] = tomllib.loads(MARGINS.read_text(encoding="utf-8"))
    shown = "\n".join(pages().values())
    found = []
    for path in sorted(folder.glob("*.json")):
        now = kept(path)
        found += changes(now, in_page(shown, now.name), margins)
    return found


def print_report() -> None:
    """Print the rows that are worse, and how many were compared."""
    rows = report()
    for row in rows:
        if row.is_worse:
            print(row)
    worse = sum(row.is_worse for row in rows)
    print(f"{worse} of {len(rows)} rows are worse than recorded in docs/benchmarks/")


def _ours(figures: Figures, row: Row) -> float | None:
    return _value(figures, row, is_ours=True)


def _ratio(figures: Figures, row: Row) -> float | None:
    ours, peers = _ours(figures, row), _value(figures, row, is_ours=False)
    return None if ours is None or not peers else ours / peers


def _value(figures: Figures, row: Row, *, is_ours: bool) -> float | None:
    pairs = zip(figures.columns, row.values, strict=True)
    return next((value for column, value in pairs if column.is_ours is is_ours and value is not None), None)


def _margin(margins: Mapping[str, Mapping[str, float]], name: str, row: str, *, is_ratio: bool) -> float:
    own = margins.get(name, {})
    chosen = next((margin for pattern, margin in own.items() if re.search(pattern, row)), None)
    return chosen if chosen is not None else margins["default"]["ratio" if is_ratio else "value"]


if __name__ == "__main__":
    print_report()
