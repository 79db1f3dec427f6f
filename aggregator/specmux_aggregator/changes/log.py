"""The change log: entries in the order of their ids, bounded in number and bytes. Pure.

An id is the number of the log, then the number within it, as one integer that JavaScript represents exactly.
So an id of another replica, or of an earlier process, is distinguished from one of this log: numbers of two
logs are not comparable. Numbers within a log have no gaps.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import Final

from specmux_aggregator.changes.entries import LogEntry
from specmux_aggregator.model.observation import Hash
from specmux_converters.change_severity import ChangeSeverity
from specmux_converters.group_versions import GroupVersion

ID_DIGITS_MAX: Final = 18
BEGINNING: Final = 1
"""An id up to here names no log: every event comes after it."""

_NUMBERS: Final = 10**8
"""Numbers per log."""
_FIRST_LOG: Final = 10**7
_LAST_LOG: Final = 9 * 10**7
"""The last id of the last log is below 2**53."""


def new_base(above: int = 0) -> int:
    """The id before the first one of a new log. ``above``: an id of the log that it continues."""
    first = max(_FIRST_LOG, above // _NUMBERS + 1)
    return (first + secrets.randbelow(max(_LAST_LOG - first, 1))) * _NUMBERS


def base_of(number: int) -> int:
    return number - number % _NUMBERS


def is_named(number: int) -> bool:
    """False for the ids of earlier versions, milliseconds that name no log."""
    return number < _NUMBERS or number >= _FIRST_LOG * _NUMBERS


def read_id(text: str) -> int:
    """Raises ValueError."""
    if not text.isascii() or not text.isdigit() or len(text) > ID_DIGITS_MAX:
        raise ValueError("no id of an event")
    return int(text)


class ChangeLog:
    """The newest entries; the last one of a group-version is dropped like any other."""

    def __init__(self, *, most_entries: int, most_bytes: int) -> None:
        self._most_entries = most_entries
        self._most_bytes = most_bytes
        self._entries: list[LogEntry] = []
        self.bytes = 0
        self._base = new_base()
        self.last_id = self._base
        self.dropped_id = self._base
        """Entries of this log up to here were dropped."""
        self.began_at: float | None = None
        """Wall clock in seconds; None until all that was published first is known."""

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[LogEntry]:
        return iter(self._entries)

    @property
    def complete_since(self) -> float | None:
        """The time since which the log has every change; wall clock in seconds."""
        if self.dropped_id == base_of(self.dropped_id):
            return self.began_at
        return next((entry.at for entry in self._entries if entry.id > self.dropped_id), self.began_at)

    def next_id(self) -> int:
        """The id of the next entry."""
        following = self.last_id + 1
        return following if base_of(following) == self._base else new_base(above=following) + 1

    def add(self, entry: LogEntry) -> list[LogEntry]:
        """Append an entry with a higher id than all before; returns the entries dropped for it."""
        if base_of(entry.id) != self._base:
            self._base = base_of(entry.id)
            self.dropped_id = entry.id - 1
        elif entry.id > self.last_id + 1:  # an entry in between was not stored
            self.dropped_id = entry.id - 1
        self._entries.append(entry)
        self.bytes += len(entry.body)
        self.last_id = entry.id
        dropped = []
        while len(self._entries) > self._most_entries or (
            self.bytes > self._most_bytes and len(self._entries) > 1
        ):
            gone = self._entries.pop(0)
            self.bytes -= len(gone.body)
            self.dropped_id = max(self.dropped_id, gone.id)
            dropped.append(gone)
        return dropped

    def restore(self, entries: Iterable[LogEntry]) -> list[LogEntry]:
        """Add entries stored by an earlier process, in any order; returns those beyond the limit."""
        dropped = []
        number = 0
        for entry in sorted(entries, key=lambda entry: entry.id):
            if entry.id > number:
                dropped += self.add(entry)
                number = entry.id
        if not is_named(self.last_id):
            self._base = self.last_id = self.dropped_id = new_base()
        return dropped

    def latest(self, at_least: ChangeSeverity | None = None) -> list[LogEntry]:
        """The last entry of each group-version with at least this severity, sorted by name."""
        found = {entry.group_version: entry for entry in self._entries if entry.is_at_least(at_least)}
        return [found[name] for name in sorted(found)]

    def since(self, number: int) -> tuple[bool, list[LogEntry]]:
        """The entries after ``number``, oldest first, and whether none is missing. If one is, those after the
        last gap; none after an id of another log."""
        if number > BEGINNING and not self._base <= number <= self.last_id:
            return False, []
        if number <= BEGINNING and self.dropped_id == base_of(self.dropped_id):
            return True, list(self._entries)
        first = max(number, self.dropped_id)
        newest = takewhile(lambda entry: entry.id > first, reversed(self._entries))
        return number >= self.dropped_id, list(newest)[::-1]

    def of(self, group_version: GroupVersion, *, at_least: ChangeSeverity | None = None) -> list[LogEntry]:
        """Entries of one group-version, newest first."""
        return [
            entry
            for entry in reversed(self._entries)
            if entry.group_version == group_version and entry.is_at_least(at_least)
        ]

    def has_seen(self, group_version: GroupVersion, hash: Hash) -> bool:
        """Whether this document was published before, as far as the log reaches back."""
        return any(entry.group_version == group_version and hash in entry.hashes for entry in self._entries)
