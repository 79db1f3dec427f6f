"""Tokens of an expression (cel-spec, CEL.g4)."""

from __future__ import annotations

import re
from typing import Final

from specmux_converters.deferred_dataclasses import dataclass
from specmux_schemas.validation.rules.cel.parsing.issues import Issue

_ESCAPE: Final = r"\\(?:[abfnrtv\"'\\?`]|[0-3][0-7]{2}|[xX][0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8})"
_TEXT: Final = (
    rf'[rR]"""[\s\S]*?"""|[rR]\'\'\'[\s\S]*?\'\'\'|"""(?:{_ESCAPE}|[^\\])*?"""|\'\'\'(?:{_ESCAPE}|[^\\])*?\'\'\''
    rf'|[rR]"[^"\n\r]*"|[rR]\'[^\'\n\r]*\'|"(?:{_ESCAPE}|[^\\"\n\r])*"|\'(?:{_ESCAPE}|[^\\\'\n\r])*\''
)
_TOKEN: Final = re.compile(
    rf"(?P<space>[\t \r\n\f]+|//[^\n]*)"
    rf"|(?P<bytes>[bB](?:{_TEXT}))"
    rf"|(?P<string>{_TEXT})"
    r"|(?P<float>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<uint>0x[0-9A-Fa-f]+[uU]|[0-9]+[uU])"
    r"|(?P<int>0x[0-9A-Fa-f]+|[0-9]+)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<mark>==|!=|<=|>=|&&|\|\||[<>\[\]{}().,\-!?:+*/%])"
    r"|(?P<escaped>`[A-Za-z0-9_./ -]+`)"
)
KEYWORDS: Final = frozenset(("in", "true", "false", "null"))
END: Final = "<EOF>"
_HALVES: Final = "=&|"
"""Of marks of two characters: the lexer sees that one is not whole at the next, and skips that, too."""


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    """string, bytes, float, uint, int, name, escaped; a mark or a keyword is its own kind."""
    text: str
    at: int


def tokens(text: str, issues: list[Issue]) -> list[Token]:
    """What is no token is an issue and is skipped."""
    found: list[Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            at = _skipped(text, at, issues)
            continue
        kind = match.lastgroup
        if kind not in (None, "space"):
            word = match.group()
            is_own = kind == "mark" or (kind == "name" and word in KEYWORDS)
            found.append(Token(word if is_own else str(kind), word, at))
        at = match.end()
    found.append(Token(END, END, len(text)))
    return found


def _skipped(text: str, at: int, issues: list[Issue]) -> int:
    """Behind what the lexer could not take: an unfinished text to the end of its line, else one character."""
    end = at + 1
    if text[at] in "\"'":
        stop = re.compile(r"[\n\r]|\\(?![abfnrtv\"'\\?`0-3xXuU])").search(text, end)
        end = len(text) if stop is None else stop.start() + (1 if text[stop.start()] == "\\" else 0)
        wrong = text[at : end + 1] if stop is not None else text[at:end]
        issues.append(Issue(at, f"Syntax error: token recognition error at: '{_escaped(wrong)}'"))
        return max(end, at + 1)
    if text[at] in _HALVES:
        end += 1
    issues.append(Issue(at, f"Syntax error: token recognition error at: '{_escaped(text[at:end])}'"))
    return end


def _escaped(text: str) -> str:
    return text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
