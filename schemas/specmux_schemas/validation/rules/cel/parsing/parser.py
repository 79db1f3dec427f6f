"""Text to syntax tree: the grammar of CEL by recursive descent, bounded in depth and size.

Issues are worded as cel-go's generated parser words the usual ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from specmux_schemas.validation.rules.cel.parsing.issues import InvalidExpression, Issue
from specmux_schemas.validation.rules.cel.parsing.literals import READERS, BadLiteral, number
from specmux_schemas.validation.rules.cel.parsing.macros import BadMacro, Macro
from specmux_schemas.validation.rules.cel.parsing.syntax import (
    Call,
    Expression,
    Identifier,
    ListLiteral,
    Literal,
    MapEntry,
    MapLiteral,
    Select,
    StructLiteral,
    qualified_name,
)
from specmux_schemas.validation.rules.cel.parsing.tokens import END, Token, tokens

MOST_CHARACTERS: Final = 100_000
MOST_DEPTH: Final = 90
"""Parentheses, brackets and macros in each other. cel-go takes 250, which no rule comes near to."""

_RELATIONS: Final = frozenset(("==", "!=", "<", "<=", ">", ">=", "in"))
_LEVELS: Final = (_RELATIONS, frozenset("+-"), frozenset("*/%"))
"""Binary operators, from those that bind least."""
_OPERATORS: Final = {"in": "@in"}
_CONSTANTS: Final[Mapping[str, object]] = {"true": True, "false": False, "null": None}
_RESERVED: Final = frozenset(
    (
        *(
            "as",
            "break",
            "const",
            "continue",
            "else",
            "false",
            "for",
            "function",
            "if",
            "import",
            "in",
            "let",
        ),
        *("loop", "package", "namespace", "null", "return", "true", "var", "void", "while"),
    )
)
_OPERAND: Final = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, "
    "IDENTIFIER}"
)


def parse(
    text: str, macros: Mapping[tuple[str, int, bool], Macro], *, takes_optional: bool = True
) -> Expression:
    """``macros`` by name, count of arguments and whether they are members. Raises InvalidExpression."""
    if len(text) > MOST_CHARACTERS:
        fault = f"expression code point size exceeds limit: size: {len(text)}, limit {MOST_CHARACTERS}"
        raise InvalidExpression(text, [Issue(-1, fault)])
    issues: list[Issue] = []
    parser = _Parser(tokens(text, issues), macros, takes_optional, issues)
    found: Expression | None = None
    try:
        found = parser.whole()
    except _ParseStop:
        pass
    except RecursionError:
        issues.append(Issue(-1, f"expression recursion limit exceeded: {MOST_DEPTH}"))
    if issues or found is None:
        raise InvalidExpression(text, issues)
    return found


class _ParseStop(Exception):
    """The issue is written down."""


class _Parser:
    def __init__(
        self,
        found: list[Token],
        macros: Mapping[tuple[str, int, bool], Macro],
        takes_optional: bool,
        issues: list[Issue],
    ) -> None:
        self._tokens = found
        self._at = 0
        self._token = found[0]
        self._macros = macros
        self._takes_optional = takes_optional
        self._issues = issues
        self._depth = 0

    def whole(self) -> Expression:
        found = self._expression()
        if self._token.kind != END:
            self._unexpected(END, "extraneous" if self._tokens[self._at + 1].kind == END else "mismatched")
        return found

    def _advance(self) -> Token:
        token = self._token
        self._at += 1
        self._token = self._tokens[min(self._at, len(self._tokens) - 1)]
        return token

    def _take(self, kind: str) -> Token | None:
        return self._advance() if self._token.kind == kind else None

    def _want(self, kind: str) -> Token:
        if self._token.kind != kind:
            self._unexpected(f"'{kind}'" if kind != "name" else "IDENTIFIER")
        return self._advance()

    def _unexpected(self, wanted: str, how: str = "mismatched") -> None:
        text = f"Syntax error: {how} input '{self._token.text}' expecting {wanted}"
        self._issues.append(Issue(self._token.at, text))
        raise _ParseStop

    def _fault(self, at: int, text: str) -> Expression:
        """Reading goes on behind it."""
        self._issues.append(Issue(at, text))
        return Literal(at, None)

    def _expression(self) -> Expression:
        self._depth += 1
        if self._depth > MOST_DEPTH:
            self._issues.append(Issue(-1, f"expression recursion limit exceeded: {MOST_DEPTH}"))
            raise _ParseStop
        found = self._logical("||", "_||_")
        if (mark := self._take("?")) is not None:
            first = self._logical("||", "_||_")
            self._want(":")
            found = Call(mark.at, "_?_:_", [found, first, self._expression()])
        self._depth -= 1
        return found

    def _logical(self, mark: str, function: str) -> Expression:
        below: Callable[[], Expression] = (
            (lambda: self._logical("&&", "_&&_")) if mark == "||" else (lambda: self._binary(0))
        )
        terms = [below()]
        at = self._token.at
        while self._take(mark):
            terms.append(below())
        return terms[0] if len(terms) == 1 else Call(at, function, terms)

    def _binary(self, level: int) -> Expression:
        if level == len(_LEVELS):
            return self._unary()
        found = self._binary(level + 1)
        while self._token.kind in _LEVELS[level]:
            mark = self._advance()
            function = _OPERATORS.get(mark.kind, f"_{mark.kind}_")
            found = Call(mark.at, function, [found, self._binary(level + 1)])
        return found

    def _unary(self) -> Expression:
        mark = self._token
        if mark.kind not in ("!", "-"):
            return self._member()
        if mark.kind == "-" and self._tokens[self._at + 1].kind in ("int", "float"):
            return self._member()
        count = 0
        while self._take(mark.kind):
            count += 1
        operand = self._member()
        if count % 2 == 0:
            return operand
        return Call(mark.at, "!_" if mark.kind == "!" else "-_", [operand])

    def _member(self) -> Expression:
        found = self._primary()
        while True:
            if (dot := self._take(".")) is not None:
                found = self._selected(found, dot)
            elif (bracket := self._take("[")) is not None:
                is_optional = self._optional_mark(bracket, "[?")
                index = self._expression()
                self._want("]")
                found = Call(bracket.at, "_[?_]" if is_optional else "_[_]", [found, index])
            elif self._token.kind == "{" and (name := qualified_name(found)) is not None:
                found = self._structure(name)
            else:
                return found

    def _optional_mark(self, before: Token, syntax: str) -> bool:
        mark = self._take("?")
        if mark is not None and not self._takes_optional:
            self._fault(before.at, f"unsupported syntax '{syntax}'")
        return mark is not None

    def _selected(self, operand: Expression, dot: Token) -> Expression:
        if self._optional_mark(dot, ".?"):
            name = self._field_name()
            return Call(dot.at, "_?._", [operand, Literal(name.at, name.text)])
        name = self._field_name()
        if (opened := self._take("(")) is not None:
            arguments = self._arguments()
            return self._called(opened.at, name.text, operand, arguments)
        return Select(dot.at, operand, name.text)

    def _field_name(self) -> Token:
        if self._token.kind == "escaped":
            token = self._advance()
            self._fault(token.at, "unsupported syntax: '`'")
            return token
        if self._token.kind != "name":
            if self._token.kind == END or self._tokens[self._at - 1].kind == "?":
                self._unexpected("{IDENTIFIER, ESC_IDENTIFIER}")
            self._issues.append(Issue(self._token.at, _no_alternative(self._token)))
            raise _ParseStop
        return self._advance()

    def _arguments(self) -> list[Expression]:
        found: list[Expression] = []
        if self._take(")"):
            return found
        found.append(self._expression())
        while self._take(","):
            found.append(self._expression())
        self._want(")")
        return found

    def _called(
        self, at: int, name: str, target: Expression | None, arguments: list[Expression]
    ) -> Expression:
        macro = self._macros.get((name, len(arguments), target is not None))
        if macro is None:
            return Call(at, name, arguments, target)
        try:
            written = macro(at, target, arguments)
        except BadMacro as bad:
            return self._fault(bad.at, bad.message)
        return Call(at, name, arguments, target) if written is None else written

    def _primary(self) -> Expression:
        token = self._token
        match token.kind:
            case "name":
                return self._name("")
            case ".":
                self._advance()
                if self._token.kind != "name":
                    self._unexpected("IDENTIFIER")
                return self._name(".")
            case "(":
                self._advance()
                found = self._expression()
                self._want(")")
                return found
            case "[":
                return self._list()
            case "{":
                return self._map()
            case "true" | "false" | "null":
                self._advance()
                return Literal(token.at, _CONSTANTS[token.kind])
            case "int" | "uint" | "float" | "string" | "bytes":
                return self._literal()
            case "-" if self._tokens[self._at + 1].kind in ("int", "float"):
                return self._literal()
        self._unexpected(_OPERAND)
        raise AssertionError

    def _literal(self) -> Expression:
        token = self._advance()
        is_negative = token.kind == "-"
        digits = self._advance() if is_negative else token
        try:
            if digits.kind in READERS:
                return Literal(token.at, READERS[digits.kind](digits.text))
            return Literal(token.at, number(digits.kind, digits.text, is_negative=is_negative))
        except BadLiteral as bad:
            return self._fault(token.at, str(bad))

    def _name(self, dot: str) -> Expression:
        token = self._advance()
        if token.text in _RESERVED:
            return self._fault(token.at, f"reserved identifier: {token.text}")
        if (opened := self._take("(")) is not None:
            return self._called(opened.at, dot + token.text, None, self._arguments())
        return Identifier(token.at, dot + token.text)

    def _list(self) -> Expression:
        opened = self._advance()
        items: list[Expression] = []
        optional: set[int] = set()
        while self._token.kind != "]":
            if self._optional_mark(self._token, "?"):
                optional.add(len(items))
            items.append(self._expression())
            if not self._take(","):
                break
        self._want("]")
        return ListLiteral(opened.at, items, frozenset(optional))

    def _map(self) -> Expression:
        opened = self._advance()
        entries: list[MapEntry] = []
        while self._token.kind != "}":
            is_optional = self._optional_mark(self._token, "?")
            key = self._expression()
            colon = self._want(":")
            entries.append(MapEntry(colon.at, key, self._expression(), is_optional))
            if not self._take(","):
                break
        self._want("}")
        return MapLiteral(opened.at, entries)

    def _structure(self, name: str) -> Expression:
        opened = self._advance()
        entries: list[MapEntry] = []
        while self._token.kind != "}":
            is_optional = self._optional_mark(self._token, "?")
            field = self._want("name")
            colon = self._want(":")
            key = Literal(field.at, field.text)
            entries.append(MapEntry(colon.at, key, self._expression(), is_optional))
            if not self._take(","):
                break
        self._want("}")
        return StructLiteral(opened.at, name, entries)


def _no_alternative(token: Token) -> str:
    return f"Syntax error: no viable alternative at input '.{token.text}'"
