"""Faults of an expression, and the text an apiserver shows for them (cel-go, common/error.go)."""

from __future__ import annotations

from typing import Final

from specmux_converters.lazy.dataclasses import dataclass

_MOST_SHOWN: Final = 100
_MOST_SNIPPET: Final = 16_384


@dataclass(frozen=True, slots=True)
class Issue:
    at: int
    """Characters before it; negative where it has no place."""
    message: str


class InvalidExpression(Exception):
    """An expression that does not compile. The text is as an apiserver writes it."""

    def __init__(self, text: str, issues: list[Issue]) -> None:
        self.issues = tuple(issues)
        super().__init__(shown(text, issues))


def shown(text: str, issues: list[Issue]) -> str:
    placed = sorted(
        ((*_place(text, issue.at), issue.message) for issue in issues[:_MOST_SHOWN]), key=_by_place
    )
    lines = [_show(text, line, column, message) for line, column, message in placed]
    if len(issues) > _MOST_SHOWN:
        lines.append(f"{len(issues) - _MOST_SHOWN} more errors were truncated")
    return "\n".join(lines)


def _by_place(placed: tuple[int, int, str]) -> tuple[int, int]:
    return placed[0], placed[1]


def _place(text: str, at: int) -> tuple[int, int]:
    """Line from 1, column from 0."""
    if at < 0:
        return -1, -1
    before = text[:at]
    return before.count("\n") + 1, at - (before.rfind("\n") + 1)


def _show(text: str, line: int, column: int, message: str) -> str:
    result = f"ERROR: <input>:{line}:{column + 1}: {message}"
    lines = text.split("\n")
    if not 1 <= line <= len(lines) or len(lines[line - 1].encode(errors="replace")) > _MOST_SNIPPET:
        return result
    snippet = lines[line - 1].replace("\t", " ")
    dots = "".join("\uff0e" if character > "\x7f" else "." for character in snippet[:column])
    mark = "\uff3e" if snippet[column : column + 1] > "\x7f" else "^"
    return f"{result}\n | {snippet}\n | {dots}{mark}"
