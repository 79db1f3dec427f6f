"""docs/comparison.md claims nothing that is measured nowhere."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
FIGURE = re.compile(r"\b\d[\d.,]* (?:ms|s|KB|MiB)\b")


def test_figures_are_those_of_the_pages_that_measure_them() -> None:
    measured = {
        figure
        for path in (DOCS / "validation.md", DOCS / "web-ui.md", *(DOCS / "benchmarks").glob("*.md"))
        for figure in FIGURE.findall(path.read_text())
    }
    claimed = FIGURE.findall((DOCS / "comparison.md").read_text())
    assert len(claimed) > 10
    assert sorted(set(claimed) - measured) == []


def test_every_table_has_a_proof_in_each_row() -> None:
    rows = [line for line in (DOCS / "comparison.md").read_text().splitlines() if line.startswith("| ")]
    rows = [row for row in rows if "shown by" not in row]
    assert len(rows) > 20
    assert [row for row in rows if not re.search(r"\]\([^)]+\) \|$|the same \|$", row)] == []


def test_every_tool_has_what_it_does_better() -> None:
    sections = (DOCS / "comparison.md").read_text().split("\n## ")[1:]
    assert [each.splitlines()[0] for each in sections[:-1] if "Better there:" not in each] == []
