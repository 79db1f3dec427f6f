"""``dataclass`` for slotted values whose methods are compiled at the first call.

The standard decorator compiles up to eleven methods of each class at import, up to a millisecond in Python
3.11, and three more if there is no docstring. A command imports about a hundred such classes and uses a third
of them. Fields, ``replace`` and matching are the standard library's.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, fields
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:  # type checkers see the standard decorator
    from dataclasses import dataclass as dataclass
else:

    def dataclass(*, frozen=False, slots=False, kw_only=False, eq=True, order=False):
        """Makes a dataclass like the standard decorator; a frozen one cannot inherit from another
        dataclass."""
        if not slots:
            return dataclasses.dataclass(frozen=frozen, kw_only=kw_only, eq=eq, order=order)
        names = ["__init__", "__repr__", *(["__eq__"] if eq else []), *(_ORDER.values() if order else [])]

        def decorated(cls):
            own = set(vars(cls))
            if not cls.__doc__:
                cls.__doc__ = cls.__name__  # the standard decorator writes a signature
            made = dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=kw_only, slots=True)(cls)
            has_own_hash = "__hash__" in own and not (vars(cls)["__hash__"] is None and "__eq__" in own)
            hashed = ["__hash__"] if eq and frozen and not has_own_hash else []
            for name in [*(each for each in names if each not in own), *hashed]:
                setattr(made, name, _compiled_at_first_call(made, name, _TEXTS[name]))
            if frozen:
                assert not any(hasattr(base, "__dataclass_fields__") for base in cls.__bases__), cls
                made.__dataclass_params__.frozen = True
                for name, function in _FROZEN.items():
                    setattr(made, name, function)
            elif eq and not has_own_hash:
                made.__hash__ = None
            return made

        return decorated


def _compiled_at_first_call(
    made: type, name: str, text_of: Callable[[tuple[Field[Any], ...], dict[str, Any]], str]
) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        names: dict[str, Any] = {"_set": object.__setattr__, "_class": made}
        exec(text_of(fields(made), names), names)  # noqa: S102  (as the standard library does)
        function = names[name]
        function.__qualname__ = f"{made.__qualname__}.{name}"
        setattr(made, name, function)
        return function(self, *args, **kwargs)

    return method


def _init(found: tuple[Field[Any], ...], names: dict[str, Any]) -> str:
    is_frozen = names["_class"].__dataclass_params__.frozen
    places: list[str] = []
    keywords: list[str] = []
    body: list[str] = []
    for each in found:
        value = each.name
        if each.default_factory is not MISSING:
            names[f"_made_{each.name}"] = each.default_factory
            names["_MISSING"] = MISSING
            made = f"_made_{each.name}()"
            value = f"{made} if {each.name} is _MISSING else {each.name}" if each.init else made
        elif not each.init and each.default is MISSING:
            continue  # __post_init__ sets it
        names[f"_default_{each.name}"] = each.default
        if each.init:
            default = "_MISSING" if each.default_factory is not MISSING else f"_default_{each.name}"
            is_optional = each.default_factory is not MISSING or each.default is not MISSING
            parameter = f"{each.name}={default}" if is_optional else each.name
            (keywords if each.kw_only else places).append(parameter)
        elif each.default_factory is MISSING:
            value = f"_default_{each.name}"
        body.append(f" _set(self, {each.name!r}, {value})" if is_frozen else f" self.{each.name} = {value}")
    parameters = ", ".join(["self", *places, *(["*", *keywords] if keywords else [])])
    body.append(" self.__post_init__()" if hasattr(names["_class"], "__post_init__") else " pass")
    return "\n".join([f"def __init__({parameters}):", *body])


def _repr(found: tuple[Field[Any], ...], names: dict[str, Any]) -> str:
    shown = ", ".join(f"{each.name}={{self.{each.name}!r}}" for each in found if each.repr)
    return f'def __repr__(self):\n return f"{{self.__class__.__qualname__}}({shown})"'


def _eq(found: tuple[Field[Any], ...], names: dict[str, Any]) -> str:
    compared = [each.name for each in found if each.compare]
    mine, others = (_tuple(of, compared) for of in ("self", "other"))
    same = f" if other.__class__ is self.__class__:\n  return {mine} == {others}"
    return f"def __eq__(self, other):\n{same}\n return NotImplemented"


def _order(sign: str) -> Callable[[tuple[Field[Any], ...], dict[str, Any]], str]:
    return lambda found, names: _eq(found, names).replace("__eq__", _ORDER[sign]).replace(" == ", f" {sign} ")


def _hash(found: tuple[Field[Any], ...], names: dict[str, Any]) -> str:
    hashed = [each.name for each in found if (each.compare if each.hash is None else each.hash)]
    return f"def __hash__(self):\n return hash({_tuple('self', hashed)})"


def _tuple(of: str, found: list[str]) -> str:
    return f"({''.join(f'{of}.{name},' for name in found)})"


def _refuse_setting(self: Any, name: str, value: Any) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deleting(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, each.name) for each in fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for each, value in zip(fields(self), state, strict=False):
        object.__setattr__(self, each.name, value)


_ORDER: Final = {"<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__"}
_TEXTS: Final = {
    "__init__": _init,
    "__repr__": _repr,
    "__eq__": _eq,
    "__hash__": _hash,
    **{name: _order(sign) for sign, name in _ORDER.items()},
}
_FROZEN: Final = {
    "__setattr__": _refuse_setting,
    "__delattr__": _refuse_deleting,
    "__getstate__": _state,
    "__setstate__": _set_state,
}
