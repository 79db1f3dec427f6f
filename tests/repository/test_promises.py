"""Each promise of the documents that specmux implements has a test."""

from __future__ import annotations

import pytest

from repository.promises_page import PAGE, ROOT, Promise, page, promises

ROWS = [(title, row) for title, rows in promises() for row in rows]


def test_the_page_is_made_of_the_table() -> None:
    assert PAGE.read_text() == page(), "python tests/repository/promises_page.py"


@pytest.mark.parametrize(("title", "row"), ROWS, ids=[f"{title}: {row.words}"[:70] for title, row in ROWS])
def test_a_promise_names_tests_that_there_are(title: str, row: Promise) -> None:
    assert row.section
    assert row.words
    assert row.tests, f"{title}: nothing shows it"
    for name in row.tests:
        path = ROOT / "tests" / name
        assert path.is_file(), f"tests/{name} is not there"
        assert "def test_" in path.read_text(), f"tests/{name} has no test"
        assert path.name.startswith("test_")


def test_no_promise_is_there_twice() -> None:
    words = [(title, row.section, row.words) for title, row in ROWS]
    assert len(words) == len(set(words))
    assert len(words) > 170
