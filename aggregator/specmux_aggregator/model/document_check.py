"""The result of checking a published document against its standard."""

from __future__ import annotations

from dataclasses import dataclass

from specmux_aggregator.model.snapshot import DocumentKey


@dataclass(frozen=True, slots=True)
class Summary:
    """Number of findings, and the first of them by level."""

    errors: int
    warnings: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PublishedCheck:
    """The result for one published document. Without a summary it was not checked, for the given
    ``reason``."""

    key: DocumentKey
    summary: Summary | None
    reason: str | None = None
