"""Pages of docs/benchmarks/, made from tables.toml: ``python tests/benchmarks/pages.py``."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

DATA: Final = Path(__file__).with_name("tables.toml")
FOLDER: Final = Path(__file__).resolve().parents[2] / "docs" / "benchmarks"


def pages() -> dict[str, str]:
    """Text of each page by its file's name."""
    data = tomllib.loads(DATA.read_text(encoding="utf-8"))
    return {f"{page['name']}.md": "\n\n".join(_blocks(page)) + "\n" for page in data["page"]}


def _blocks(page: dict[str, Any]) -> Iterator[str]:
    yield f"# {page['title']}"
    yield (
        "Generated from `tests/benchmarks/tables.toml` by `python tests/benchmarks/pages.py`. "
        "[How to read the figures](../benchmarks.md#how-to-read-the-figures)."
    )
    for section in page["section"]:
        yield f"## {section['title']}"
        if section["command"]:
            yield f"`python tests/benchmarks/{section['command']}`"
        for table in section["table"]:
            yield from _table(table)


def _table(table: dict[str, Any]) -> Iterator[str]:
    if "text" in table:
        yield table["text"]
    if "plot" in table:
        yield f"![{table['shows']}](../images/benchmarks/{table['plot']}.svg)"
    header = table["header"]
    yield "\n".join([_row(header), "|" + "---|" * len(header), *map(_row, table["rows"])])
    if "notes" in table:
        yield "\n".join(f"* {note}" for note in table["notes"])


def _row(cells: list[str]) -> str:
    return "".join(f"| {cell} " if cell else "| " for cell in cells) + "|"


def write() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
