"""Pages of docs/benchmarks/ are made from their data, and their plots, readable by all, from their tables."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree as ET

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "benchmarks"
IMAGES = ROOT / "docs" / "images" / "benchmarks"
NAMES = sorted(path.stem for path in IMAGES.glob("*.svg"))
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def plots(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.setattr(sys, "path", [str(ROOT / "tests/benchmarks"), *sys.path])
    import plots

    yield plots
    for name in ("plots", "figures", "pages"):
        sys.modules.pop(name, None)


def page_text() -> str:
    return "\n".join(path.read_text() for path in sorted(FOLDER.glob("*.md")))


def test_pages_are_made_from_the_tables(plots: ModuleType) -> None:
    written = {path.name: path.read_text() for path in FOLDER.glob("*.md") if path.name != "stress.md"}
    assert written == plots.pages(), "python tests/benchmarks/pages.py"


def test_every_plot_has_its_image_on_a_page(plots: ModuleType) -> None:
    shown = re.findall(r"!\[[^\]]{10,}\]\(\.\./images/benchmarks/(\w+)\.svg\)", page_text())
    assert sorted(shown) == sorted(plots.PLOTS) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_plot_is_drawn_from_the_table_below_it(name: str, plots: ModuleType) -> None:
    figures = plots.in_page(page_text(), name)
    assert figures.rows
    drawn = (IMAGES / f"{name}.svg").read_text()
    assert drawn == plots.svg(figures), "the table has changed: python tests/benchmarks/plots.py"


@pytest.mark.parametrize("name", NAMES)
def test_bars_are_as_long_as_the_values_they_name(name: str) -> None:
    image = ET.parse(IMAGES / f"{name}.svg").getroot()
    unit = _text(image, "small").removesuffix(", less is better")
    widths = [float(bar.get("width", "")) for bar in image.iter(f"{SVG}rect") if bar.get("class") != "page"]
    shown = [text.text or "" for text in image.iter(f"{SVG}text")]
    values = [
        float(text.removesuffix(f" {unit}").replace(",", "")) for text in shown if text.endswith(f" {unit}")
    ]
    assert len(widths) == len(values) > 1
    for width, value in zip(widths, values, strict=True):
        assert width / max(widths) == pytest.approx(value / max(values), rel=0.02, abs=0.005)


@pytest.mark.parametrize("name", NAMES)
def test_image_can_be_read_by_everybody(name: str) -> None:
    image = ET.parse(IMAGES / f"{name}.svg").getroot()
    assert image.get("role") == "img"
    title, description = (image.find(f"{SVG}{part}") for part in ("title", "desc"))
    assert title is not None and description is not None
    assert image.get("aria-labelledby") == f"{title.get('id')} {description.get('id')}"
    assert title.text and description.text
    assert "@media (prefers-color-scheme: dark)" in (image.findtext(f"{SVG}style") or "")
    width = float((image.get("viewBox") or "").split()[2])
    for text in image.iter(f"{SVG}text"):
        place, length = float(text.get("x", "")), 8 * len(text.text or "")
        start = place - length if text.get("text-anchor") == "end" else place
        assert start >= 0 or len(text.text or "") <= 27, text.text
        assert start + length <= width + 60, text.text


def test_a_table_in_another_unit_is_refused(plots: ModuleType) -> None:
    page = (
        "![x](images/benchmarks/diff.svg)\n\n| work | ours | oasdiff |\n|---|---|---|\n| one | 3 ms | 4 s |\n"
    )
    with pytest.raises(ValueError, match="'3 ms' is not in s CPU"):
        plots.in_page(page, "diff")


def test_what_a_benchmark_kept_is_drawn(
    tmp_path: Path, plots: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    import figures

    monkeypatch.setattr(figures, "FOLDER", tmp_path)
    figures.keep("diff", {"one <file>": (0.5, None), "two": (1.0, None)})
    [image] = plots.draw_kept(tmp_path)
    assert image.name == "diff.svg"
    assert figures.kept(tmp_path / "diff.json").columns == (figures.ours(),)
    assert "one &lt;file&gt;" in image.read_text()


def _text(image: ET.Element, kind: str) -> str:
    return next(text.text or "" for text in image.iter(f"{SVG}text") if text.get("class") == kind)
