"""Pages and messages use the words that engineers search for; idioms that were there do not come back."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

IDIOMS = {
    "told as current": "served as current",
    "has leave": "is let in",
    "no leave": "is refused",
    "passed over": "skipped",
    "for want of": "because … is missing, or short",
    "only in appearance": "seems to, and does not",
    "at one's leisure": "later",
    "sign of life": "keep-alive",
    "signs of life": "keep-alive",
    "by and by": "later",
    "in due course": "later",
    "kick in": "take effect",
    "under the hood": "inside",
    "out of the box": "by default",
    "low-hanging": "easy",
    "silver bullet": "solution",
    "boils down": "is",
    "sweet spot": "best value",
    "hit the ground": "start",
    "blazing": "fast, with the figure",
    "leverage": "use",
    "utilize": "use",
    "seamless": "what happens",
}
"""What is not written, and what is."""

PATTERNS = [
    "*.md",
    "docs/**/*.md",
    "docs/*.yaml",
    "examples/*",
    *(f"helm/**/*.{suffix}" for suffix in ("md", "txt", "yaml")),
    *(f"{package}/**/*.py" for package in ("aggregator", "cache", "converters", "tools")),
]
FILES = [path for pattern in PATTERNS for path in sorted(ROOT.glob(pattern)) if path.is_file()]


@pytest.mark.parametrize(
    "folder", ["docs", "examples", "helm", "aggregator", "cache", "converters", "tools", ""]
)
def test_no_idiom_is_used(folder: str) -> None:
    idioms = re.compile("|".join(rf"\b{re.escape(idiom)}" for idiom in IDIOMS), re.IGNORECASE)
    found = []
    mine = [path for path in FILES if (path.relative_to(ROOT).parts[:-1] or ("",))[0] == folder]
    assert mine
    for path in mine:
        text = re.sub(r"\s+", " ", path.read_text(encoding="utf-8"))
        for match in idioms.finditer(text):
            found.append(f"{path.relative_to(ROOT)}: {match[0]}: write: {IDIOMS[match[0].lower()]}")
    assert found == []
