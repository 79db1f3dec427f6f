"""``dataclass`` for slotted values whose fields are examined, and whose methods are compiled, when needed.

The standard decorator compiles up to eleven methods of each class at import, up to a millisecond in Python
3.11, and three more if there is no docstring; examining the fields costs half as much again. A command
imports about a hundred such classes, uses half of them, and most of those once or twice. Fields, ``replace``
and matching are the standard library's. Pseudo-fields are limited to ``ClassVar``.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, FrozenInstanceError, field, fields
from typing import TYPE_CHECKING, Any, Final

FEW: Final = 8
"""Values of a class that are made before its ``__init__`` is compiled, which costs as much as 30 of them."""

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
            own = dict(vars(cls))
            has_own_hash = "__hash__" in own and not (own["__hash__"] is None and "__eq__" in own)
            annotated = [name for name, type_ in cls.__annotations__.items() if "ClassVar" not in str(type_)]
            form = _Form({name: own.pop(name, MISSING) for name in annotated}, kw_only, frozen)
            inherited = {each for base in cls.__mro__[1:] for each in vars(base).get("__slots__", ())}
            made_own = {
                **{key: value for key, value in own.items() if key not in _OF_UNSLOTTED},
                # The standard decorator writes a signature where there is no docstring.
                "__doc__": cls.__doc__ or cls.__name__,
                "__qualname__": cls.__qualname__,
                "__slots__": tuple(name for name in annotated if name not in inherited),
                "__form__": form,
                **_STANDARD,
            }
            hashed = ["__hash__"] if eq and frozen and not has_own_hash else []
            for name in [*(each for each in names if each not in own), *hashed]:
                made_own[name] = _compile_when_needed(form, name)
            if frozen:
                assert not any(hasattr(base, "__dataclass_fields__") for base in cls.__bases__), cls
                made_own.update(_FROZEN)
            elif eq and not has_own_hash:
                made_own["__hash__"] = None
            if "__init__" not in own:
                made_own["__signature__"] = _SIGNATURE
            form.made = type(cls)(cls.__name__, cls.__bases__, made_own)
            return form.made

        return decorated


class _Form:
    """The fields of a class as they are written, and what is made of them when needed."""

    __slots__ = ("_fields", "_is_kw_only", "_written", "is_frozen", "made")

    made: type

    def __init__(self, written: dict[str, Any], is_kw_only: bool, is_frozen: bool) -> None:
        self._written = written
        self._is_kw_only = is_kw_only
        self.is_frozen = is_frozen
        self._fields: tuple[Field[Any], ...] | None = None

    @property
    def fields(self) -> tuple[Field[Any], ...]:
        """The fields, inherited ones first, without a check of their types."""
        if self._fields is None:
            found: dict[str, Field[Any]] = {}
            for base in reversed(self.made.__mro__):
                form = vars(base).get("__form__")
                found.update(vars(base).get("__dataclass_fields__", {}) if form is None else form.own())
            self._fields = tuple(found.values())
        return self._fields

    def own(self) -> Mapping[str, Field[Any]]:
        for name, default in self._written.items():
            each = default if isinstance(default, Field) else field(default=default)
            each.name = name
            each.kw_only = self._is_kw_only if each.kw_only is MISSING else each.kw_only
            self._written[name] = each
        return self._written

    def examine(self) -> None:
        """Replace the members of ``_STANDARD`` by those of the standard decorator."""
        made, annotations = self.made, self.made.__annotations__
        own = {"__module__": made.__module__, "__doc__": made.__doc__, "__annotations__": annotations}
        defaults = {name: value for name, value in self._written.items() if value is not MISSING}
        bare = type(made)(made.__name__, made.__bases__, {**own, **defaults})
        keywords = {"kw_only": self._is_kw_only}
        standard: Any = dataclasses.dataclass(init=False, repr=False, eq=False, **keywords)(bare)
        standard.__dataclass_params__.frozen = self.is_frozen
        for name in _STANDARD:
            setattr(made, name, vars(standard)[name])

    def compile_method(self, name: str) -> Callable[..., Any]:
        names: dict[str, Any] = {"_set": object.__setattr__, "_form": self}
        exec(_TEXTS[name](self.fields, names), names)  # noqa: S102  (as the standard library does)
        function: Callable[..., Any] = names[name]
        function.__qualname__ = f"{self.made.__qualname__}.{name}"
        setattr(self.made, name, function)
        return function


class _StandardMember:
    """A member of a class that is made when it is first asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> Any:
        made = next(base for base in owner.__mro__ if vars(base).get(self._name) is self)
        vars(made)["__form__"].examine()
        return getattr(owner, self._name)


