"""The options of ``specmux validate`` that say which request its objects are judged as."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import click

from specmux_aggregator.sources.validated_objects import ObjectVerdict, ValidatedObject, read_stored
from specmux_schemas.validation.stored_objects import StoredObjects

Command = TypeVar("Command", bound=Callable[..., Any])

OPERATIONS: Final = ("create", "update")
_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class Operation:
    old: str | None = None
    """A file, a folder, or ``git:REV:PATH``."""
    operation: str | None = None

    def stored(self) -> StoredObjects | None:
        """Raises SourceError for what cannot be read."""
        if self.old is None:
            return None
        return read_stored(self.old, are_required=self.operation == "update")


def operation_options(command: Command) -> Command:
    """Adds the options; the command gets them as ``operation: Operation``."""

    @functools.wraps(command)
    def with_operation(*arguments: Any, old: str | None, operation: str | None, **values: Any) -> Any:
        if operation == "update" and old is None:
            raise click.UsageError("--operation update needs the stored objects: --old OLD")
        if operation == "create" and old is not None:
            raise click.UsageError("--old is for updates: leave out --operation create")
        return command(*arguments, operation=Operation(old, operation), **values)

    decorated: Any = with_operation
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]


_OPTIONS: Final = (
    click.option(
        "--old", metavar="OLD",
        help="The stored objects that the manifests update: a file, a folder, or git:REV:PATH.",
    ),
    click.option(
        "--operation", type=click.Choice(OPERATIONS),
        help="With update, each object must have a stored one.  [default: update for what is in --old]",
    ),
)  # fmt: skip


def unmatched_hints(stored: StoredObjects, checked: Sequence[ValidatedObject]) -> Iterator[str]:
    """What was not compared: objects that are new, and stored ones that no manifest has."""
    judged = [each for each in checked if each.outcome is not ObjectVerdict.NO_OBJECT and each.key.kind]
    created = [str(each.key) for each in judged if not each.report.is_update and each.key.kind != "List"]
    if created and not stored.are_required:
        yield f"{_counted(created)} not in {stored.place}, checked as created: {_shown(created)}"
    named = {stored.key_for_name(each.key) for each in judged}
    gone = [str(key) for key in stored if key not in named and key.kind]
    if gone:
        yield f"{_counted(gone)} in {stored.place} alone, not checked: {_shown(gone)}"


def _counted(names: list[str]) -> str:
    return f"{len(names)} {'object is' if len(names) == 1 else 'objects are'}"


def _shown(names: list[str]) -> str:
    return ", ".join(sorted(names)[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
