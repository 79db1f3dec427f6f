"""Links in the documentation lead somewhere, and the tests and commands that it names exist."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from repository.test_metrics_page import documented

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "helm/specmux/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
MOST_WORDS = 44_000
"""Of README.md and docs/, as ``wc -w`` counts them."""
MOST_WORDS_OF_A_PARAGRAPH = 80
GENERATED = "benchmarks"
"""Folder of docs/ whose pages are made of measurements; they are counted apart."""
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


@pytest.mark.parametrize("page", [page for page in PAGES if page.parent.name == "docs"], ids=label)
def test_the_site_has_no_link_out_of_its_folder(page: Path) -> None:
    hook = runpy.run_path(str(ROOT / "docs" / "links.py"))
    made = hook["on_page_markdown"](page.read_text())
    assert hook["HOME"] or re.findall(r"\]\(\.\./[^)]*\)|\]\[\d+\]", made) == []


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
    assert len((ROOT / "README.md").read_text().splitlines()) <= 95


def test_every_page_is_in_the_index_and_in_the_site() -> None:
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    indexes = {name: (ROOT / "docs" / name).read_text() for name in ("index.md", "benchmarks.md")}
    linked = {link for text in indexes.values() for link, _ in LINK.findall(text)}
    listed = set(re.findall(r"- ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    assert (pages - linked - {"index.md"}, pages - listed) == (set(), set())


def words(page: Path) -> int:
    return len(page.read_text(encoding="utf-8").split())


def test_documentation_stays_within_its_budget() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    apart = [page for page in pages if page.parent == ROOT / "docs" / GENERATED]
    assert {page.name for page in apart} == {
        "commands.md",
        "documents.md",
        "runs.md",
        "serving.md",
        "stress.md",
    }
    assert sum(words(page) for page in pages if page not in apart) <= MOST_WORDS
    assert words(ROOT / "docs/benchmarks.md") <= 1_200


def test_paragraphs_of_the_architecture_are_short() -> None:
    parts = re.split(r"\n\n|\n(?=\* |\|)", (ROOT / "docs/architecture.md").read_text())
    assert [part[:60] for part in parts if len(part.split()) > MOST_WORDS_OF_A_PARAGRAPH] == []


@pytest.mark.parametrize("page", [each for each in PAGES if each.name != "CHANGELOG.md"], ids=label)
def test_metrics_that_a_page_names_exist(page: Path) -> None:
    known = documented().keys()
    named = set(re.findall(r"`(specmux_\w+?)(?:_bucket|_count|_sum)?(?:\{[^`]*)?`", page.read_text()))
    packages = ("specmux_aggregator", "specmux_cache", "specmux_converters", "specmux_tools")
    assert [name for name in named - known if not name.startswith(packages)] == []
