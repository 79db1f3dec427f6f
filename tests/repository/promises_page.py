"""docs/promises.md, made of promises.toml beside this file.

python tests/repository/promises_page.py
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
DATA: Final = Path(__file__).with_name("promises.toml")
PAGE: Final = ROOT / "docs/promises.md"
_HEAD: Final = """# Promises and their tests

The six documents that specmux implements, promise by promise, with links to the tests. Differences follow a
dash. Generated from `tests/repository/promises.toml` by `python tests/repository/promises_page.py`.
"""


@dataclass(frozen=True, slots=True)
class Promise:
    section: str
    words: str
    tests: tuple[str, ...]
    """Below ``tests/``."""
    differs: str
    """How and why; "" where specmux does what is promised."""


def promises() -> Iterator[tuple[str, list[Promise]]]:
    """Of each document, by its title."""
    for document in tomllib.loads(DATA.read_text())["document"]:
        rows = [
            Promise(section, words, tuple(tests.split()), differs)
            for section, words, tests, differs in document["rows"]
        ]
        yield document["title"], rows


def page() -> str:
    parts = [_HEAD]
    for title, rows in promises():
        parts.append(f"\n## {title}\n")
        section = ""
        for row in rows:
            if row.section != section:
                section = row.section
                parts.append(f"\n**{section}**\n\n")
            tests = "".join(f"[[{number}]](../tests/{name})" for number, name in enumerate(row.tests, 1))
            parts.append(f"* {row.words} {tests}{f' – {row.differs}' if row.differs else ''}\n")
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page())
