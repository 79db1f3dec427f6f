"""Tokens of an expression (cel-spec, CEL.g4)."""

from __future__ import annotations

import re
from typing import Final

from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.validation.rules.cel.parsing.issues import Issue

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
_BEGUN: Final = re.compile(
    r"(?P<quote>[\"'])(?:(?!(?P=quote))[^\\\n\r]|\\(?:[abfnrtv\"'\\?`]|[0-3][0-7]{2}|[xX][0-9A-Fa-f]{2}"
    r"|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}))*+(?:\\(?:[0-3][0-7]?|[xX][0-9A-Fa-f]?|u[0-9A-Fa-f]{0,3}"
    r"|U[0-9A-Fa-f]{0,7})?)?"
    r"|`[A-Za-z0-9_./ -]*|[=&|]"
)
"""Pattern of a token that is not whole: the lexer sees that at the next character, and skips it, too."""


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    """string, bytes, float, uint, int, name, escaped; a mark or a keyword is its own kind."""
    text: str
    at: int
    hidden: str = ""
    """Blanks and comments before it."""


def tokens(text: str, issues: list[Issue]) -> list[Token]:
    """The tokens of a text. What is none is an issue and is skipped."""
    found: list[Token] = []
    at, hidden = 0, ""
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            at = _skipped(text, at, issues)
            continue
        kind = match.lastgroup
        word = match.group()
        if kind == "space":
            hidden += word
        elif kind is not None:
            is_own = kind == "mark" or (kind == "name" and word in KEYWORDS)
            found.append(Token(word if is_own else kind, word, at, hidden))
            hidden = ""
        at = match.end()
    found.append(Token(END, END, len(text), hidden))
    return found


def _skipped(text: str, at: int, issues: list[Issue]) -> int:
    """Behind what the lexer could not take."""
    begun = _BEGUN.match(text, at)
    end = at + 1 if begun is None else min(begun.end() + 1, len(text))
    issues.append(Issue(at, f"Syntax error: token recognition error at: '{text[at:end]}'"))
    return end


def escaped(text: str) -> str:
    return text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
