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

The five documents that specmux implements, promise by promise, in our words: which test shows it, and where
specmux differs and why. Feature gates, rollout plans and benchmarks of the documents' own project are left
out.

`python tests/repository/promises_page.py` makes this page of `tests/repository/promises.toml`; a test
compares them.
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
        parts.append(f"\n## {title}\n\n| | promise | shown by | differs |\n|---|---|---|---|\n")
        for row in rows:
            tests = ", ".join(f"[{Path(name).name}](../tests/{name})" for name in row.tests)
            parts.append(f"| {row.section} | {row.words} | {tests} | {row.differs} |\n")
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page())
