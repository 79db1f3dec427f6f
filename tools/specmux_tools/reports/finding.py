"""The values from which every form of a report is written."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any

from specmux_converters.lazy.dataclasses import dataclass


class Level(StrEnum):
    """The levels of SARIF, most severe first."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Where:
    """A place in a file, as far as known."""

    file: str
    line: int | None = None
    """From 1, as is the column."""
    column: int | None = None
    pointer: str = ""
    """A JSON pointer (RFC 6901) into the document."""

    def __str__(self) -> str:
        return ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)


@dataclass(frozen=True, slots=True)
class ReportFinding:
    """A fault or remark."""

    rule: str
    level: Level
    message: str
    where: Where
    subject: str = ""
    """The object, field or member that it concerns."""
    detail: str = ""
    """A remark after the message, in parentheses."""
    others: tuple[str, ...] = ()
    """Further subjects with the same finding."""
    word: str = ""
    """The command's own word for the level."""
    title: str = ""
    """The title of an annotation; the rule by default."""
    fails: bool = False
    """Whether it fails its test case."""
    fingerprint: str = ""
    """Stable across reports; derived from the other members if empty."""

    @property
    def said(self) -> str:
        return f"{self.message} ({self.detail})" if self.detail else self.message

    @property
    def level_word(self) -> str:
        return self.word or self.level.value

    @property
    def identity(self) -> str:
        if self.fingerprint:
            return self.fingerprint
        members = (self.rule, self.where.file, self.where.pointer, self.subject, self.message)
        return hashlib.sha256("\0".join(members).encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Case:
    """Something that was examined: an object, a document, a change."""

    name: str
    group: str
    """The class name in JUnit."""
    findings: tuple[ReportFinding, ...] = ()
    skipped: str = ""
    """Why it was not judged."""

    @property
    def is_failed(self) -> bool:
        return any(finding.fails for finding in self.findings)


@dataclass(frozen=True, slots=True)
class Suite:
    """The cases of one file, or of one comparison."""

    name: str
    cases: tuple[Case, ...]


@dataclass(frozen=True, slots=True)
class FindingReport:
    """Everything that a command found, with its wording."""

    command: str
    """``specmux check``"""
    title: str
    suites: tuple[Suite, ...]
    document: Any
    """The JSON form, a stable interface of the command."""
    summary: str = ""
    notes: tuple[str, ...] = ()
    rules: Mapping[str, str] = field(default_factory=dict)
    """A sentence for each rule."""
    noun: str = "findings"
    is_placed: bool = True
    """Whether text shows file and line; otherwise a finding's subject states its place."""
    shows_rules: bool = False
    """Whether a line of text ends with the rule."""
    most_alike: int | None = None
    """Equal findings of one case, level and rule that the text lists; None: all."""

    @property
    def cases(self) -> Iterator[Case]:
        return (case for suite in self.suites for case in suite.cases)

    @property
    def findings(self) -> Iterator[ReportFinding]:
        return (finding for case in self.cases for finding in case.findings)

    def place(self, finding: ReportFinding) -> str:
        """The place in one line, for people."""
        parts = (str(finding.where), finding.subject) if self.is_placed else (finding.subject,)
        return " ".join(filter(None, parts))
