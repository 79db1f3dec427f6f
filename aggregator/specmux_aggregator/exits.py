"""Exit codes of all commands: 0 ok, 1 runtime, 2 usage (click's own), and those below."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import click

from specmux_aggregator.console import write_error
from specmux_aggregator.errors import InvalidConfig, NoBackendReachable, NoSource, SpecmuxError

RUNTIME: Final = 1
USAGE: Final = 2
INVALID_CONFIG: Final = 3
NO_BACKEND_REACHABLE: Final = 4
FOUND: Final = 5
"""Something is as severe as ``--fail-on``, or worse."""

Command = TypeVar("Command", bound=Callable[..., Any])


def fail_on_option(*levels: str, of: str, code: int = FOUND) -> Callable[[Command], Command]:
    """For commands that find things, which get ``fail_on``: one of ``levels``, the worst first, or ``never``.

    ``of``: what is found, and what it has a level of.
    """
    return click.option(
        "--fail-on",
        type=click.Choice((*levels, "never")),
        default=levels[0],
        show_default=True,
        help=f"Exit with {code} for {of} or a worse one.",
    )


@contextmanager
def reported_errors() -> Iterator[None]:
    """Inside a click command: an error of this package ends the process with its message and code."""
    try:
        yield
    except SpecmuxError as error:
        write_error(str(error))
        raise click.exceptions.Exit(_exit_code(error)) from error


def _exit_code(error: SpecmuxError) -> int:
    match error:
        case NoSource():
            return USAGE
        case InvalidConfig():
            return INVALID_CONFIG
        case NoBackendReachable():
            return NO_BACKEND_REACHABLE
        case _:
            return RUNTIME
