"""Worker processes of a command: Ctrl-C ends them without output."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from types import TracebackType
from typing import Any


class InterruptiblePool(ProcessPoolExecutor):
    """Used as a context manager."""

    def __init__(self, workers: int, **options: Any) -> None:
        super().__init__(workers, mp_context=multiprocessing.get_context("spawn"), **options)
        self._others = {child.pid for child in multiprocessing.active_children()}

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        # A terminal sends Ctrl-C to all its processes. Processes started now inherit the mask and never see
        # it; here it is delivered a moment later.
        with _ignore_interrupts():
            return super().submit(fn, *args, **kwargs)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        if kind is not None:
            for child in multiprocessing.active_children():
                if child.pid not in self._others:
                    child.kill()  # a parent that ignored SIGTERM has handed that on
            # Waits: the interpreter's exit writes to the pipe that the pool's thread closes as it ends.
            self.shutdown(wait=True, cancel_futures=True)
        return super().__exit__(kind, error, trace)


@contextmanager
def _ignore_interrupts() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
