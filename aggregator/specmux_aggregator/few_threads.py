"""Threads on a system that may refuse them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from specmux_aggregator.errors import NoThreads


class FewThreads(ThreadPoolExecutor):
    """A pool of which one thread is started at once: where the system refuses more, work waits for those
    that there are."""

    def __init__(self, most: int, name: str) -> None:
        """Raises NoThreads."""
        super().__init__(most, thread_name_prefix=name)
        try:
            self.submit(int).result()
        except (RuntimeError, MemoryError) as error:
            raise NoThreads(
                f"no thread can be started ({error}): the limit of processes, threads or memory is reached; "
                "raise it (ulimit -u, ulimit -v, TasksMax of the unit, the pids limit of the container)"
            ) from error

    def _adjust_thread_count(self) -> None:
        try:
            super()._adjust_thread_count()
        except (RuntimeError, MemoryError):
            if not self._threads:
                raise
