"""The table of a run in the page of runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from stress.findings_table import FindingsTable

ROOT = Path(__file__).resolve().parents[2]


def test_table_takes_the_place_of_its_own_last_one(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    places = "".join(f"<!-- made by {name}: begin -->\nold\n<!-- end -->\n" for name in ("a", "b"))
    page.write_text(f"before\n{places}after\n")
    table = FindingsTable()
    table.add("load", "1 client", "0 wrong")
    for _ in range(2):
        table.write_into(page, maker="b", command="run b")
    text = page.read_text()
    assert text.startswith("before\n<!-- made by a: begin -->\nold\n<!-- end -->\n")
    assert text.endswith("`run b`:\n\n" + str(table) + "<!-- end -->\nafter\n")
    assert "| load | 1 client | 0 wrong |" in text
    assert text.count("old") == 1


def test_page_without_a_place_is_left_as_it_is(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("nothing here\n")
    with pytest.raises(ValueError, match="no place"):
        FindingsTable().write_into(page, maker="a", command="run a")
    assert page.read_text() == "nothing here\n"


@pytest.mark.parametrize("maker", ["stress_service.py", "stress_replicas.py"])
def test_page_of_runs_has_a_place_for_each(maker: str, tmp_path: Path) -> None:
    page = tmp_path / "stress.md"
    page.write_text((ROOT / "docs" / "benchmarks" / "stress.md").read_text())
    FindingsTable().write_into(page, maker=maker, command=maker)
