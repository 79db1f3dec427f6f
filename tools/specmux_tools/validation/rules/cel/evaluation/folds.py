"""Loops: what macros over lists and maps compile to (cel-go, interpreter/interpretable.go, evalFold).

Costs are those of the comprehension that a macro stands for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from specmux_tools.validation.rules.cel.evaluation.closures import Frame, Run
from specmux_tools.validation.rules.cel.values.values import (
    CelError,
    Collection,
    LiteralMap,
    MapValue,
    go_type,
    is_list,
    no_such_overload,
)

_END: Final = object()

Fill = Callable[[Frame, Any], None]
"""Sets the variables of a loop."""
Loop = Callable[[Run, Fill, Callable[[Any], Iterable[Any]], Sequence[Run]], Run]


def pairs(value: Any) -> Iterable[Any]:
    if isinstance(value, MapValue):
        return ((key, value.at_key(key)) for key in value)
    if is_list(value):
        return enumerate(value)
    raise CelError(f"unsupported comprehension range type: {go_type(value)}")


def singles(value: Any) -> Iterable[Any]:
    if isinstance(value, tuple | Collection):
        return iter(value)
    raise CelError(f"got '{go_type(value)}', expected iterable type")


def filler(slots: Sequence[int]) -> Fill:
    if len(slots) == 1:
        (only,) = slots

        def one(frame: Frame, item: Any) -> None:
            frame.values[only] = item

        return one
    first, second = slots

    def two(frame: Frame, item: Any) -> None:
        frame.values[first], frame.values[second] = item

    return two


def _until(stops: bool, cost: int) -> Loop:
    """all stops at false, exists at true. An error counts if nothing stops the loop."""

    def loop(over: Run, fill: Fill, items: Callable[[Any], Iterable[Any]], body: Sequence[Run]) -> Run:
        (predicate,) = body

        def run(frame: Frame) -> Any:
            error: CelError | None = None
            waiting = iter(items(over(frame)))
            for item in waiting:
                frame.pay(cost)
                fill(frame, item)
                try:
                    found = predicate(frame)
                except CelError as raised:
                    error = error or raised
                    continue
                if found is stops:
                    # The condition is looked at once more where there is another item.
                    frame.pay(1 if next(waiting, _END) is _END else cost)
                    return stops
                if found is not (not stops):
                    error = error or no_such_overload()
            frame.pay(1)
            if error is not None:
                raise error
            return not stops

        return run

    return loop


def _exists_one(over: Run, fill: Fill, items: Callable[[Any], Iterable[Any]], body: Sequence[Run]) -> Run:
    chosen = _choose(over, fill, items, body[0])

    def run(frame: Frame) -> bool:
        count = sum(1 for _ in chosen(frame, 2))
        frame.pay(2)
        return count == 1

    return run


def _choose(
    over: Run, fill: Fill, items: Callable[[Any], Iterable[Any]], predicate: Run
) -> Callable[[Frame, int], Iterable[Any]]:
    """The elements that a predicate takes. The last error of it is the loop's."""

    def found(frame: Frame, cost: int) -> Iterable[Any]:
        error: CelError | None = None
        for item in items(over(frame)):
            fill(frame, item)
            try:
                is_chosen = predicate(frame)
            except CelError as raised:
                error = raised
                frame.pay(0)
                continue
            if is_chosen is True:
                frame.pay(cost)
                yield item
            elif is_chosen is False:
                frame.pay(0)
            else:
                error = no_such_overload()
        if error is not None:
            raise error

    return found


def _filter(over: Run, fill: Fill, items: Callable[[Any], Iterable[Any]], body: Sequence[Run]) -> Run:
    chosen = _choose(over, fill, items, body[0])

    def run(frame: Frame) -> Any:
        found = tuple(chosen(frame, 13))
        frame.pay(1)
        return found

    return run


def _map(over: Run, fill: Fill, items: Callable[[Any], Iterable[Any]], body: Sequence[Run]) -> Run:
    transform = body[-1]
    chosen = _choose(over, fill, items, body[0]) if len(body) == 2 else None

    def run(frame: Frame) -> Any:
        error: CelError | None = None
        found: list[Any] = []
        if chosen is not None:
            for _ in chosen(frame, 12):
                error = _append(frame, transform, found, error)
        else:
            for item in items(over(frame)):
                frame.pay(12)
                fill(frame, item)
                error = _append(frame, transform, found, error)
        frame.pay(1)
        if error is not None:
            raise error
        return tuple(found)

    return run


def _append(frame: Frame, transform: Run, found: list[Any], error: CelError | None) -> CelError | None:
    """The first error of the transformation."""
    try:
        found.append(transform(frame))
    except CelError as raised:
        return error or raised
    return error


def _insert_into(insert: Callable[[LiteralMap, Any, Any], None], cost: int) -> Loop:
    def loop(over: Run, fill: Fill, items: Callable[[Any], Iterable[Any]], body: Sequence[Run]) -> Run:
        transform = body[-1]
        predicate = body[0] if len(body) == 2 else None

        def run(frame: Frame) -> Any:
            found = LiteralMap()
            error: CelError | None = None
            for item in items(over(frame)):
                fill(frame, item)
                try:
                    if predicate is not None and predicate(frame) is not True:
                        frame.pay(0)
                        continue
                    frame.pay(cost)
                    insert(found, item[0], transform(frame))
                except CelError as raised:
                    error = error or raised
            frame.pay(1)
            if error is not None:
                raise error
            return found

        return run

    return loop


def _insert_entries(into: LiteralMap, _: Any, value: Any) -> None:
    if not isinstance(value, MapValue):
        raise no_such_overload()
    for key in value:
        into.insert(key, value.at_key(key))


LOOPS: Final[dict[str, Loop]] = {
    "all": _until(False, 3),
    "exists": _until(True, 4),
    "exists_one": _exists_one,
    "filter": _filter,
    "map": _map,
    "transform_map": _insert_into(LiteralMap.insert, 3),
    "transform_map_entry": _insert_into(_insert_entries, 2),
}
