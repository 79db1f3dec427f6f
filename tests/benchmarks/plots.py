"""Draws figures as bars, as SVG for light and dark screens: ``python tests/benchmarks/plots.py``.

Without arguments the tables of docs/benchmarks/ are drawn into docs/images/benchmarks, one image for each
plot of ``PLOTS``; with ``--kept`` what benchmarks left in bench-out, beside it. Bars begin at zero, and one
scale holds for a plot. Each image says all of its values in its description, for who cannot see it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from xml.sax.saxutils import escape

sys.path.insert(0, str(Path(__file__).resolve().parent))

from figures import FOLDER, PLOTS, Column, Figures, Row, in_page, kept
from pages import pages

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs" / "images" / "benchmarks"

WIDTH, LEFT, RIGHT, BAR, GAP = 760, 196, 118, 17, 3
TOP, HEADING, BETWEEN = 52, 23, 13
LONGEST = 92
"""Characters of a row's name that fit; the description has all."""

STYLE = """
    text { font: 13px ui-sans-serif, system-ui, sans-serif; fill: #1f2328; }
    .title { font-size: 16px; font-weight: 600; }
    .row { font-weight: 600; }
    .small { font-size: 12px; fill: #59636e; }
    .page { fill: #ffffff; stroke: #d1d9e0; }
    .ours1 { fill: #0969da; }
    .ours2 { fill: #80b4f4; }
    .peer1 { fill: #8c959f; }
    .peer2 { fill: #bf8700; }
    .peer3 { fill: #a475f9; }
    @media (prefers-color-scheme: dark) {
      text { fill: #f0f6fc; }
      .small { fill: #9198a1; }
      .page { fill: #0d1117; stroke: #3d444d; }
      .ours1 { fill: #4493f8; }
      .ours2 { fill: #2a5a9c; }
      .peer1 { fill: #656c76; }
      .peer2 { fill: #9e6a03; }
      .peer3 { fill: #8957e5; }
    }
  """


def main() -> int:
    if sys.argv[1:] == ["--kept"]:
        drawn = draw_kept()
    else:
        shown = "\n".join(pages().values())
        drawn = [draw(in_page(shown, name), IMAGES) for name in PLOTS]
    for path in drawn:
        print(path.relative_to(ROOT))
    return 0


def draw_kept(folder: Path = FOLDER) -> list[Path]:
    """An image beside each file of figures in ``folder``."""
    return [draw(kept(path), folder) for path in sorted(folder.glob("*.json"))]


def draw(figures: Figures, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{figures.name}.svg"
    target.write_text(svg(figures), encoding="utf-8")
    return target


def svg(figures: Figures) -> str:
    longest = max((value for row in figures.rows for value in row.values if value is not None), default=0)
    scale = (WIDTH - LEFT - RIGHT) / longest if longest else 0
    colours = _colours(figures.columns)
    parts: list[str] = []
    top = TOP
    for row in figures.rows:
        bars = _bars(figures, row, colours)
        if len(figures.columns) > 1:
            top += HEADING
            parts.append(_text(20, top - 8, _cut(row.name, LONGEST), "row"))
        for name, value, colour in bars:
            middle = top + BAR - 4
            parts += [
                _text(LEFT - 10, middle, _cut(name, 27), "small", anchor="end"),
                f'<rect class="{colour}" x="{LEFT}" y="{top}" width="{max(value * scale, 1):.1f}" '
                f'height="{BAR}" rx="2"/>',
                _text(LEFT + value * scale + 8, middle, f"{_shown(value)} {figures.unit}"),
            ]
            top += BAR + GAP
        top += BETWEEN if len(figures.columns) > 1 else 5
    height = top + 12
    body = "\n  ".join(parts)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" \
aria-labelledby="title desc">
  <title id="title">{escape(figures.title)}</title>
  <desc id="desc">{escape(description(figures))}</desc>
  <style>{STYLE}</style>
  <rect class="page" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="8"/>
  {_text(20, 30, figures.title, "title")}
  {_text(WIDTH - 20, 30, f"{figures.unit}, less is better", "small", anchor="end")}
  {body}
</svg>
"""


def description(figures: Figures) -> str:
    """Every value, in words."""
    rows = []
    for row in figures.rows:
        values = [
            f"{column.shown} {_shown(value)} {figures.unit}"
            for column, value in zip(figures.columns, row.values, strict=True)
            if value is not None
        ]
        rows.append(f"{row.name}: {', '.join(values)}.")
    return " ".join(rows)


def _bars(figures: Figures, row: Row, colours: dict[Column, str]) -> list[tuple[str, float, str]]:
    """What a bar is called, its value and its colour. Of one column the rows are what is compared."""
    if len(figures.columns) == 1:
        colour = "peer1" if row.name.startswith(("kubectl", "python")) else "ours1"
        return [(row.name, value, colour) for value in row.values if value is not None]
    return [
        (column.shown, value, colours[column])
        for column, value in zip(figures.columns, row.values, strict=True)
        if value is not None
    ]


def _colours(columns: tuple[Column, ...]) -> dict[Column, str]:
    found: dict[Column, str] = {}
    for is_ours, kind in ((True, "ours"), (False, "peer")):
        alike = [column for column in columns if column.is_ours == is_ours]
        found |= {column: f"{kind}{number}" for number, column in enumerate(alike, 1)}
    return found


def _shown(value: float) -> str:
    """Three digits, as the tables have them."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _text(x: float, y: float, text: str, kind: str = "", *, anchor: str = "") -> str:
    attributes = (f' class="{kind}"' if kind else "") + (f' text-anchor="{anchor}"' if anchor else "")
    return f'<text x="{x:.0f}" y="{y:.0f}"{attributes}>{escape(text)}</text>'


if __name__ == "__main__":
    sys.exit(main())
