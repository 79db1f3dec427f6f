"""One entry of the change log: what became of one group-version. Pure.

An entry is written once, and its bytes are what clients, the stream and the disk get.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import orjson

from specmux_aggregator.model.backend import BackendName
from specmux_aggregator.model.observation import Hash
from specmux_converters.group_versions import GroupVersion
from specmux_schemas.differences import ChangeSeverity

FORMAT: Final = "specmux.change/v1"


class ComparisonOutcome(StrEnum):
    """How it was found out what changed, or why not."""

    COMPARED = "compared"
    RETURNED = "returned"
    """To a document that was published before: an upgrade that rolls, backends that differ, a way back."""
    MOVED = "moved"
    """The same document, of another backend."""
    UNAVAILABLE = "unavailable"
    """A document of the two is not at hand: native ones are fetched when somebody asks for them."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class PublishedVersion:
    """What was published of a group-version, and whose it was."""

    hash: Hash
    backend: BackendName


@dataclass(frozen=True, slots=True)
class LogEntry:
    """``id`` rises; ``at`` is wall clock, seconds. ``old`` is None for a new group-version, ``new`` for one
    that is gone."""

    id: int
    at: float
    group_version: GroupVersion
    outcome: ComparisonOutcome
    old: PublishedVersion | None
    new: PublishedVersion | None
    counts: dict[str, int]
    """Changes by severity."""
    body: bytes
    """The JSON of the whole entry."""

    @property
    def severity(self) -> ChangeSeverity | None:
        """The worst; None where nothing but documentation changed."""
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
    """What a comparison found, ready to be written."""

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
            "at": dt.datetime.fromtimestamp(at, tz=dt.UTC).isoformat(timespec="milliseconds"),
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


def read_entry(body: bytes) -> LogEntry | None:
    """An entry that was kept on disk; None for one that is not ours or of another format."""
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
