"""The values that every form of a report is written of."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any

from specmux_converters.deferred_dataclasses import dataclass


class Level(StrEnum):
    """The words of SARIF. The worst comes first."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Where:
    """A place in a file, as far as it is known."""

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
    """One thing that is wrong, or worth saying."""

    rule: str
    level: Level
    message: str
    where: Where
    subject: str = ""
    """The object, field or member that it is about."""
    detail: str = ""
    """A remark behind the message, in brackets."""
    others: tuple[str, ...] = ()
    """Further subjects of which the same is true."""
    word: str = ""
    """The command's own word for the level."""
    title: str = ""
    """Of an annotation; without one it is the rule."""
    fails: bool = False
    """Whether its test case fails for it."""
    fingerprint: str = ""
    """Stays the same while the finding does; made of the other members where there is none."""

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
        parts = "\0".join(members)
        return hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Case:
    """One thing that was looked at: an object, a document, a change."""

    name: str
    group: str
    """The class name of JUnit."""
    findings: tuple[ReportFinding, ...] = ()
    skipped: str = ""
    """Why it was not judged."""

    @property
    def is_failed(self) -> bool:
        return any(finding.fails for finding in self.findings)


@dataclass(frozen=True, slots=True)
class Suite:
    """Cases of one file, or of one comparison."""

    name: str
    cases: tuple[Case, ...]


@dataclass(frozen=True, slots=True)
class FindingReport:
    """All that a command found, and how it words it."""

    command: str
    """``specmux check``"""
    title: str
    suites: tuple[Suite, ...]
    document: Any
    """The JSON form: the command's own promise to programs."""
    summary: str = ""
    notes: tuple[str, ...] = ()
    rules: Mapping[str, str] = field(default_factory=dict)
    """A sentence for each rule."""
    noun: str = "findings"
    is_placed: bool = True
    """Whether people are shown the file and line; else a finding's subject says where it is."""
    shows_rules: bool = False
    """Whether a line of text ends with the rule."""
    most_alike: int | None = None
    """Findings of one case, level and rule that the text names; None: all."""

    @property
    def cases(self) -> Iterator[Case]:
        return (case for suite in self.suites for case in suite.cases)

    @property
    def findings(self) -> Iterator[ReportFinding]:
        return (finding for case in self.cases for finding in case.findings)

    def place(self, finding: ReportFinding) -> str:
        """Where it is, for people, in one line."""
        parts = (str(finding.where), finding.subject) if self.is_placed else (finding.subject,)
        return " ".join(filter(None, parts))
