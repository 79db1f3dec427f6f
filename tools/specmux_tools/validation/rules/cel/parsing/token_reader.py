"""Tokens of an expression (cel-spec, CEL.g4) read one by one, the values of literals, and how reading goes on
behind faults of syntax.

cel-go's parser, which ANTLR generates, does that (antlr4, DefaultErrorStrategy): it skips a surplus
token, assumes a missing one, or else skips tokens up to one that may come next.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any, Final

from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.validation.rules.cel.parsing.syntax import Expression, Issue, Literal
from specmux_tools.validation.rules.cel.values.values import INT_MAX, UINT_MAX, UInt

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
MOST_RECOVERIES: Final = 30
"""Faults of syntax behind which reading goes on."""
RELATIONS: Final = frozenset(("==", "!=", "<", "<=", ">", ">=", "in"))
SUMS: Final = frozenset("+-")
PRODUCTS: Final = frozenset("*/%")
BETWEEN: Final = RELATIONS | SUMS | PRODUCTS | {"||", "&&", "?"}
"""The tokens that may stand between operands."""
MEMBERS: Final = frozenset((".", "["))
CHOICE: Final = frozenset((":",))
_TOP: Final = frozenset((END,))
_SHOWN: Final = {
    "float": "NUM_FLOAT",
    "int": "NUM_INT",
    "uint": "NUM_UINT",
    "string": "STRING",
    "bytes": "BYTES",
    "name": "IDENTIFIER",
    "escaped": "ESC_IDENTIFIER",
    END: END,
}
_IN_ORDER: Final = (
    "==", "!=", "in", "<", "<=", ">=", ">", "&&", "||", "[", "]", "{", "}", "(", ")", ".", ",", "-", "!", "?",
    ":", "+", "*", "/", "%", "true", "false", "null", *_SHOWN,
)  # fmt: skip
_LITERAL_ESCAPE: Final = re.compile(
    rb"\\(?:([abfnrtv\"'\\?`])|([0-3][0-7]{2})|[xX]([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8}))"
)
_TEXT_ESCAPE: Final = re.compile(_LITERAL_ESCAPE.pattern.decode())
_MOST_DIGITS: Final = 1_000
"""Digits of an integer, leading zeroes included."""
_SHORT: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


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
            at = _skip_bad(text, at, issues)
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


def _skip_bad(text: str, at: int, issues: list[Issue]) -> int:
    """Behind what the lexer could not take."""
    begun = _BEGUN.match(text, at)
    end = at + 1 if begun is None else min(begun.end() + 1, len(text))
    issues.append(Issue(at, f"Syntax error: token recognition error at: '{text[at:end]}'"))
    return end


def escape_blanks(text: str) -> str:
    return text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")


class ParseStop(Exception):
    """Ends parsing; the issue is recorded."""


class SyntaxMismatch(Exception):
    """Ends a rule of the grammar; ``place`` names which."""

    def __init__(self, place: str, at: int, fault: str) -> None:
        super().__init__()
        self.place = place
        self.at = at
        self.fault = fault
        self.found: Expression | None = None
        """The expression that was read before."""


class TokenReader:
    def __init__(self, found: list[Token], issues: list[Issue]) -> None:
        self._tokens = found
        self._issues = issues
        self._at = 0
        self._token = found[0]
        self._ends: list[tuple[frozenset[str], frozenset[str]]] = [(_TOP, _TOP)]
        """The tokens that may follow the expressions that are being read, and others that end skipping."""
        self._is_recovering = False
        """Whether faults go unreported, up to the next token that fits."""
        self._recovered: tuple[int, set[str]] = (-1, set())
        self._recoveries = 0

    def _advance(self) -> Token:
        token = self._token
        self._at += 1
        self._token = self._tokens[min(self._at, len(self._tokens) - 1)]
        return token

    def _next(self) -> str:
        return self._tokens[min(self._at + 1, len(self._tokens) - 1)].kind

    def _take(self, kind: str) -> Token | None:
        if self._token.kind != kind:
            return None
        self._is_recovering = False
        return self._advance()

    def _want(self, kind: str, place: str, after: frozenset[str]) -> Token:
        """The token; a missing one is assumed before a token of ``after``."""
        if self._token.kind != kind and not self._without_one(frozenset((kind,))):
            if self._token.kind not in after:
                raise self._mismatch(place, frozenset((kind,)))
            self._say(self._token.at, f"missing {list_kinds((kind,))} at {quote_token(self._token)}")
            return self._token
        self._is_recovering = False
        return self._advance()

    def _sync(self, place: str, wanted: frozenset[str]) -> None:
        if self._token.kind in wanted or self._is_recovering or self._without_one(wanted):
            return
        raise self._mismatch(place, wanted)

    def _without_one(self, wanted: frozenset[str]) -> bool:
        """Skip a token before one that fits."""
        if self._next() not in wanted:
            return False
        self._say(
            self._token.at, f"extraneous input {quote_token(self._token)} expecting {list_kinds(wanted)}"
        )
        self._advance()
        self._is_recovering = False
        return True

    def _mismatch(self, place: str, wanted: frozenset[str]) -> SyntaxMismatch:
        fault = f"mismatched input {quote_token(self._token)} expecting {list_kinds(wanted)}"
        return SyntaxMismatch(place, self._token.at, fault)

    def _no_alternative(self, place: str) -> SyntaxMismatch:
        """A mismatch that begins with this token, at the next."""
        end = self._tokens[min(self._at + 1, len(self._tokens) - 1)]
        read = self._token.text + end.hidden + ("" if end.kind == END else end.text)
        return SyntaxMismatch(place, end.at, f"no viable alternative at input '{escape_blanks(read)}'")

    def _say(self, at: int, fault: str) -> None:
        if not self._is_recovering:
            self._is_recovering = True
            self._issues.append(Issue(at, f"Syntax error: {fault}"))

    def _recover(self, mismatch: SyntaxMismatch, *sets: frozenset[str]) -> None:
        """Skips to what may follow the rule that ended."""
        self._say(mismatch.at, mismatch.fault)
        self._recoveries += 1
        if self._recoveries > MOST_RECOVERIES:
            text = f"error recovery attempt limit exceeded: {MOST_RECOVERIES}"
            self._issues.append(Issue(self._token.at, f"Syntax error: {text}"))
            raise ParseStop
        at, places = self._recovered
        if at == self._at and mismatch.place in places:
            self._advance()
        self._recovered = (self._at, (places if at == self._at else set()) | {mismatch.place})
        self._skip(*sets)

    def _fault(self, at: int, text: str) -> Expression:
        """Reading goes on behind it."""
        self._issues.append(Issue(at, text))
        return Literal(at, None)

    def _after(self) -> frozenset[str]:
        """The tokens that may follow an operand here."""
        ends = self._ends[-1][0]
        return MEMBERS | (BETWEEN - {"?"} if ends is CHOICE else BETWEEN) | ends

    def _skip(self, *sets: frozenset[str]) -> None:
        wanted = frozenset().union(*sets, *(each for pair in self._ends for each in pair))
        while self._token.kind != END and self._token.kind not in wanted:
            self._advance()


def quote_token(token: Token) -> str:
    return f"'{escape_blanks(token.text)}'"


def list_kinds(kinds: Collection[str]) -> str:
    shown = [_SHOWN.get(kind, f"'{kind}'") for kind in _IN_ORDER if kind in kinds]
    return shown[0] if len(shown) == 1 else "{" + ", ".join(shown) + "}"


class BadLiteral(Exception):
    """Says what, as an apiserver does."""


def number(kind: str, text: str, *, is_negative: bool = False) -> Any:
    """Raises BadLiteral."""
    if kind == "float":
        value = float(text)
        if value == float("inf"):
            raise BadLiteral("invalid double literal")
        return -value if is_negative else value
    digits = text.rstrip("uU")
    if len(digits) > _MOST_DIGITS:
        raise BadLiteral(f"invalid {kind} literal")
    whole = int(digits, 16 if digits.startswith("0x") else 10)
    if kind == "uint":
        if whole > UINT_MAX:
            raise BadLiteral("invalid uint literal")
        return UInt(whole)
    if whole > INT_MAX + is_negative:
        raise BadLiteral("invalid int literal")
    return -whole if is_negative else whole


def text_value(text: str) -> str:
    """Raises BadLiteral."""
    inner, is_raw = _inside(text)
    if is_raw or "\\" not in inner:
        return inner
    return _TEXT_ESCAPE.sub(_character, inner)


def bytes_value(text: str) -> bytes:
    """The value of a literal that begins with b. Raises BadLiteral."""
    inner, is_raw = _inside(text[1:])
    data = inner.encode()
    return data if is_raw or b"\\" not in data else _LITERAL_ESCAPE.sub(_byte, data)


def _inside(text: str) -> tuple[str, bool]:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    is_raw = text[0] in "rR"
    text = text[1:] if is_raw else text
    width = 3 if text[:3] in ('"""', "'''") and len(text) >= 6 else 1
    return text[width:-width], is_raw


def _character(found: re.Match[str]) -> str:
    short, octal, *wide = found.groups()
    if short is not None:
        return _SHORT.get(short, short)
    code = int(octal, 8) if octal is not None else int(next(each for each in wide if each), 16)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise BadLiteral("invalid unicode code point")
    return chr(code)


def _byte(found: re.Match[bytes]) -> bytes:
    short, octal, pair, *wide = found.groups()
    if any(wide):
        raise BadLiteral("unable to unescape string")
    if short is not None:
        return _SHORT.get(short.decode(), short.decode()).encode()
    return bytes([int(octal, 8) if octal is not None else int(pair, 16)])


READERS: Final[dict[str, Callable[[str], Any]]] = {"string": text_value, "bytes": bytes_value}
