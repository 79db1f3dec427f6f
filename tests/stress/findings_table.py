"""What a stress run found: a table in Markdown, for the terminal and for the page that shows the last run."""

from __future__ import annotations

from pathlib import Path

HEADER = "| what | how much | what came of it |\n|---|---|---|\n"
END = "<!-- end -->\n"


class FindingsTable:
    """Rows in the order in which they were found."""

    def __init__(self) -> None:
        self._rows: list[tuple[str, str, str]] = []

    def __len__(self) -> int:
        return len(self._rows)

    def __str__(self) -> str:
        return HEADER + "".join(f"| {' | '.join(row)} |\n" for row in self._rows)

    def add(self, what: str, how_much: str, outcome: str) -> None:
        self._rows.append((what, how_much, outcome))

    def write_into(self, page: Path, *, maker: str, command: str) -> None:
        """Take the place of the table that ``maker`` wrote there before. Raises ValueError where none is."""
        begin = f"<!-- made by {maker}: begin -->\n"
        before, found, rest = page.read_text().partition(begin)
        _, ended, after = rest.partition(END)
        if not found or not ended:
            raise ValueError(f"{page} has no place for what {maker} found")
        page.write_text(f"{before}{begin}`{command}`:\n\n{self}{END}{after}")
