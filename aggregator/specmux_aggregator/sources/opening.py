"""From options to an open source. What it needs is imported here, when it is needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from specmux_aggregator.console import warn
from specmux_aggregator.sources.options import SourceOptions

if TYPE_CHECKING:  # the types bring the converters with them, which --help does not need
    from specmux_aggregator.sources.source import Source, Unread

NAMED_MAX: Final = 20
"""Unusable files that are named; more are counted."""


@contextmanager
def opened(options: SourceOptions) -> Iterator[Source]:
    """The source while it is open. Raises SpecmuxError where it cannot be used at all."""
    if options.is_local:
        from specmux_aggregator.sources.files import FileSource

        yield FileSource.of(directories=options.directories, files=options.files)
        return
    from specmux_aggregator.sources.servers import opened_server

    with opened_server(options) as source:
        yield source


def report_unread(unread: Sequence[Unread]) -> None:
    """A warning on standard error for each thing that could not be used."""
    for each in unread[:NAMED_MAX]:
        warn(str(each))
    more = len(unread) - NAMED_MAX
    if more > 0:
        warn(f"and {more} more that could not be used")
