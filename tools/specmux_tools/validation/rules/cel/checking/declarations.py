"""The declarations that an expression may use: functions by overload, macros, names of types."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import Any, Final

from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.validation.rules.cel.checking.types import BOOL, INT, PARAM_KIND, CelType
from specmux_tools.validation.rules.cel.parsing.macros import Macro

Apply = Callable[..., Any]


@dataclass(frozen=True, slots=True, eq=False)
class Overload:
    """``apply`` is None for what the planner writes itself, such as ``&&``."""

    id: str
    arguments: tuple[CelType, ...]
    result: CelType
    apply: Apply | None = None
    is_member: bool = False

    @property
    def parameters(self) -> list[str]:
        """The names of the types that a call decides."""
        return sorted({name for each in (*self.arguments, self.result) for name in _parameters(each)})


def _parameters(of: CelType) -> set[str]:
    if of.kind == PARAM_KIND:
        return {of.name}
    return {name for each in of.params for name in _parameters(each)}


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """A literal with fields: its type, fields, and the value that given ones make."""

    type: CelType
    fields: Mapping[str, CelType]
    make: Callable[[Mapping[str, Any]], Any]


@dataclass(frozen=True, slots=True)
class CelLibrary:
    functions: Mapping[str, tuple[Overload, ...]] = field(default_factory=dict)
    macros: Mapping[tuple[str, int, bool], Macro] = field(default_factory=dict)
    """Macros by name, count of arguments and whether it is a member."""
    types: Mapping[str, CelType] = field(default_factory=dict)
    """Types that an expression can name."""
    messages: Mapping[str, Message] = field(default_factory=dict)
    constants: Mapping[str, int] = field(default_factory=dict)


member: Final = partial(Overload, is_member=True)


def orders(prefix: str, of: CelType, compare: Callable[[Any, Any], int]) -> dict[str, tuple[Overload, ...]]:
    """The functions by which values of a library are ordered."""
    both = (of, of)
    return {
        "isGreaterThan": (
            member(f"{prefix}_is_greater_than", both, BOOL, lambda one, other: compare(one, other) > 0),
        ),
        "isLessThan": (
            member(f"{prefix}_is_less_than", both, BOOL, lambda one, other: compare(one, other) < 0),
        ),
        "compareTo": (member(f"{prefix}_compare_to", both, INT, compare),),
    }


class Environment:
    """Libraries as one. Later ones add overloads to functions, or replace those of the same id."""

    def __init__(
        self,
        libraries: Sequence[CelLibrary],
        *,
        opens_typed: bool = True,
        selects_keywords: bool = True,
        bounds_equality: bool = True,
    ) -> None:
        functions: dict[str, tuple[Overload, ...]] = {}
        self.macros = {key: each for library in libraries for key, each in library.macros.items()}
        self.types = {name: each for library in libraries for name, each in library.types.items()}
        self.messages = {name: each for library in libraries for name, each in library.messages.items()}
        self.constants = {name: each for library in libraries for name, each in library.constants.items()}
        self.opens_typed = opens_typed
        """A field of an optional is one of a typed value, not of what the document has."""
        self.selects_keywords = selects_keywords
        """A field named like a word of CEL is one of that name, too."""
        self.bounds_equality = bounds_equality
        """Whether the cost of comparing values of libraries is known."""
        for library in libraries:
            for name, overloads in library.functions.items():
                new = {each.id for each in overloads}
                kept = [each for each in functions.get(name, ()) if each.id not in new]
                functions[name] = (*kept, *overloads)
        self.functions: Mapping[str, tuple[Overload, ...]] = functions
