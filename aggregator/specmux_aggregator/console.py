"""Output of commands for people: warnings on standard error, ages in words, colour on a terminal.

Colour is only for a terminal, and never where NO_COLOR is set (no-color.org) or TERM is dumb.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, Literal, TextIO

import click

if TYPE_CHECKING:  # imported where somebody waits
    from threading import Event

Colour = Literal["red", "yellow", "green"]

PATIENCE: Final = 2.0
"""Seconds of waiting for a server before that is said."""

PROGRESS_INTERVAL: Final = 1.0
"""Seconds of work before anything is said, and between updates."""

_VERBOSITY: Final = "specmux.verbosity"
GAP: Final = "   "
"""Between the columns of a table."""
_AGES: Final = ((86400.0, "d"), (3600.0, "h"), (60.0, "m"))


def set_verbosity(context: click.Context, level: int) -> None:
    """-1: warnings are left out; 1: what the libraries log is shown too. Raises click.UsageError for both."""
    if context.meta.setdefault(_VERBOSITY, level) != level:
        raise click.UsageError("--verbose and --quiet contradict each other; give one of them")
    if level > 0:
        import logging  # only where it is asked for

        logging.basicConfig(level=logging.DEBUG, format="%(levelname)s %(name)s: %(message)s")


def verbosity() -> int:
    """0 outside a command."""
    context = click.get_current_context(silent=True)
    return 0 if context is None else int(context.meta.get(_VERBOSITY, 0))


def warn(text: str) -> None:
    """A line on standard error, unless the user asked for quiet."""
    if verbosity() >= 0:
        click.echo(f"{colour_text('Warning:', 'yellow', error=True)} {_printable(text)}", err=True)


def write_note(text: str) -> None:
    """A line on standard error that is no fault of anybody, unless the user asked for quiet."""
    if verbosity() >= 0:
        click.echo(_printable(text), err=True)


def write_error(text: str) -> None:
    """A line on standard error. It may hold names and texts of foreign documents, as warnings may."""
    click.echo(f"Error: {_printable(text)}", err=True)


def _printable(text: str) -> str:
    from specmux_converters.printing import printable_lines  # most commands say nothing

    return printable_lines(text)


@contextmanager
def announce_wait(what: str) -> Iterator[None]:
    """Says once on standard error what is waited for, where that takes more than PATIENCE seconds."""
    import threading  # most commands wait for nothing

    if verbosity() < 0 or sys.stderr is None:
        yield
        return
    timer = threading.Timer(PATIENCE, lambda: click.echo(f"waiting for {what} …", err=True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class Unwritable(click.ClickException):
    """An output that cannot be written."""

    exit_code = 3  # exits.UNREADABLE, which stands above this module


def forget_standard_output() -> None:
    """Discard the buffer: its rest would fail again when the interpreter ends, with a message and code
    120."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_line(text: str) -> None:
    """A line of a command's answer, which somebody has to be able to read. Raises Unwritable."""
    if sys.stdout is None:  # Python's own value where the descriptor is closed
        raise Unwritable("standard output: closed")
    click.echo(text)


def colour_text(text: str, colour: Colour, *, error: bool = False) -> str:
    """``error``: it is meant for standard error."""
    return click.style(text, fg=colour) if is_coloured(error=error) else text


def is_coloured(*, error: bool = False) -> bool:
    """Whether standard output, or standard error, is a terminal that shows colours and should."""
    stream = sys.stderr if error else sys.stdout
    is_plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    return stream is not None and stream.isatty() and not is_plain


def terminal_width() -> int | None:
    """Columns of the terminal that shows standard output; None where none does."""
    if sys.stdout is None or not sys.stdout.isatty():
        return None
    import shutil  # most output goes to files and pipes, or has no columns

    return shutil.get_terminal_size().columns


def age(seconds: float | None) -> str:
    """An age as kubectl prints it, in one unit: ``12s``, ``4m``, ``3h``, ``2d``."""
    if seconds is None:
        return "never"
    for length, unit in _AGES:
        if seconds >= length:
            return f"{seconds / length:.0f}{unit}"
    return f"{max(seconds, 0):.0f}s"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines with columns as wide as they need to be, as kubectl prints them."""
    lines = [tuple(head), *(tuple(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return [
        GAP.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]


@contextmanager
def progress(what: str, *, stream: TextIO | None = None) -> Iterator[None]:
    """Says ``what`` and for how long on standard error, once the work takes over a second; clears it after.

    Nothing where standard error is no terminal that can take a line back, or with --quiet.
    """
    out = sys.stderr if stream is None else stream
    if verbosity() < 0 or os.environ.get("TERM") == "dumb" or not out.isatty():
        yield
        return
    import threading

    done = threading.Event()
    teller = threading.Thread(target=_tell, args=(what, out, done), daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()


def _tell(what: str, out: TextIO, done: Event) -> None:
    start = time.monotonic()
    has_told = False
    while not done.wait(PROGRESS_INTERVAL):
        has_told = True
        out.write(f"\r{what} … {time.monotonic() - start:.0f} s")
        out.flush()
    if has_told:
        out.write("\r\x1b[K")
        out.flush()
