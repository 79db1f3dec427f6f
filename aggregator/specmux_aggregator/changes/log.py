"""The change log: entries in the order of their ids, bounded in number and in bytes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import takewhile

from specmux_aggregator.changes.entries import LogEntry
from specmux_aggregator.model.observation import Hash
from specmux_converters.group_versions import GroupVersion
from specmux_schemas.differences import ChangeSeverity


class ChangeLog:
    """The newest entries. The last one of a group-version goes with the rest when its time has come."""

    def __init__(self, *, most_entries: int, most_bytes: int) -> None:
        self._most_entries = most_entries
        self._most_bytes = most_bytes
        self._entries: list[LogEntry] = []
        self.bytes = 0
        self.last_id = 0
        self.dropped_id = 0
        """Entries up to here are gone; 0: none is."""

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[LogEntry]:
        return iter(self._entries)

    def add(self, entry: LogEntry) -> list[LogEntry]:
        """Takes an entry with a higher id than all before; returns those that had to go."""
        self._entries.append(entry)
        self.bytes += len(entry.body)
        self.last_id = max(self.last_id, entry.id)
        dropped = []
        while len(self._entries) > self._most_entries or (
            self.bytes > self._most_bytes and len(self._entries) > 1
        ):
            gone = self._entries.pop(0)
            self.bytes -= len(gone.body)
            self.dropped_id = gone.id
            dropped.append(gone)
        return dropped

    def restore(self, entries: Iterable[LogEntry]) -> list[LogEntry]:
        """What an earlier process kept, in any order; returns those that are too many."""
        dropped = []
        for entry in sorted(entries, key=lambda entry: entry.id):
            if entry.id > self.last_id:
                dropped += self.add(entry)
        return dropped

    def latest(self) -> list[LogEntry]:
        """The last entry of each group-version, by its name."""
        found = {entry.group_version: entry for entry in self._entries}
        return [found[name] for name in sorted(found)]

    def since(self, number: int) -> list[LogEntry]:
        """Entries with a higher id, the oldest first."""
        newest = takewhile(lambda entry: entry.id > number, reversed(self._entries))
        return list(newest)[::-1]

    def of(
        self, group_version: GroupVersion, *, since: int = 0, at_least: ChangeSeverity | None = None
    ) -> list[LogEntry]:
        """The newest first."""
        return [
            entry
            for entry in reversed(self._entries)
            if entry.group_version == group_version
            and entry.id > since
            and (at_least is None or (entry.severity is not None and entry.severity >= at_least))
        ]

    def has_seen(self, group_version: GroupVersion, hash: Hash) -> bool:
        """Whether this document was published before, as far as the log goes back."""
        return any(entry.group_version == group_version and hash in entry.hashes for entry in self._entries)
