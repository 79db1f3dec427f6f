"""Tests that docs/reliability.md, docs/THREAT_MODEL.md and tests/findings.md name exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"`([^`]*\.py)?(?:::)?(test_[a-z0-9_]+)?`")
PAGES = ("docs/reliability.md", "docs/THREAT_MODEL.md", "tests/findings.md")


@cache
def defined_in(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text())
    return frozenset(
        node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def named(page: str) -> list[tuple[Path, str]]:
    """Files and tests that a page names in backticks; a file without a folder is beside the one before it in
    its row, a test without a file in it."""
    found = []
    for line in (ROOT / page).read_text().splitlines():
        before: Path | None = None
        for file, test in NAMED.findall(line):
            if file and not file.startswith("test_") and not file.startswith("tests/"):
                continue
            if file:
                before = ROOT / file if "/" in file else (before or ROOT / "tests" / "x").parent / file
            if before is not None and (file or test):
                found.append((before, test))
    return found


@pytest.mark.parametrize("page", PAGES)
def test_every_test_that_is_named_is_there(page: str) -> None:
    found = named(page)
    assert len(found) > 30
    missing = [str(path.relative_to(ROOT)) for path, _ in found if not path.exists()]
    assert missing == []
    assert [f"{path.name}::{test}" for path, test in found if test and test not in defined_in(path)] == []


def test_every_finding_has_a_test() -> None:
    text = (ROOT / "tests/findings.md").read_text()
    for heading, numbers in (
        ("| # | attack |", [str(number) for number in range(1, 16)]),
        ("| # | the conversion", [f"D{number}" for number in range(1, 16)]),
        ("| # | in front of a cluster |", [f"D{number}" for number in range(1, 14)]),
        ("| # | Swagger 2.0 of v3 |", [f"W{number}" for number in range(1, 23)]),
    ):
        rows = text[text.index(heading) :].partition("\n\n")[0].splitlines()[2:]
        assert sorted({row.split(" | ")[0].strip("| ") for row in rows}) == sorted(numbers)
        assert all("`tests/" in row.rpartition(" | ")[2] for row in rows)


@pytest.mark.parametrize(("heading", "count"), [("| message |", 15), ("| consistency |", 8)])
def test_every_row_of_newcomers_has_a_test(heading: str, count: int) -> None:
    text = (ROOT / "tests/findings.md").read_text()
    rows = text[text.index(heading) :].partition("\n\n")[0].splitlines()[2:]
    assert len(rows) == count
    assert all("`tests/" in row.rpartition(" | ")[2] for row in rows)


def test_every_finding_of_gates_has_a_test() -> None:
    text = (ROOT / "tests/findings.md").read_text()
    rows = text[text.index("| # | finding |") :].partition("\n\n")[0].splitlines()[2:]
    numbers = {each for row in rows for each in row.split(" | ")[0].strip("| ").split(", ")}
    counts = {"V": range(1, 16), "D": range(1, 19), "S": range(1, 7), "F": range(1, 7)}
    assert {f"{letter}{number}" for letter, count in counts.items() for number in count} <= numbers
    assert all("`tests/" in row.rpartition(" | ")[2] for row in rows)
