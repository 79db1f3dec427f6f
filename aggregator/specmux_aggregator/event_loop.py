"""The event loop of a command that serves, from its first thread to the last process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine
from typing import Any

from specmux_aggregator.errors import NoThreads
from specmux_aggregator.few_threads import FewThreads
from specmux_aggregator.workers.worker import end_helpers


def run_to_the_end(work: Coroutine[Any, Any, None]) -> None:
    """Run like ``asyncio.run``. Raises NoThreads if the system refuses the first thread."""
    try:
        threads = FewThreads(min(32, (os.cpu_count() or 1) + 4), "asyncio")
    except NoThreads:
        work.close()
        raise
    try:
        with asyncio.Runner(loop_factory=lambda: _Loop(threads)) as runner:
            runner.run(work)
    finally:
        end_helpers()


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self, threads: FewThreads) -> None:
        super().__init__()
        self._threads = threads
        self.set_default_executor(threads)

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        try:
            await super().shutdown_default_executor()
        except RuntimeError:  # it takes a thread to wait for the threads
            self._threads.shutdown()
