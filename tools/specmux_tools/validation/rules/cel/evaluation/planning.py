"""A checked expression compiled to closures (cel-go, interpreter/planner.go).

A program keeps no state between runs. What is constant is computed here, as apiservers do it, so a conversion
that cannot be is an error of the expression.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from specmux_converters.go.regexp import pattern_fault
from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.validation.rules.cel.checking.checker import CheckedExpression
from specmux_tools.validation.rules.cel.checking.types import ANY, BOOL, BYTES, INT, STRING, TYPE_KIND
from specmux_tools.validation.rules.cel.costs.metering import (
    NEEDS_RESULT,
    NO_LIST,
    UNMETERED,
    call_cost,
    equality_cost,
)
from specmux_tools.validation.rules.cel.evaluation.closures import (
    Frame,
    Run,
    apply_function,
    bind_overloads,
    conditional,
    drop_absent,
    evaluate_both,
    logical,
    map_maker,
    message_maker,
    or_value,
    panic_on_error,
    variable,
)
from specmux_tools.validation.rules.cel.evaluation.folds import LOOPS, filler, pairs, singles
from specmux_tools.validation.rules.cel.evaluation.qualifiers import Qualifier, chain, key_of
from specmux_tools.validation.rules.cel.parsing.macros import SORTED
from specmux_tools.validation.rules.cel.parsing.syntax import (
    Call,
    Comprehension,
    Expression,
    Identifier,
    ListLiteral,
    Literal,
    MapLiteral,
    Select,
    StructLiteral,
)
from specmux_tools.validation.rules.cel.values.values import (
    MISSING,
    CelError,
    CelPanic,
    CostExceeded,
    Optional,
    TypeValue,
    compare,
    equal,
    is_ordered,
)

_CONVERSIONS: Final = frozenset(
    ("bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint")
)
_PATTERNS: Final = frozenset(("matches", "find", "findAll"))
_SAME: Final = frozenset((BOOL, BYTES, INT, STRING))
"""Types whose values are Python's: equality and order are, too."""
_ORDERS: Final[dict[str, Callable[[int], bool]]] = {
    "_<_": lambda order: order < 0,
    "_<=_": lambda order: order <= 0,
    "_>_": lambda order: order > 0,
    "_>=_": lambda order: order >= 0,
}


@dataclass(frozen=True, slots=True)
class Program:
    run: Run
    slots: int
    names: dict[str, int]

    def evaluate(self, variables: dict[str, Any], limit: int) -> tuple[Any, int]:
        """The value, and what it cost. Raises CelError, which has the cost too, and CostExceeded."""
        frame = Frame(self.slots, limit)
        for name, value in variables.items():
            slot = self.names.get(name)
            if slot is not None:
                frame.values[slot] = value
        try:
            found = self.run(frame)
        except (CelError, CelPanic) as error:
            if frame.cost > limit:
                raise CostExceeded from error
            raised = error if isinstance(error, CelError) else CelError(str(error))
            raised.cost = frame.cost
            raise raised from None
        if frame.cost > limit:
            raise CostExceeded
        return found, frame.cost


@dataclass(frozen=True, slots=True)
class _Part:
    run: Run
    constant: Any = MISSING


def plan(checked: CheckedExpression, *, opens_typed: bool = True) -> Program:
    """Raises CelError for a constant that cannot be."""
    planner = _Planner(checked, opens_typed)
    root = planner.part(checked.root)
    return Program(root.run, planner.slots, planner.names)


def _on_go_string(apply: Callable[..., Any], text: Any, *others: Any) -> Any:
    """A constant pattern is applied to whatever Go holds as a string (interpreter/optimizations.go)."""
    if type(text) is Optional and text.value is not MISSING:
        return _on_go_string(apply, text.value, *others)
    return apply(text.name if type(text) is TypeValue else text, *others)


def _constant(value: Any) -> _Part:
    return _Part(lambda _: value, value)


