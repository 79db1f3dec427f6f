"""Exit codes of all commands: one contract, listed in docs/exit-codes.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

import click

from specmux_aggregator.console import write_error
from specmux_aggregator.errors import (
    CannotListen,
    NoBackendReachable,
    NoSource,
    NotThere,
    SpecmuxError,
    WorkerFailed,
)

FOUND: Final = 1
"""What was looked for: invalid, breaking, not ready, not conformant; or what was asked for is not there."""
USAGE: Final = 2
UNREADABLE: Final = 3
"""An input, the configuration or the cache cannot be read, or an output cannot be written."""
NO_ANSWER: Final = 4
"""A server does not answer, or an address cannot be listened on."""
NOT_CHECKED: Final = 5
"""Nothing was found, but something could not be checked; ``--allow-…`` accepts that."""

Command = TypeVar("Command", bound=Callable[..., Any])


class UnreadableInput(click.BadParameter):
    """A file or folder that the command line names and that is not there, or not what it has to be."""

    exit_code = UNREADABLE


class InputPath(click.Path):
    """A path that is read: missing, it ends the command as any other unreadable input. ``words``: how words
    begin that name files in another way."""

    def __init__(self, *arguments: Any, words: tuple[str, ...] = (), **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.words = words

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return Path(value) if str(value).startswith(self.words) else super().convert(value, param, ctx)

    def fail(
        self, message: str, param: click.Parameter | None = None, ctx: click.Context | None = None
    ) -> NoReturn:
        raise UnreadableInput(message, ctx=ctx, param=param)


def fail_on_option(*levels: str, of: str) -> Callable[[Command], Command]:
    """For commands that find things, which get ``fail_on``: one of ``levels``, the worst first, or ``never``.

    ``of``: what is found, and what it has a level of.
    """
    return click.option(
        "--fail-on",
        type=click.Choice((*levels, "never")),
        default=levels[0],
        show_default=True,
        help=f"Exit with {FOUND} for {of} or a worse one.",
    )


@contextmanager
def report_errors() -> Iterator[None]:
    """Inside a click command: an error of this package ends the process with its message and code."""
    try:
        yield
    except SpecmuxError as error:
        write_error(str(error))
        raise click.exceptions.Exit(exit_code(error)) from error


def exit_code(error: SpecmuxError) -> int:
    match error:
        case NoSource():
            return USAGE
        case NotThere():
            return FOUND
        case NoBackendReachable() | CannotListen():
            return NO_ANSWER
        case WorkerFailed():
            return NOT_CHECKED
        case _:
            return UNREADABLE
