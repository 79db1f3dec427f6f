"""An entry of the change log: one change of one group-version. Pure.

An entry is serialized once; clients, the stream and the disk get the same bytes.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import orjson

from specmux_aggregator.model.backend import BackendName
from specmux_aggregator.model.observation import Hash
from specmux_converters.change_severity import ChangeSeverity
from specmux_converters.group_versions import GroupVersion

FORMAT: Final = "specmux.change/v1"


class ComparisonOutcome(StrEnum):
    """How an entry was determined."""

    COMPARED = "compared"
    RETURNED = "returned"
    """Back to an earlier document: a rolling upgrade, differing backends, a rollback."""
    MOVED = "moved"
    """The same document from another backend."""
    UNAVAILABLE = "unavailable"
    """One of the two documents is not in memory: native ones are fetched on request."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class PublishedVersion:
    """The published document of a group-version, and its owner."""

    hash: Hash
    backend: BackendName


@dataclass(frozen=True, slots=True)
class LogEntry:
    """``id`` rises; ``at``: wall clock in seconds. ``old``: None for a new group-version; ``new``: None for a
    removed one."""

    id: int
    at: float
    group_version: GroupVersion
    outcome: ComparisonOutcome
    old: PublishedVersion | None
    new: PublishedVersion | None
    counts: dict[str, int]
    """Number of changes by severity."""
    body: bytes
    """The JSON of the entry."""

    @property
    def severity(self) -> ChangeSeverity | None:
        """The highest severity; None if only documentation changed."""
        return max(
            (ChangeSeverity[word.upper()] for word, count in self.counts.items() if count), default=None
        )

    def is_at_least(self, severity: ChangeSeverity | None) -> bool:
        return severity is None or (self.severity is not None and self.severity >= severity)

    @property
    def hashes(self) -> tuple[Hash, ...]:
        return tuple(version.hash for version in (self.old, self.new) if version is not None)


@dataclass(frozen=True, slots=True)
class Findings:
    """The result of a comparison, serialized."""

    counts: dict[str, int]
    documentation: int
    changes: bytes
    """A JSON array."""
    is_truncated: bool


NOTHING: Final = Findings(dict.fromkeys(("breaking", "warning", "notice"), 0), 0, b"[]", False)


def entry_of(
    number: int,
    at: float,
    group_version: GroupVersion,
    outcome: ComparisonOutcome,
    versions: tuple[PublishedVersion | None, PublishedVersion | None],
    found: Findings = NOTHING,
) -> LogEntry:
    old, new = versions
    body = orjson.dumps(
        {
            "format": FORMAT,
            "id": number,
            "at": time_text(at),
            "groupVersion": group_version,
            "result": outcome.value,
            "old": _version(old),
            "new": _version(new),
            "summary": {**found.counts, "documentation": found.documentation},
            "truncated": found.is_truncated,
            "changes": orjson.Fragment(found.changes),
        }
    )
    return LogEntry(number, at, group_version, outcome, old, new, found.counts, body)


def time_text(at: float) -> str:
    return dt.datetime.fromtimestamp(at, tz=dt.UTC).isoformat(timespec="milliseconds")


def read_entry(body: bytes) -> LogEntry | None:
    """Parse a stored entry; None if it is foreign or of another format."""
    try:
        value = orjson.loads(body)
        if value["format"] != FORMAT:
            return None
        counts = {word: int(value["summary"][word]) for word in ("breaking", "warning", "notice")}
        return LogEntry(
            int(value["id"]),
            dt.datetime.fromisoformat(value["at"]).timestamp(),
            GroupVersion(str(value["groupVersion"])),
            ComparisonOutcome(value["result"]),
            _read_version(value["old"]),
            _read_version(value["new"]),
            counts,
            body,
        )
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        return None


def _version(version: PublishedVersion | None) -> dict[str, str] | None:
    return None if version is None else {"hash": version.hash, "backend": version.backend}


def _read_version(value: Any) -> PublishedVersion | None:
    return (
        None
        if value is None
        else PublishedVersion(Hash(str(value["hash"])), BackendName(str(value["backend"])))
    )
