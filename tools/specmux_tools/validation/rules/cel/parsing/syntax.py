"""The syntax tree of an expression, with macros written out: a loop is a comprehension (cel-spec). Its
faults, and the text an apiserver shows for them (cel-go, common/error.go)."""

from __future__ import annotations

from dataclasses import field
from operator import itemgetter
from typing import Any, Final, TypeAlias

from specmux_converters.lazy.dataclasses import dataclass

_MOST_SHOWN: Final = 100
_MOST_SNIPPET: Final = 16_384


@dataclass(slots=True, eq=False)
class Literal:
    at: int
    """Its place in the text: characters before it."""
    value: Any


@dataclass(slots=True, eq=False)
class Identifier:
    at: int
    name: str


@dataclass(slots=True, eq=False)
class Select:
    at: int
    operand: Expression
    name: str
    is_test: bool = False
    """Whether it is the argument of has()."""


@dataclass(slots=True, eq=False)
class Call:
    """``&&`` and ``||`` take any number of arguments."""

    at: int
    function: str
    arguments: list[Expression]
    target: Expression | None = None


@dataclass(slots=True, eq=False)
class ListLiteral:
    at: int
    items: list[Expression]
    optional: frozenset[int] = frozenset()


@dataclass(slots=True, eq=False)
class MapEntry:
    at: int
    key: Expression
    value: Expression
    is_optional: bool = False


@dataclass(slots=True, eq=False)
class MapLiteral:
    at: int
    entries: list[MapEntry]


@dataclass(slots=True, eq=False)
class StructLiteral:
    at: int
    name: str
    entries: list[MapEntry]


@dataclass(slots=True, eq=False)
class Comprehension:
    """A macro written out. ``loop`` says which shape it has, for who runs it."""

    at: int
    loop: str
    over: Expression
    variables: tuple[str, ...]
    accumulator: str
    start: Expression
    condition: Expression
    step: Expression
    result: Expression
    body: list[Expression] = field(default_factory=list)
    """The arguments of the macro: predicate, transformation."""


Expression: TypeAlias = (
    Literal | Identifier | Select | Call | ListLiteral | MapLiteral | StructLiteral | Comprehension
)


RESERVED: Final = frozenset(
    (
        *("as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in"),
        *("let", "loop", "namespace", "null", "package", "return", "true", "var", "void", "while"),
    )
)
"""Words that are no names of variables."""


def qualified_name(expression: Expression) -> str | None:
    """``a.b.c`` where it is nothing but names."""
    if isinstance(expression, Identifier):
        return expression.name
    if isinstance(expression, Select) and not expression.is_test:
        inner = qualified_name(expression.operand)
        return None if inner is None else f"{inner}.{expression.name}"
    return None


def children(expression: Expression) -> list[Expression]:
    """The parts of it, in the order they are written."""
    match expression:
        case Select(operand=operand):
            return [operand]
        case Call(arguments=arguments, target=target):
            return [*([target] if target is not None else ()), *arguments]
        case ListLiteral(items=items):
            return items
        case MapLiteral(entries=entries):
            return [part for entry in entries for part in (entry.key, entry.value)]
        case StructLiteral(entries=entries):
            return [entry.value for entry in entries]
        case Comprehension():
            return [
                expression.over,
                expression.start,
                expression.condition,
                expression.step,
                expression.result,
            ]
    return []


def descendants(expression: Expression) -> list[Expression]:
    """It and all of its parts."""
    found, waiting = [], [expression]
    while waiting:
        each = waiting.pop()
        found.append(each)
        waiting.extend(reversed(children(each)))
    return found


@dataclass(frozen=True, slots=True)
class Issue:
    at: int
    """Characters before it; negative where it has no place."""
    message: str


class InvalidExpression(Exception):
    """An expression that does not compile. The text is as an apiserver writes it."""

    def __init__(self, text: str, issues: list[Issue]) -> None:
        self.issues = tuple(issues)
        super().__init__(show_issues(text, issues))


def show_issues(text: str, issues: list[Issue]) -> str:
    placed = sorted(
        ((*_place(text, issue.at), issue) for issue in issues[:_MOST_SHOWN]), key=itemgetter(0, 1)
    )
    lines = [_show(text, line, column, issue.message) for line, column, issue in placed]
    if len(issues) > _MOST_SHOWN:
        lines.append(f"{len(issues) - _MOST_SHOWN} more errors were truncated")
    return "\n".join(lines)


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
