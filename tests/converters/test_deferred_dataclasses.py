"""Values of ``deferred_dataclasses`` are the standard library's, member for member."""

import copy
import dataclasses
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field, fields, replace
from typing import Any

import pytest

from specmux_converters.deferred_dataclasses import dataclass as deferred

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


@deferred(frozen=True, slots=True)
class Packed:
    """A value that a job hands over."""

    a: int
    b: tuple[str, ...] = ()


def test_value_is_read_back_in_a_process_that_made_none() -> None:
    packed = pickle.dumps(Packed(1, ("b",)))
    assert pickle.loads(packed) == Packed(1, ("b",))
    assert dataclasses.is_dataclass(Packed)


def test_nothing_is_compiled_before_the_first_call() -> None:
    made = plain(deferred)
    before = made.__init__
    assert before.__code__.co_filename.endswith("deferred_dataclasses.py")
    made(1)
    assert made.__init__.__code__.co_filename == "<string>"
