"""The table of docs/architecture.md that says where to change something names what is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_table_of_changes_names_files_and_what_is_in_them() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = page.partition("## To change something")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 10
    for row in rows:
        paths = re.findall(r"`([a-z]\w*/[^`]+)`(?:: `(\w+)`)?", row)
        assert paths, row
        for path, symbol in paths:
            assert (ROOT / path).exists(), path
            if symbol:
                text = (ROOT / path).read_text(encoding="utf-8")
                assert re.search(rf"^(?:async def|def|class) {symbol}\b|^{symbol}\b", text, re.MULTILINE), row
