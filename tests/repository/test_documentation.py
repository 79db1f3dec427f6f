"""Links in the documentation lead somewhere, and the tests and commands that it names exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "helm/specmux/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
LINK = re.compile(r"\]\(([^)#:]*)(?:#([^)]*))?\)")


def label(page: Path) -> str:
    return str(page.relative_to(ROOT))


def anchors(page: Path) -> set[str]:
    """Of the headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=label)
def test_links_within_the_repository_lead_somewhere(page: Path) -> None:
    for link, anchor in LINK.findall(page.read_text()):
        target = page.parent / link if link else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), f"{link}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=label)
def test_tests_that_a_page_names_exist(page: Path) -> None:
    files = {path.name for path in (ROOT / "tests").rglob("*.py")}
    names = re.findall(r"`(?:\.venv/bin/)?(?:python )?([\w./*-]+)[^`]*`", page.read_text())
    assert [name for name in names if name.startswith("tests/") and not any(ROOT.glob(name))] == []
    assert [name for name in names if re.fullmatch(r"test_\w+\.py", name) and name not in files] == []


def test_readme_names_only_targets_that_make_knows() -> None:
    known = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z]+)", (ROOT / "README.md").read_text())) <= known


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 80


def test_every_page_is_in_the_index_and_in_the_site() -> None:
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    indexes = {name: (ROOT / "docs" / name).read_text() for name in ("index.md", "benchmarks.md")}
    linked = {link for text in indexes.values() for link, _ in LINK.findall(text)}
    listed = set(re.findall(r"- ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    assert (pages - linked - {"index.md"}, pages - listed) == (set(), set())
