"""Values of ``lazy.dataclasses`` are the standard library's, member for member."""

import copy
import dataclasses
import inspect
import operator
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field, fields, replace
from typing import Any

import pytest

from specmux_converters.lazy.dataclasses import FEW
from specmux_converters.lazy.dataclasses import dataclass as deferred

DECORATORS = (deferred, dataclasses.dataclass)


def plain(decorator: Any) -> Any:
    @decorator(frozen=True, slots=True)
    class Value:
        """A value."""

        a: int
        b: str = "b"
        c: list[int] = field(default_factory=list, hash=False)
        d: int = field(default=0, repr=False, compare=False)
        e: int = field(init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "e", self.a + 1)

    return Value


def keywords(decorator: Any) -> Any:
    @decorator(frozen=True, slots=True, kw_only=True)
    class Value:
        """A value."""

        a: int = 1
        b: str
        c: int = field(init=False, default=3)

        def __repr__(self) -> str:
            return f"<{self.b}>"

    return Value


def identity(decorator: Any) -> Any:
    @decorator(frozen=True, slots=True, eq=False)
    class Value:
        """A value."""

        a: int

    return Value


def empty(decorator: Any) -> Any:
    @decorator(frozen=True, slots=True)
    class Value:
        """A value."""

    return Value


def ordered(decorator: Any) -> Any:
    @decorator(frozen=True, slots=True, order=True)
    class Value:
        a: int
        b: str = "b"
        c: int = field(default=0, compare=False)

    return Value


def changing(decorator: Any) -> Any:
    @decorator(slots=True)
    class Base:
        """Its field is inherited."""

        a: int

    @decorator(slots=True)
    class Value(Base):
        """A value that changes."""

        b: list[int] = field(default_factory=list)
        c: int = field(default=3, init=False)
        d: int = field(init=False)

        def __post_init__(self) -> None:
            self.d = self.a

    return Value


def changing_identity(decorator: Any) -> Any:
    @decorator(slots=True, eq=False, kw_only=True)
    class Value:
        """A value that changes, known by itself."""

        a: int

    return Value


def hashed(decorator: Any) -> Any:
    @decorator(slots=True)
    class Value:
        """A value that changes, with a hash of its own."""

        a: int

        def __hash__(self) -> int:
            return 1

    return Value


CALLS: tuple[tuple[Callable[[Any], Any], tuple[Any, ...], dict[str, Any]], ...] = (
    (plain, (1,), {}),
    (plain, (1, "x", [2], 3), {}),
    (plain, (), {"b": "x", "a": 4}),
    (plain, (), {}),
    (plain, (1,), {"e": 1}),
    (keywords, (), {"b": "x"}),
    (keywords, (1,), {}),
    (identity, (1,), {}),
    (empty, (1,), {}),
    (ordered, (1,), {}),
    (ordered, (1, "c", 2), {}),
)
CHANGING: tuple[tuple[Callable[[Any], Any], dict[str, Any]], ...] = (
    (changing, {"a": 1}),
    (changing, {"a": 1, "b": [2]}),
    (changing, {}),
    (changing, {"a": 1, "c": 4}),
    (changing_identity, {"a": 1}),
    (hashed, {"a": 1}),
)


def shown(made: Any, values: tuple[Any, ...], named: dict[str, Any]) -> Any:
    try:
        one, other = made(*values, **named), made(*values, **named)
    except TypeError as error:
        return str(error)
    changed = replace(one, a=9) if values and hasattr(one, "a") else one
    with pytest.raises(FrozenInstanceError) as setting:
        one.a = 1
    with pytest.raises(FrozenInstanceError) as deleting:
        del one.a
    return (
        repr(one) if "__repr__" in vars(made) else None, one == other, one == changed, one != object(),
        hash(one) == hash(other), copy.deepcopy(one) == one,
        repr(changed), [each.name for each in fields(one)], made.__match_args__, made.__slots__,
        str(setting.value), str(deleting.value), dataclasses.asdict(one), one.__getstate__(),
    )  # fmt: skip


@pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call[0].__name__}-{call[1]}-{call[2]}")
def test_value_is_as_of_the_standard_decorator(call: Any) -> None:
    form, values, named = call
    ours, standard = (shown(form(decorator), values, named) for decorator in DECORATORS)
    assert ours == standard


@pytest.mark.parametrize("call", CHANGING, ids=lambda call: f"{call[0].__name__}-{call[1]}")
def test_changing_value_is_as_of_the_standard_decorator(call: Any) -> None:
    form, named = call

    def seen(made: Any) -> Any:
        try:
            one, other = made(**named), made(**named)
        except TypeError as error:
            return str(error)
        text, is_equal = repr(one), one == other
        one.a = 9
        return (
            text.partition("(")[2], is_equal, one == other, one.a, made.__hash__ is None, made.__slots__,
            made.__match_args__, repr(replace(other, a=2)), dataclasses.asdict(one), one == object(),
            pickle.loads(pickle.dumps(Changed(one.a))) == Changed(9),
        )  # fmt: skip

    ours, standard = (seen(form(decorator)) for decorator in DECORATORS)
    assert ours == standard


@pytest.mark.parametrize("sign", ["lt", "le", "gt", "ge"])
def test_values_are_ordered_as_those_of_the_standard_decorator(sign: str) -> None:
    values = [(1,), (1, "a"), (1, "c", 9), (2, "a"), (1, "b", 1)]
    compare = getattr(operator, sign)
    ours, standard = (
        [[compare(made(*one), made(*other)) for one in values] for other in values]
        for made in map(ordered, DECORATORS)
    )
    assert ours == standard
    with pytest.raises(TypeError):
        compare(ordered(deferred)(1), 1)


@deferred(slots=True)
class Changed:
    """A value that changes."""

    a: int


@deferred(frozen=True, slots=True)
class Packed:
    """A value that a job hands over."""

    a: int
    b: tuple[str, ...] = ()


def test_value_is_read_back_in_a_process_that_made_none() -> None:
    packed = pickle.dumps(Packed(1, ("b",)))
    assert pickle.loads(packed) == Packed(1, ("b",))
    assert dataclasses.is_dataclass(Packed)


def test_methods_are_compiled_once_a_class_is_used_often() -> None:
    made = plain(deferred)
    values: list[Any] = [made(1), made(1, "x", [2])]
    assert made.__init__.__code__.co_filename.endswith("lazy/dataclasses.py")
    values += [made(1) for _ in range(FEW - 1)]
    assert made.__init__.__code__.co_filename == "<string>"
    assert values[0] == values[-1] != values[1] == made(1, "x", [2])
    assert made.__eq__.__code__.co_filename == "<string>"


def test_fields_are_examined_when_they_are_asked_for() -> None:
    made = changing(deferred)
    assert not isinstance(vars(made)["__dataclass_fields__"], dict)
    assert made(a=1, b=[2]).d == 1
    assert not isinstance(vars(made)["__dataclass_fields__"], dict)
    assert [each.name for each in fields(made)] == ["a", "b", "c", "d"]
    assert isinstance(vars(made)["__dataclass_fields__"], dict)


def test_arguments_are_refused_as_often_as_they_are_wrong() -> None:
    made = plain(deferred)
    for values in ((), (1, "x", [], 4, 5)):
        with pytest.raises(TypeError, match="__init__"):
            made(*values)
    for named in ({"a": 1, "f": 1}, {"b": "x"}):
        with pytest.raises(TypeError, match="__init__"):
            made(**named)
    with pytest.raises(TypeError, match="multiple values"):
        made(1, a=1)


@pytest.mark.parametrize("make", [plain, keywords, identity])
def test_signature_is_that_of_the_standard_decorator(make: Callable[[Any], Any]) -> None:
    mine, standard = (inspect.signature(make(each)) for each in DECORATORS)
    assert str(mine) == str(standard)


def test_signature_of_a_subclass_is_its_own() -> None:
    class Other(plain(deferred)):  # type: ignore[misc]
        def __init__(self, other: int) -> None:
            super().__init__(other)

    assert list(inspect.signature(Other).parameters) == ["other"]
