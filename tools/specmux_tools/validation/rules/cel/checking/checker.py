"""Types of all parts of an expression, and which overloads its calls are (cel-go, checker/checker.go)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.validation.rules.cel.checking.declarations import Environment, Message, Overload
from specmux_tools.validation.rules.cel.checking.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    ERROR,
    ERROR_KIND,
    INT,
    LIST_KIND,
    MAP_KIND,
    NULL,
    PARAM_KIND,
    STRING,
    STRUCT_KIND,
    UINT,
    Bindings,
    CelType,
    list_of,
    map_of,
    most_general,
    optional_of,
    signature,
    type_of,
    unwrap_optional,
)
from specmux_tools.validation.rules.cel.parsing.syntax import (
    RESERVED,
    Call,
    Comprehension,
    Expression,
    Identifier,
    Issue,
    ListLiteral,
    Literal,
    MapEntry,
    MapLiteral,
    Select,
    StructLiteral,
    qualified_name,
)
from specmux_tools.validation.rules.cel.values.values import UInt

Structs = Mapping[str, Mapping[str, CelType]]
"""Fields of objects, by the name of their type."""

_LITERALS = {
    bool: BOOL,
    int: INT,
    UInt: UINT,
    float: DOUBLE,
    str: STRING,
    bytes: BYTES,
    type(None): NULL,
}


@dataclass(slots=True)
class CheckedExpression:
    """Parts are told apart by identity: the tree lives as long as this."""

    root: Expression
    types: dict[int, CelType] = field(default_factory=dict)
    overloads: dict[int, tuple[Overload, ...]] = field(default_factory=dict)
    messages: dict[int, Message] = field(default_factory=dict)
    constants: Mapping[str, int] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    """The names of identifiers, and of selections that are names of types."""
    bounds_equality: bool = True
    """The field of its environment."""

    def type(self, expression: Expression) -> CelType:
        return self.types[id(expression)]

    @property
    def result(self) -> CelType:
        return self.type(self.root)


def check(
    root: Expression, environment: Environment, variables: Mapping[str, CelType], structs: Structs
) -> tuple[CheckedExpression, list[Issue]]:
    checked = CheckedExpression(
        root, constants=environment.constants, bounds_equality=environment.bounds_equality
    )
    checker = _Checker(environment, variables, structs, checked)
    checker.check(root)
    final = checker.bindings
    checked.types = {key: final.resolve(of, is_final=True) for key, of in checked.types.items()}
    return checked, checker.issues


class _Checker:
    def __init__(
        self,
        environment: Environment,
        variables: Mapping[str, CelType],
        structs: Structs,
        checked: CheckedExpression,
    ) -> None:
        self.issues: list[Issue] = []
        self.bindings = Bindings()
        self._checked = checked
        self._types = checked.types
        self._environment = environment
        self._structs = structs
        self._scopes: list[dict[str, CelType]] = [dict(variables)]

    def check(self, expression: Expression) -> CelType:
        match expression:
            case Literal():
                found = _LITERALS[type(expression.value)]
            case Identifier():
                found = self._identifier(expression)
            case Select():
                found = self._select(expression)
            case Call():
                found = self._call(expression)
            case ListLiteral():
                found = self._list(expression)
            case MapLiteral():
                found = self._map(expression)
            case StructLiteral():
                found = self._structure(expression)
            case Comprehension():
                found = self._comprehension(expression)
        self._types[id(expression)] = found
        return found

    def _report(self, expression: Expression | MapEntry, message: str) -> None:
        self.issues.append(Issue(expression.at, message))

    def _lookup(self, name: str) -> CelType | None:
        scopes = self._scopes[:1] if name.startswith(".") else self._scopes
        name = name.removeprefix(".")
        for scope in reversed(scopes):
            if name in scope:
                return scope[name]
        if name in self._environment.constants:
            return INT
        found = self._environment.types.get(name)
        return None if found is None else type_of(found)

    def _identifier(self, expression: Identifier) -> CelType:
        found = self._lookup(expression.name)
        if found is None:
            self._report(expression, f"undeclared reference to '{expression.name}' (in container '')")
            return ERROR
        self._checked.names[id(expression)] = expression.name.removeprefix(".")
        return found

    def _select(self, expression: Select) -> CelType:
        name = qualified_name(expression)
        found = None if name is None else self._lookup(name)
        if found is not None and name is not None:
            self._checked.names[id(expression)] = name.removeprefix(".")
            return found
        selected = self._field(expression, expression.operand, expression.name, is_optional=False)
        return BOOL if expression.is_test else self.bindings.resolve(selected)

    def _field(self, at: Expression, operand: Expression, name: str, *, is_optional: bool) -> CelType:
        self.check(operand)
        target, was_optional = unwrap_optional(self.bindings.resolve(self._types[id(operand)]))
        found = DYN
        if target.kind == MAP_KIND:
            found = target.params[1]
        elif target.kind == STRUCT_KIND:
            fields = self._structs.get(target.name, {})
            is_keyword = self._environment.selects_keywords and name in RESERVED
            found = fields.get(name) or (fields.get(f"__{name}__") if is_keyword else None) or ERROR
            if found is ERROR:
                self._report(at, f"undefined field '{name}'")
        elif target.kind == PARAM_KIND:
            self.bindings.fits(DYN, target)
        elif not target.is_dyn_or_error:
            self._report(at, f"type '{target}' does not support field selection")
        return optional_of(found) if was_optional or is_optional else found

    def _call(self, call: Call) -> CelType:
        if call.function == "_?._":
            name = call.arguments[1]
            assert isinstance(name, Literal)
            self._types[id(name)] = STRING
            return self.bindings.resolve(self._field(call, call.arguments[0], name.value, is_optional=True))
        for argument in call.arguments:
            self.check(argument)
        if call.target is None:
            return self._resolve(call, call.function.removeprefix("."), is_member=False)
        prefix = qualified_name(call.target)
        if prefix is not None:
            full_name = f"{prefix}.{call.function}".removeprefix(".")
            if full_name in self._environment.functions:
                call.function, call.target = full_name, None
                return self._resolve(call, full_name, is_member=False)
        self.check(call.target)
        return self._resolve(call, call.function, is_member=True)

    def _resolve(self, call: Call, name: str, *, is_member: bool) -> CelType:
        overloads = self._environment.functions.get(name)
        if overloads is None:
            self._report(call, f"undeclared reference to '{call.function}' (in container '')")
            return ERROR
        parts = [*([call.target] if call.target is not None else ()), *call.arguments]
        given = tuple(self._types[id(part)] for part in parts)
        if name in ("_&&_", "_||_"):
            return self._logical(call, overloads)
        found: list[Overload] = []
        result: CelType | None = None
        for overload in overloads:
            if overload.is_member != is_member:
                continue
            names = {each: self.bindings.fresh() for each in overload.parameters}
            wanted = overload.arguments
            if names:
                wanted = tuple(self.bindings.rename(each, names) for each in wanted)
            if len(wanted) != len(given) or not self.bindings.all_fit(given, wanted):
                continue
            found.append(overload)
            of = self.bindings.resolve(self.bindings.rename(overload.result, names))
            result = of if result is None or result == of else result if result.is_dyn else DYN
        if result is None:
            shown = signature(
                [self.bindings.resolve(each, is_final=True) for each in given], is_member=is_member
            )
            self._report(call, f"found no matching overload for '{name}' applied to '{shown}'")
            return ERROR
        self._checked.overloads[id(call)] = tuple(found)
        return result

    def _logical(self, call: Call, overloads: tuple[Overload, ...]) -> CelType:
        self._checked.overloads[id(call)] = overloads
        result = BOOL
        for argument in call.arguments:
            of = self._types[id(argument)]
            if not self.bindings.fits(of, BOOL):
                self._report(argument, f"expected type 'bool' but found '{of}'")
                result = ERROR
        return result

    def _list(self, expression: ListLiteral) -> CelType:
        joined: CelType | None = None
        for index, item in enumerate(expression.items):
            of = self.check(item)
            if index in expression.optional:
                of = self._want_optional(item, of)
            joined = self._join(joined, of)
        return list_of(self.bindings.fresh() if joined is None else joined)

    def _want_optional(self, expression: Expression, of: CelType) -> CelType:
        inner, is_optional = unwrap_optional(of)
        if not is_optional and not inner.is_dyn:
            self._report(expression, f"expected type '{optional_of(inner)}' but found '{inner}'")
        return inner

    def _join(self, before: CelType | None, of: CelType) -> CelType:
        """The common type, dyn for two different ones; ``compiling`` says where that is a fault."""
        if before is None:
            return of
        return most_general(before, of) if self.bindings.fits(before, of) else DYN

    def _map(self, expression: MapLiteral) -> CelType:
        keys: CelType | None = None
        values: CelType | None = None
        for entry in expression.entries:
            keys = self._join(keys, self.check(entry.key))
            of = self.check(entry.value)
            if entry.is_optional:
                of = self._want_optional(entry.value, of)
            values = self._join(values, of)
        if keys is None or values is None:
            return map_of(self.bindings.fresh(), self.bindings.fresh())
        return map_of(keys, values)

    def _structure(self, expression: StructLiteral) -> CelType:
        name = expression.name.removeprefix(".")
        message, of = self._environment.messages.get(name), self._environment.types.get(name)
        if message is not None:
            self._checked.messages[id(expression)] = message
        elif of is not None:
            self._report(expression, f"'{of.name}' is not a message type")
        else:
            self._report(expression, f"undeclared reference to '{expression.name}' (in container '')")
            return ERROR
        for entry in expression.entries:
            self._initialize(entry, {} if message is None else message.fields)
        return ERROR if message is None else message.type

    def _initialize(self, entry: MapEntry, fields: Mapping[str, CelType]) -> None:
        assert isinstance(entry.key, Literal)
        given, name = self.check(entry.value), entry.key.value
        wanted = fields.get(name)
        if wanted is None:
            self._report(entry, f"undefined field '{name}'")
        if entry.is_optional:
            given = self._want_optional(entry.value, given)
        if wanted is not None and not self.bindings.fits(wanted, given):
            text = f"expected type of field '{name}' is '{wanted}' but provided type is '{given}'"
            self._report(entry, text)

    def _comprehension(self, loop: Comprehension) -> CelType:
        self.check(loop.over)
        start = self.check(loop.start)
        over = self.bindings.resolve(self._types[id(loop.over)])
        first: CelType
        if over.kind == LIST_KIND:
            first, second = (INT, over.params[0]) if len(loop.variables) == 2 else (over.params[0], DYN)
        elif over.kind == MAP_KIND:
            first, second = over.params
        elif over.is_dyn or over.kind in (ERROR_KIND, PARAM_KIND):
            self.bindings.fits(DYN, over)
            first = second = DYN
        else:
            fault = f"expression of type '{over}' cannot be range of a comprehension"
            self._report(loop.over, f"{fault} (must be list, map, or dynamic)")
            first = second = ERROR
        self._scopes.append({loop.accumulator: start})
        self._scopes.append(dict(zip(loop.variables, (first, second), strict=False)))
        self._want(loop.condition, self.check(loop.condition), BOOL)
        self._want(loop.step, self.check(loop.step), start)
        self._scopes.pop()
        result = self.check(loop.result)
        self._scopes.pop()
        return self.bindings.resolve(result)

    def _want(self, expression: Expression, of: CelType, wanted: CelType) -> None:
        if not self.bindings.fits(wanted, of):
            self._report(expression, f"expected type '{wanted}' but found '{of}'")