class _Signature:
    """The parameters of ``__init__``, as ``inspect.signature`` and an editor show them."""

    def __get__(self, instance: object, owner: type) -> Any:
        import inspect

        made = next(base for base in owner.__mro__ if vars(base).get("__signature__") is self)
        if owner.__init__ is not made.__init__:  # type: ignore[misc]  # a subclass's own
            raise AttributeError("__signature__")
        kinds = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
        types = {
            name: annotation
            for base in reversed(made.__mro__)
            for name, annotation in vars(base).get("__annotations__", {}).items()
        }
        shown = []
        for each in vars(made)["__form__"].fields:
            default = inspect.Parameter.empty if each.default is MISSING else each.default
            default = default if each.default_factory is MISSING else _MADE
            kind = kinds[not each.kw_only]
            if each.init:
                shown.append(inspect.Parameter(each.name, kind, default=default, annotation=types[each.name]))
        shown.sort(key=lambda each: each.kind)
        return inspect.Signature(shown, return_annotation=None)


class _Made:
    def __repr__(self) -> str:
        return "<factory>"


_SIGNATURE: Final = _Signature()
_MADE: Final = _Made()


def _compile_when_needed(form: _Form, name: str) -> Callable[..., Any]:
    if name == "__init__":
        return _init_of(form)

    def method(self: Any, *args: Any) -> Any:
        return form.compile_method(name)(self, *args)

    return method


def _init_of(form: _Form) -> Callable[..., None]:
    made = 0

    def initialize(self: Any, *args: Any, **kwargs: Any) -> None:
        nonlocal made
        made += 1
        if made > FEW or not _is_set(self, form.fields, args, kwargs):
            form.compile_method("__init__")(self, *args, **kwargs)

    return initialize


def _is_set(value: Any, found: tuple[Field[Any], ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Set the fields as ``__init__`` does; False for arguments that it refuses."""
    places = [each.name for each in found if each.init and not each.kw_only]
    given = dict(zip(places, args, strict=False))
    if len(given) < len(args) or not given.keys().isdisjoint(kwargs):
        return False
    given.update(kwargs)
    for each in found:
        if each.init and each.name in given:
            one = given.pop(each.name)
        elif each.default is not MISSING:
            one = each.default
        elif each.default_factory is not MISSING:
            one = each.default_factory()
        elif each.init:
            return False
        else:
            continue  # __post_init__ sets it
        object.__setattr__(value, each.name, one)
    if given:
        return False
    if hasattr(value, "__post_init__"):
        value.__post_init__()
    return True


def _init(found: tuple[Field[Any], ...], names: dict[str, Any]) -> str:
    is_frozen = names["_form"].is_frozen
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
    body.append(" self.__post_init__()" if hasattr(names["_form"].made, "__post_init__") else " pass")
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
_OF_UNSLOTTED: Final = frozenset({"__dict__", "__weakref__"})
_STANDARD: Final = {
    name: _StandardMember(name)
    for name in (
        *("__dataclass_fields__", "__dataclass_params__", "__match_args__"),
        *(("__replace__",) if sys.version_info >= (3, 13) else ()),
    )
}
