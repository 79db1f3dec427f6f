"""Text to syntax tree: the grammar of CEL by recursive descent, bounded in depth and size.

Behind faults it goes on as cel-go's parser does (``token_reader``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from specmux_tools.validation.rules.cel.parsing.macros import BadMacro, Macro
from specmux_tools.validation.rules.cel.parsing.syntax import (
    RESERVED,
    Call,
    Expression,
    Identifier,
    InvalidExpression,
    Issue,
    ListLiteral,
    Literal,
    MapEntry,
    MapLiteral,
    Select,
    StructLiteral,
)
from specmux_tools.validation.rules.cel.parsing.token_reader import (
    BETWEEN,
    CHOICE,
    END,
    MEMBERS,
    PRODUCTS,
    READERS,
    RELATIONS,
    SUMS,
    BadLiteral,
    ParseStop,
    SyntaxMismatch,
    Token,
    TokenReader,
    list_kinds,
    number,
    quote_token,
    tokens,
)

MOST_CHARACTERS: Final = 100_000
MOST_DEPTH: Final = 90
"""Parentheses, brackets and macros in each other. cel-go takes 250, which no rule comes near to."""

_LEVELS: Final = (RELATIONS, SUMS, PRODUCTS)
"""Binary operators, from those that bind least."""
_OPERATORS: Final = {"in": "@in"}
_CONSTANTS: Final[Mapping[str, object]] = {"true": True, "false": False, "null": None}
_OPERAND: Final = frozenset(
    ("[", "{", "(", ".", "-", "true", "false", "null", "float", "int", "uint", "string", "bytes", "name")
)
_EXPRESSION: Final = _OPERAND | {"!"}
_OPTIONAL: Final = _EXPRESSION | {"?"}
_FIELD: Final = frozenset(("name", "escaped"))


def parse(text: str, macros: Mapping[tuple[str, int, bool], Macro]) -> Expression:
    """``macros`` by name, count of arguments and whether they are members. Raises InvalidExpression."""
    if len(text) > MOST_CHARACTERS:
        fault = f"expression code point size exceeds limit: size: {len(text)}, limit {MOST_CHARACTERS}"
        raise InvalidExpression(text, [Issue(-1, fault)])
    issues: list[Issue] = []
    parser = _Parser(tokens(text, issues), macros, issues)
    found: Expression | None = None
    try:
        found = parser.whole()
    except ParseStop:
        pass
    except RecursionError:
        issues.append(Issue(-1, f"expression recursion limit exceeded: {MOST_DEPTH}"))
    if issues or found is None:
        raise InvalidExpression(text, issues)
    return found


class _Parser(TokenReader):
    def __init__(
        self,
        found: list[Token],
        macros: Mapping[tuple[str, int, bool], Macro],
        issues: list[Issue],
    ) -> None:
        super().__init__(found, issues)
        self._macros = macros
        self._depth = 0

    def whole(self) -> Expression:
        found = self._expression()
        try:
            self._want(END, "the end", frozenset())
        except SyntaxMismatch as mismatch:
            self._say(mismatch.at, mismatch.fault)
        return found

    def _within(self, ends: frozenset[str], more: frozenset[str] = frozenset()) -> Expression:
        self._ends.append((ends, more))
        found = self._logical("||", "_||_") if ends is CHOICE else self._expression()
        self._ends.pop()
        return found

    def _expression(self) -> Expression:
        self._depth += 1
        if self._depth > MOST_DEPTH:
            self._issues.append(Issue(-1, f"expression recursion limit exceeded: {MOST_DEPTH}"))
            raise ParseStop
        found = self._logical("||", "_||_")
        if (mark := self._take("?")) is not None:
            first = self._within(CHOICE)
            try:
                self._want(":", "choice", _EXPRESSION)
                found = Call(mark.at, "_?_:_", [found, first, self._expression()])
            except SyntaxMismatch as mismatch:
                is_nested = any(ends is not CHOICE for ends, _ in self._ends[1:])
                self._recover(mismatch, BETWEEN if is_nested else frozenset())
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
            self._is_recovering = False
            mark = self._advance()
            function = _OPERATORS.get(mark.kind, f"_{mark.kind}_")
            found = Call(mark.at, function, [found, self._binary(level + 1)])
        return found

    def _unary(self) -> Expression:
        at = self._token.at
        try:
            self._sync("unary", _EXPRESSION)
            mark = self._token
            if mark.kind not in ("!", "-") or (mark.kind == "-" and self._next() in ("int", "float")):
                return self._member()
            return self._negate(mark)
        except SyntaxMismatch as mismatch:
            self._recover(mismatch, BETWEEN)
            return Literal(at, None)

    def _negate(self, mark: Token) -> Expression:
        count = 0
        while self._token.kind == mark.kind:
            if mark.kind == "-" and self._next() not in _OPERAND:
                raise self._no_alternative("unary")
            self._is_recovering = False
            self._advance()
            count += 1
            wanted = _OPERAND | {mark.kind}
            if self._token.kind not in wanted and not self._is_recovering:
                self._say(
                    self._token.at,
                    f"extraneous input {quote_token(self._token)} expecting {list_kinds(wanted)}",
                )
                self._skip(wanted | BETWEEN)
        operand = self._member()
        if count % 2 == 0:
            return operand
        return Call(mark.at, "!_" if mark.kind == "!" else "-_", [operand])

    def _member(self) -> Expression:
        found = self._primary()
        try:
            while self._token.kind in MEMBERS:
                if self._token.kind == ".":
                    if self._next() not in ("name", "escaped", "?"):
                        raise self._no_alternative("member")
                    self._is_recovering = False
                    found = self._select(found, self._advance())
                else:
                    self._is_recovering = False
                    found = self._index(found, self._advance())
        except SyntaxMismatch as mismatch:
            self._recover(mismatch, BETWEEN)
            found = mismatch.found or found
        return found

    def _index(self, operand: Expression, bracket: Token) -> Expression:
        self._sync("index", _OPTIONAL)
        is_optional = self._take("?") is not None
        index = self._within(frozenset(("]",)))
        self._want("]", "index end", self._after())
        return Call(bracket.at, "_[?_]" if is_optional else "_[_]", [operand, index])

    def _select(self, operand: Expression, dot: Token) -> Expression:
        if self._take("?"):
            at = self._token.at
            name = self._field_name()
            if name is None:
                return self._fault(at, "unsupported ident kind")
            return Call(dot.at, "_?._", [operand, Literal(name.at, name.text)])
        name = self._field_name()
        if name is None:
            return operand
        if name.kind == "name" and (opened := self._take("(")) is not None:
            return self._call(opened.at, name.text, operand)
        return Select(dot.at, operand, name.text)

    def _field_name(self) -> Token | None:
        try:
            self._sync("field", _FIELD)
            if self._token.kind not in _FIELD:
                raise self._mismatch("field", _FIELD)
        except SyntaxMismatch as mismatch:
            self._recover(mismatch, BETWEEN, MEMBERS)
            return None
        self._is_recovering = False
        if self._token.kind == "escaped":
            self._fault(self._token.at, "unsupported syntax: '`'")
        return self._advance()

    def _call(self, at: int, name: str, target: Expression | None) -> Expression:
        """After the bracket that opens its arguments."""
        more = MEMBERS if target is None else frozenset()
        arguments: list[Expression] = []
        self._sync("arguments", _EXPRESSION | {")"})
        if self._token.kind in _EXPRESSION:
            ends = frozenset((",", ")"))
            arguments.append(self._within(ends, more))
            while self._take(","):
                arguments.append(self._within(ends, more))
        try:
            self._want(")", "arguments end", self._after())
        except SyntaxMismatch as mismatch:
            mismatch.found = self._expand_call(at, name, target, arguments)
            raise
        return self._expand_call(at, name, target, arguments)

    def _expand_call(
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
        at = self._token.at
        try:
            self._sync("primary", _OPERAND)
            return self._operand()
        except SyntaxMismatch as mismatch:
            self._recover(mismatch, BETWEEN, MEMBERS)
            return mismatch.found or Literal(at, None)

    def _operand(self) -> Expression:
        token = self._token
        match token.kind:
            case "name":
                return self._name("")
            case ".":
                if self._next() != "name":
                    raise self._no_alternative("primary")
                self._advance()
                return self._name(".")
            case "(":
                self._advance()
                found = self._within(frozenset((")",)), MEMBERS)
                self._want(")", "nested end", self._after())
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
            case "-" if self._next() in ("int", "float"):
                return self._literal()
            case "-":
                raise self._no_alternative("literal")
        raise self._mismatch("primary", _OPERAND)

    def _literal(self) -> Expression:
        self._is_recovering = False
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
        self._is_recovering = False
        if (count := self._structure_names()) > 0:
            names = [self._advance().text for _ in range(count)]
            return self._structure(dot + "".join(names))
        token = self._advance()
        if token.text in RESERVED:
            self._fault(token.at, f"reserved identifier: {token.text}")
        if (opened := self._take("(")) is not None:
            return self._call(opened.at, dot + token.text, None)
        return Identifier(token.at, dot + token.text)

    def _structure_names(self) -> int:
        """Tokens of the name before a literal of a message; 0 where there is none."""
        at = self._at
        while self._tokens[at + 1].kind == "." and self._tokens[at + 2].kind == "name":
            at += 2
        return at + 1 - self._at if self._tokens[at + 1].kind == "{" else 0

    def _list(self) -> Expression:
        opened = self._advance()
        items: list[Expression] = []
        optional: set[int] = set()
        self._sync("list", _OPTIONAL | {",", "]"})
        while self._token.kind in _OPTIONAL:
            if self._take("?"):
                optional.add(len(items))
            items.append(self._within(frozenset((",", "]")), MEMBERS))
            if self._token.kind != "," or self._next() not in _OPTIONAL:
                break
            self._take(",")
        self._close("]")
        return ListLiteral(opened.at, items, frozenset(optional))

    def _close(self, mark: str) -> None:
        """After what may have a comma at its end."""
        self._sync("comma", frozenset((",", mark)))
        self._take(",")
        self._want(mark, f"{mark} end", self._after())

    def _map(self) -> Expression:
        opened = self._advance()
        ends, more = CHOICE | {""}, MEMBERS | {",", "}"}
        return MapLiteral(opened.at, self._entries("map", _OPTIONAL, lambda: self._within(ends, more)))

    def _structure(self, name: str) -> Expression:
        opened = self._advance()
        return StructLiteral(opened.at, name, self._entries("message", _FIELD | {"?"}, self._field_key))

    def _field_key(self) -> Expression:
        field = self._field_name() or self._token
        return Literal(field.at, field.text)

    def _entries(self, place: str, first: frozenset[str], key: Callable[[], Expression]) -> list[MapEntry]:
        """Reads entries up to the closing brace. ``first``: what an entry begins with."""
        entries: list[MapEntry] = []
        self._sync(place, first | {",", "}"})
        try:
            while self._token.kind in first:
                is_optional = self._take("?") is not None
                entries.append(self._entry(key(), is_optional))
                if self._token.kind != "," or self._next() not in first:
                    break
                self._take(",")
        except SyntaxMismatch as mismatch:
            self._recover(mismatch, BETWEEN, MEMBERS, frozenset((",", "}")))
        self._close("}")
        return entries

    def _entry(self, key: Expression, is_optional: bool) -> MapEntry:
        colon = self._want(":", "entry", _EXPRESSION)
        value = self._within(frozenset((",", "}")), MEMBERS)
        return MapEntry(colon.at, key, value, is_optional)