class _Planner:
    def __init__(self, checked: CheckedExpression, opens_typed: bool) -> None:
        self._checked = checked
        self._opens_typed = opens_typed
        self.slots = 0
        self.names: dict[str, int] = {}
        self._scopes: list[dict[str, int]] = []
        self._panics = 0
        """Parts that can end the evaluation."""

    def part(self, expression: Expression) -> _Part:
        match expression:
            case Literal(value=value):
                return _constant(value)
            case Identifier():
                return self._name(expression, expression.name)
            case Select():
                name = self._checked.names.get(id(expression))
                return self._attribute(expression, ()) if name is None else self._name(expression, name)
            case Call():
                return self._call(expression)
            case ListLiteral():
                return self._list(expression)
            case MapLiteral():
                return self._map(expression)
            case Comprehension():
                return self._comprehension(expression)
            case StructLiteral():
                return self._structure(expression)

    def _run(self, expression: Expression) -> Run:
        return self.part(expression).run

    def _slot(self) -> int:
        self.slots += 1
        return self.slots - 1

    def _name(self, expression: Expression, name: str) -> _Part:
        slot = self._loop_slot(name)
        name = name.removeprefix(".")  # with a dot it is no variable of a loop
        if slot is None:
            of = self._checked.type(expression)
            if of.kind == TYPE_KIND and name not in self.names and of.params:
                if name != of.params[0].name or of.params[0] == ANY:
                    raise CelError(f"reference to undefined type: {name}")
                return _constant(TypeValue(name))
            if name in self._checked.constants:
                return _constant(self._checked.constants[name])
            slot = self.names.get(name)
            if slot is None:
                slot = self.names[name] = self._slot()
        return _Part(variable(slot))

    def _loop_slot(self, name: str) -> int | None:
        return next((scope[name] for scope in reversed(self._scopes) if name in scope), None)

    def _attribute(self, expression: Expression, rest: tuple[Qualifier, ...]) -> _Part:
        """A chain of selections, read from its end."""
        match expression:
            case Select() if self._checked.names.get(id(expression)) is None:
                qualifier = Qualifier(expression.name, is_test=expression.is_test)
                return self._attribute(expression.operand, (qualifier, *rest))
            case Call(function="_[_]" | "_[?_]" | "_?._", arguments=[operand, index]):
                key = self.part(index)
                qualifier = Qualifier(
                    None if key.constant is MISSING else key_of(key.constant),
                    self._root(index) if key.constant is MISSING else None,
                    is_optional=expression.function != "_[_]",
                )
                return self._attribute(operand, (qualifier, *rest))
            case Call(function="_?_:_", arguments=[condition, first, second]) if rest:
                chosen = self._attribute(first, rest).run, self._attribute(second, rest).run
                return _Part(conditional(self._run(condition), *chosen))
        root = self._root(expression)
        return _Part(chain(root, rest, self._opens_typed)) if rest else self.part(expression)

    def _root(self, expression: Expression) -> Run:
        """Without the cost of a name, which its chain pays."""
        if isinstance(expression, Identifier):
            part = self._name(expression, expression.name)
            if part.constant is MISSING:
                slot = self._loop_slot(expression.name)
                wanted = self.names[expression.name.removeprefix(".")] if slot is None else slot
                return lambda frame: frame.values[wanted]
        return self._run(expression)

    def _call(self, call: Call) -> _Part:
        match call.function:
            case "_&&_" | "_||_":
                return _Part(logical([self._run(each) for each in call.arguments], call.function == "_||_"))
            case "_?_:_":
                return _Part(conditional(*(self._run(each) for each in call.arguments)))
            case "_[_]" | "_[?_]" | "_?._":
                return self._attribute(call, ())
            case "_==_" | "_!=_":
                return self._equality(call)
            case "_<_" | "_<=_" | "_>_" | "_>=_":
                return self._order(call)
            case "@in":
                return self._find_contained(call)
            case "or" | "orValue" if call.target is not None and self._is_optional(call):
                first, second = self._run(call.target), self._run(call.arguments[0])
                return _Part(or_value(first, second, call.function == "orValue"))
        return self._function(call)

    def _is_optional(self, call: Call) -> bool:
        return any(each.id.startswith("optional_or") for each in self._checked.overloads[id(call)])

    def _function(self, call: Call) -> _Part:
        overloads = self._checked.overloads[id(call)]
        arguments = [*([call.target] if call.target is not None else ()), *call.arguments]
        panics = self._panics
        parts = [self.part(each) for each in arguments]
        constants = [each.constant for each in parts]
        is_precompiled = call.function in _PATTERNS and isinstance(constants[1], str)
        apply = bind_overloads(call.function, overloads, is_precompiled=is_precompiled)
        if is_precompiled:
            fault = pattern_fault(constants[1])
            if fault is not None:
                raise CelError(fault)
            apply = partial(_on_go_string, apply)
        if call.function in _CONVERSIONS and len(parts) == 1 and parts[0].constant is not MISSING:
            return _constant(apply(parts[0].constant))
        overload = overloads[0].id if len(overloads) == 1 else ""
        runs = [each.run for each in parts]
        if overload in UNMETERED:
            index, wanted = UNMETERED[overload]
            runs[index] = panic_on_error(runs[index], wanted)
            self._panics += 1
        if len(runs) == 2 and self._panics > panics:
            runs[0] = evaluate_both(*runs)
        cost = call_cost(call.function, overload)
        return _Part(apply_function(apply, runs, cost, call.function in NEEDS_RESULT))

    def _operands(self, left: Expression, right: Expression) -> tuple[Run, Run]:
        panics = self._panics
        first, second = self._run(left), self._run(right)
        return (evaluate_both(first, second) if self._panics > panics else first), second

    def _equality(self, call: Call) -> _Part:
        left, right = call.arguments
        first, second = self._operands(left, right)
        is_equal = call.function == "_==_"
        of = self._checked.type(left)
        if of in _SAME and of == self._checked.type(right):
            if of in (INT, BOOL):

                def plain(frame: Frame) -> bool:
                    found = (first(frame) == second(frame)) is is_equal
                    frame.cost += 1
                    return found

                return _Part(plain)

            def texts(frame: Frame) -> bool:
                one, other = first(frame), second(frame)
                frame.pay(equality_cost(one, other))
                return (one == other) is is_equal

            return _Part(texts)

        def general(frame: Frame) -> bool:
            one, other = first(frame), second(frame)
            frame.pay(equality_cost(one, other))
            try:
                return equal(one, other) is is_equal
            except CelError:
                # What cannot be compared is an error of ==, and not equal to !=.
                if is_equal:
                    raise
                return True

        return _Part(general)

    def _order(self, call: Call) -> _Part:
        first, second = self._operands(*call.arguments)
        holds = _ORDERS[call.function]
        overloads = self._checked.overloads[id(call)]
        cost = call_cost(call.function, overloads[0].id if len(overloads) == 1 else "")

        def run(frame: Frame) -> bool:
            one, other = first(frame), second(frame)
            try:
                found = holds(compare(one, other))
            except CelError as error:
                if is_ordered(one):
                    raise
                raise CelError(f"no such overload: {call.function}") from error
            if cost is None:
                frame.cost += 1
            else:
                frame.pay(cost((one, other), found))
            return found

        return _Part(run)

    def _find_contained(self, call: Call) -> _Part:
        panics = self._panics
        item, over = self._run(call.arguments[0]), self.part(call.arguments[1])
        item = evaluate_both(item, over.run) if self._panics > panics else item
        overloads = self._checked.overloads[id(call)]
        cost = call_cost("@in", overloads[0].id if len(overloads) == 1 else "")
        apply = bind_overloads("@in", overloads)
        members = over.constant
        if type(members) is not tuple:
            return _Part(apply_function(apply, [item, over.run], cost))
        if not members:  # what is looked for is not even evaluated
            return _constant(False)
        known = frozenset(members) if all(type(each) is str for each in members) else None

        def run(frame: Frame) -> bool:
            """A list that is written out costs nothing."""
            found = item(frame)
            if known is not None and type(found) is str:
                return found in known
            return bool(apply(found, members))

        return _Part(run)

    def _list(self, expression: ListLiteral) -> _Part:
        parts = [self.part(each) for each in expression.items]
        if not expression.optional and all(each.constant is not MISSING for each in parts):
            return _constant(tuple(each.constant for each in parts))
        runs = [each.run for each in parts]
        optional = expression.optional

        def run(frame: Frame) -> Any:
            found = tuple([each(frame) for each in runs])
            frame.pay(10)
            return drop_absent(found, optional) if optional else found

        return _Part(run)

    def _map(self, expression: MapLiteral) -> _Part:
        entries = [(self.part(each.key), self.part(each.value), each) for each in expression.entries]
        is_constant = all(
            key.constant is not MISSING and value.constant is not MISSING and not entry.is_optional
            for key, value, entry in entries
        )
        run = map_maker([(key.run, value.run, entry.is_optional) for key, value, entry in entries])
        return _constant(run(Frame(0, 1_000_000))) if is_constant else _Part(run)

    def _structure(self, expression: StructLiteral) -> _Part:
        message = self._checked.messages[id(expression)]
        runs = [
            (each.key.value, self._run(each.value), each.is_optional)
            for each in expression.entries
            if isinstance(each.key, Literal)
        ]
        return _Part(message_maker(message.make, runs))

    def _comprehension(self, loop: Comprehension) -> _Part:
        if loop.loop == "bind":
            return self._bind(loop)
        over = self._run(loop.over)
        slots = [self._slot() for _ in loop.variables]
        self._scopes.append(dict(zip(loop.variables, slots, strict=True)))
        body = [self._run(each) for each in loop.body]
        if loop.loop == "filter":
            body = body[:1]
        self._scopes.pop()
        items = pairs if len(slots) == 2 else singles
        return _Part(LOOPS[loop.loop](over, filler(slots), items, body))

    def _bind(self, loop: Comprehension) -> _Part:
        value = self._run(loop.start)
        if loop.accumulator == SORTED:  # an error there is one of the keys, too
            value = panic_on_error(value, NO_LIST)
        slot = self._slot()
        self._scopes.append({loop.accumulator: slot})
        result = self._run(loop.result)
        self._scopes.pop()

        def run(frame: Frame) -> Any:
            frame.values[slot] = value(frame)
            return result(frame)

        return _Part(run)
