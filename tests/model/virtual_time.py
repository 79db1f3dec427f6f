"""An event loop whose clock is virtual and whose tasks run in a seeded order.

Waiting costs nothing: when nothing is ready, the clock moves to the next timer. Of the tasks that are ready
at one moment any may run first on a real machine, so their order is drawn from a seed; other callbacks keep
theirs. Threads would bring the real clock back: what is handed to an executor runs at once, to a
``TimedThread`` in a moment.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import selectors
import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final
from unittest import mock

START: Final = 1_000.0
"""Seconds on the monotonic clock: no program starts at zero."""
EPOCH: Final = 1_700_000_000.0
"""Seconds on the wall clock at START."""


class Deadlock(AssertionError):
    """Everybody waits, and no timer would wake anybody."""


class _Selector(selectors.DefaultSelector):
    """Moves the loop's clock in place of waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.advance: Callable[[float], None] = lambda seconds: None

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(0)
        if found or timeout == 0:
            return found
        if timeout is None:
            raise Deadlock("every task waits for another")
        self.advance(timeout)
        return found


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self, seed: int) -> None:
        self.now = START
        self._order = random.Random(seed)
        selector = _Selector()
        super().__init__(selector)
        selector.advance = self._advance
        self.failures: list[BaseException] = []
        """What background tasks raised."""
        self.set_exception_handler(self._note)

    def time(self) -> float:
        return self.now

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:
        if isinstance(executor, TimedThread):
            return executor.submit(func, *args)
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001  # the future has it
            future.set_exception(error)
        return future

    def _advance(self, seconds: float) -> None:
        self.now += seconds

    def _note(self, loop: object, context: dict[str, Any]) -> None:
        self.failures.append(context.get("exception") or AssertionError(context["message"]))

    def _run_once(self) -> None:
        ready = self._ready  # type: ignore[attr-defined]
        places = [place for place, handle in enumerate(ready) if _is_step(handle)]
        if len(places) > 1:
            steps = [ready[place] for place in places]
            self._order.shuffle(steps)
            for place, handle in zip(places, steps, strict=True):
                ready[place] = handle
        super()._run_once()  # type: ignore[misc]


class TimedThread:
    """One thread whose work takes time on the virtual clock, in the order in which it was handed over."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: Callable[[], float]) -> None:
        self._loop = loop
        self._seconds = seconds
        self._work: deque[tuple[asyncio.Future[Any], Callable[[], Any]]] = deque()
        self._is_busy = False

    def submit(self, function: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        future = self._loop.create_future()
        self._work.append((future, partial(function, *args)))
        if not self._is_busy:
            self._is_busy = True
            self._loop.call_later(self._seconds(), self._next)
        return future

    def shutdown(self) -> None:
        """Do what is left."""
        while self._work:
            self._do()

    def die(self) -> None:
        """What was not begun never happens."""
        self._work.clear()

    def _next(self) -> None:
        if self._work:
            self._do()
        self._is_busy = bool(self._work)
        if self._is_busy:
            self._loop.call_later(self._seconds(), self._next)

    def _do(self) -> None:
        future, work = self._work.popleft()
        try:
            result = work()
        except asyncio.CancelledError:  # the process died over it
            future.cancel()
        except Exception as error:  # noqa: BLE001  # whoever waits has it
            if not future.done():
                future.set_exception(error)
        else:
            if not future.done():
                future.set_result(result)


def _is_step(handle: asyncio.Handle) -> bool:
    """Whether it starts or continues a task."""
    callback = handle._callback  # type: ignore[attr-defined]
    return type(callback).__name__ == "TaskStepMethWrapper" or isinstance(
        getattr(callback, "__self__", None), asyncio.Task
    )


@contextlib.contextmanager
def clock_of(loop: VirtualLoop) -> Iterator[None]:
    """Programs that ask the ``time`` module get the loop's time."""
    with (
        mock.patch.object(time, "monotonic", loop.time),
        mock.patch.object(time, "perf_counter", loop.time),
        mock.patch.object(time, "time", lambda: EPOCH + loop.now - START),
    ):
        yield
