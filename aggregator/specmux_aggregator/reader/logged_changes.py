"""The change log as pages take it: entries as they were written, and their part of an ETag."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from specmux_converters.group_versions import GroupVersion


class LogEntryPage(Protocol):
    """An entry of the change log; it never changes, and no other has its id."""

    @property
    def id(self) -> int: ...

    @property
    def body(self) -> bytes: ...


class LoggedChanges(Protocol):
    @property
    def complete_since(self) -> float | None:
        """The time since which the log has every change; wall clock in seconds."""

    def latest(self) -> Sequence[LogEntryPage]:
        """The last entry of each group-version."""

    def of(self, group_version: GroupVersion) -> Sequence[LogEntryPage]:
        """The newest first."""


def bodies_of(entries: Sequence[LogEntryPage] | None) -> tuple[bytes, ...] | None:
    return None if entries is None else tuple(entry.body for entry in entries)


def state_of(entries: Sequence[LogEntryPage] | None) -> str:
    """The log's part of an ETag."""
    return "off" if entries is None else ",".join(str(entry.id) for entry in entries)
