"""A line that says a command is still at work, for people who watch a terminal."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TextIO

from specmux_aggregator.console import verbosity

PATIENCE: Final = 1.0
"""Seconds of work before anything is said, and between updates."""


@contextmanager
def progress(what: str, *, stream: TextIO | None = None) -> Iterator[None]:
    """Says ``what`` and for how long on standard error, once the work takes over a second; clears it after.

    Nothing where standard error is no terminal that can take a line back, or with --quiet.
    """
    out = sys.stderr if stream is None else stream
    if verbosity() < 0 or os.environ.get("TERM") == "dumb" or not out.isatty():
        yield
        return
    done = threading.Event()
    teller = threading.Thread(target=_tell, args=(what, out, done), daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()


def _tell(what: str, out: TextIO, done: threading.Event) -> None:
    start = time.monotonic()
    has_told = False
    while not done.wait(PATIENCE):
        has_told = True
        out.write(f"\r{what} … {time.monotonic() - start:.0f} s")
        out.flush()
    if has_told:
        out.write("\r\x1b[K")
        out.flush()
