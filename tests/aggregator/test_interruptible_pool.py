"""A pool of worker processes that is left by an error ends all that it started."""

from __future__ import annotations

import multiprocessing
import signal
import threading
import time

import pytest

from specmux_aggregator.interruptible_pool import InterruptiblePool


@pytest.mark.parametrize("handler", [signal.SIG_DFL, signal.SIG_IGN])
def test_neither_thread_nor_process_outlives_an_interrupted_pool(handler: signal.Handlers) -> None:
    """A thread that still closes the pool's pipe while the interpreter exits prints a traceback. Processes
    inherit that SIGTERM is ignored."""
    signal.signal(signal.SIGTERM, handler)
    threads, processes = set(threading.enumerate()), set(multiprocessing.active_children())
    with pytest.raises(KeyboardInterrupt), InterruptiblePool(2) as pool:
        waiting = [pool.submit(time.sleep, 600) for _ in range(4)]
        raise KeyboardInterrupt
    assert all(each.done() for each in waiting)
    assert set(threading.enumerate()) == threads
    assert set(multiprocessing.active_children()) == processes
