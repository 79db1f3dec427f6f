"""The most that an expression may cost, before there is a value (cel-go, checker/cost.go).

Apiservers decide by it which rules a definition can have, so it is theirs to the unit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.validation.rules.cel.checking.checker import CheckedExpression
from specmux_tools.validation.rules.cel.checking.types import (
    LIST_KIND,
    MAP_KIND,
    PARAM_KIND,
    SCALAR_KINDS,
    STRUCT_KIND,
    CelType,
)
from specmux_tools.validation.rules.cel.costs.call_estimates import (
    EMPTY_UNION,
    NOTHING,
    ONE,
    UNKNOWN,
    CallEstimate,
    Range,
    SizedPart,
    call_estimate,
    exact_range,
)
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
from specmux_tools.validation.rules.cel.values.values import MISSING

PathSize: TypeAlias = Callable[[tuple[str, ...]], Range | None]
"""The size of what a path of names from a variable leads to: fields, ``@items``, ``@keys``, ``@values``."""


class _Path:
    """Names, as a slice of Go has them: with room left, what is appended twice is the last of both, which is
    how upstream comes to its estimates of loops with an index."""

    __slots__ = ("_length", "_room")

    def __init__(self, room: list[str], length: int) -> None:
        self._room = room
        self._length = length

    def plus(self, name: str) -> _Path:
        room = self._room
        if self._length == len(room):
            room = [*room, *[""] * max(len(room), 1)]
        room[self._length] = name
        return _Path(room, self._length + 1)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._room[: self._length])


_NOWHERE: Final = _Path([], 0)


@dataclass(frozen=True, slots=True)
class _Entries:
    """Sizes of keys and values of a list or map that an expression made."""

    is_list: bool
    key: Range
    value: Range

    def union(self, other: _Entries) -> _Entries:
        return _Entries(self.is_list, self.key.union(other.key), self.value.union(other.value))


@dataclass(frozen=True, slots=True)
class _Local:
    path: _Path
    size: Range | None = None
    entries: _Entries | None = None


def estimate(checked: CheckedExpression, path_size: PathSize) -> Range:
    return _Estimate(checked, path_size).cost(checked.root)


class _Estimate:
    def __init__(self, checked: CheckedExpression, path_size: PathSize) -> None:
        self._checked = checked
        self._path_size = path_size
        self._paths: dict[int, _Path] = {}
        self._locals: dict[str, list[_Local]] = {}
        self._sizes: dict[int, Range] = {}
        self._entries: dict[int, _Entries] = {}

    def cost(self, expression: Expression) -> Range:
        match expression:
            case Literal():
                return NOTHING
            case Identifier():
                return self._name(expression, expression.name)
            case Select():
                name = self._checked.names.get(id(expression))
                return self._select(expression) if name is None else self._name(expression, name)
            case Call():
                return self._call(expression)
            case ListLiteral():
                return self._list(expression)
            case MapLiteral():
                return self._map(expression)
            case StructLiteral(entries=entries):
                return _sum([exact_range(40), *(self.cost(each.value) for each in entries)])
            case Comprehension():
                return self._bind(expression) if expression.loop == "bind" else self._loop(expression)

    def _name(self, expression: Expression, name: str) -> Range:
        local = self._local(name)
        here = _NOWHERE.plus(name.removeprefix("."))
        self._paths[id(expression)] = here if local is None else local.path
        return ONE

    def _local(self, name: str) -> _Local | None:
        found = self._locals.get(name)
        return found[-1] if found else None

    def _select(self, expression: Select) -> Range:
        cost = self.cost(expression.operand)
        if expression.is_test:
            return cost
        if self._type(expression.operand).kind in (MAP_KIND, STRUCT_KIND, PARAM_KIND):
            cost = cost.plus(ONE)
        self._paths[id(expression)] = self._path(expression.operand).plus(expression.name)
        return cost

    def _call(self, call: Call) -> Range:
        if call.function == "dyn":
            cost = ONE.plus(self.cost(call.arguments[0]))
            self._copy(call, call.arguments[0])
            return cost
        costs = [self.cost(each) for each in call.arguments]
        parts = [self._part(each) for each in call.arguments]
        overloads = [each.id for each in self._checked.overloads.get(id(call), ())]
        if call.function == "_?._":
            overloads = ["select_optional_field"]
        if not overloads:
            return NOTHING
        total = NOTHING
        if call.target is not None:
            total = self.cost(call.target)
            parts.insert(0, self._part(call.target))
        cost, size = EMPTY_UNION, None
        for overload in overloads:
            found = self._overload(call, overload, parts, costs)
            cost = cost.union(found.cost)
            if found.size is not None:
                size = found.size if size is None else size.union(found.size)
            if overload in ("index_list", "index_map"):
                entries = self._entries_of(call.arguments[0])
                size = None if entries is None else entries.value
                part = "@items" if overload == "index_list" else "@values"
                self._paths[id(call)] = self._path(call.arguments[0]).plus(part)
            if size is None:
                size = self._size(call)
        if size is not None:
            self._sizes[id(call)] = size
        return total.plus(cost)

    def _overload(
        self, call: Call, overload: str, parts: Sequence[SizedPart], costs: Sequence[Range]
    ) -> CallEstimate:
        if overload in ("logical_or", "logical_and"):
            return CallEstimate(Range(costs[0].least, _sum(costs).most))
        if overload == "conditional":
            return self._conditional(call, parts, costs)
        found = call_estimate(
            call.function,
            overload,
            parts,
            is_member=call.target is not None,
            bounds_equality=self._checked.bounds_equality,
        )
        if overload in ("add_list", "add_string", "add_bytes"):
            entries = [self._entries_of(each) for each in call.arguments]
            if entries[0] is not None and entries[1] is not None:
                self._entries[id(call)] = entries[0].union(entries[1])
        return CallEstimate(found.cost.plus(_sum(costs)), found.size)

    def _conditional(self, call: Call, parts: Sequence[SizedPart], costs: Sequence[Range]) -> CallEstimate:
        first, second = (self._entries_of(each) for each in call.arguments[1:])
        if first is not None and second is not None:
            self._entries[id(call)] = first.union(second)
        cost = costs[0].plus(costs[1].union(costs[2]))
        return CallEstimate(cost, parts[1].sized.union(parts[2].sized))

    def _list(self, expression: ListLiteral) -> Range:
        cost, size = exact_range(10), EMPTY_UNION if expression.items else NOTHING
        for item in expression.items:
            cost = cost.plus(self.cost(item))
            size = size.union(self._size(item) or UNKNOWN)
        self._entries[id(expression)] = _Entries(True, ONE, size)
        return cost

    def _map(self, expression: MapLiteral) -> Range:
        cost = exact_range(30)
        keys = values = EMPTY_UNION if expression.entries else NOTHING
        for entry in expression.entries:
            cost = cost.plus(self.cost(entry.key)).plus(self.cost(entry.value))
            keys = keys.union(self._size(entry.key) or UNKNOWN)
            values = values.union(self._size(entry.value) or UNKNOWN)
        self._entries[id(expression)] = _Entries(False, keys, values)
        return cost

    def _bind(self, loop: Comprehension) -> Range:
        cost = self.cost(loop.over).plus(self.cost(loop.start))
        self._push(loop.accumulator, self._of(loop.start))
        cost = cost.plus(self.cost(loop.result))
        self._locals[loop.accumulator].pop()
        self._copy(loop, loop.result)
        return cost

    def _loop(self, loop: Comprehension) -> Range:
        cost = self.cost(loop.over).plus(self.cost(loop.start))
        self._push(loop.accumulator, self._of(loop.start))
        for name, local in zip(loop.variables, self._loop_locals(loop), strict=True):
            self._push(name, local)
        turn = self.cost(loop.condition).plus(self.cost(loop.step))
        for name in loop.variables:
            self._locals[name].pop()
        cost = cost.plus(self.cost(loop.result))
        self._locals[loop.accumulator].pop()
        count = self._size(loop.over) or UNKNOWN
        if isinstance(loop.start, Literal):
            self._sizes[id(loop)] = self._size(loop.start) or UNKNOWN
        elif isinstance(loop.start, ListLiteral | MapLiteral):
            self._sizes[id(loop)] = count
            entries = self._entries_of(loop.step)
            if entries is not None:
                self._entries[id(loop)] = entries
        return cost.plus(count.times(turn))

    def _loop_locals(self, loop: Comprehension) -> list[_Local]:
        entries, path = self._entries_of(loop.over), self._path(loop.over)
        is_list = self._type(loop.over).kind == LIST_KIND if entries is None else entries.is_list
        sizes = (None, None) if entries is None else (entries.key, entries.value)
        keys, values = ("@indices", "@items") if is_list else ("@keys", "@values")
        if len(loop.variables) == 2:
            key = _Local(path.plus(keys), sizes[0])
            return [key, _Local(path.plus(values), sizes[1])]
        return [_Local(path.plus(values), sizes[1]) if is_list else _Local(path.plus(keys), sizes[0])]

    def _push(self, name: str, local: _Local) -> None:
        self._locals.setdefault(name, []).append(local)

    def _of(self, expression: Expression) -> _Local:
        return _Local(self._path(expression), self._size(expression), self._entries_of(expression))

    def _type(self, expression: Expression) -> CelType:
        return self._checked.type(expression)

    def _path(self, expression: Expression) -> _Path:
        if isinstance(expression, Identifier):
            local = self._local(expression.name)
            if local is not None:
                return local.path
        return self._paths.get(id(expression), _NOWHERE)

    def _part(self, expression: Expression) -> SizedPart:
        of = self._type(expression)
        literal = expression.value if isinstance(expression, Literal) else MISSING
        path = self._path(expression).names
        item_size = self._path_size((*path, "@items")) if of.params and path else None
        return SizedPart(of, self._size(expression), item_size, literal)

    def _size(self, expression: Expression) -> Range | None:
        found = self._sizes.get(id(expression))
        if found is None:
            found = _literal_size(expression)
        if found is not None:
            return found
        path = self._path(expression).names
        found = self._path_size(path) if path else None
        if found is not None:
            self._sizes[id(expression)] = found
            return found
        if _is_scalar(self._type(expression)):
            return ONE
        local = self._local(expression.name) if isinstance(expression, Identifier) else None
        return None if local is None else local.size

    def _entries_of(self, expression: Expression) -> _Entries | None:
        found = self._entries.get(id(expression))
        if found is None and isinstance(expression, Identifier):
            local = self._local(expression.name)
            return None if local is None else local.entries
        return found

    def _copy(self, to: Expression, source: Expression) -> None:
        size, entries = self._size(source), self._entries_of(source)
        if size is not None:
            self._sizes[id(to)] = size
        if entries is not None:
            self._entries[id(to)] = entries


def _sum(costs: Sequence[Range]) -> Range:
    total = NOTHING
    for cost in costs:
        total = total.plus(cost)
    return total


def _literal_size(expression: Expression) -> Range | None:
    match expression:
        case Literal(value=value):
            return exact_range(len(value)) if isinstance(value, str | bytes) else ONE
        case ListLiteral(items=items):
            return exact_range(len(items))
        case MapLiteral(entries=entries):
            return exact_range(len(entries))
    return None


def _is_scalar(of: CelType) -> bool:
    return of.kind in SCALAR_KINDS or (of.is_optional and _is_scalar(of.params[0]))
