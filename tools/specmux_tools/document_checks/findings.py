"""Findings in a document: the rule, the level, and the place.

Values only: they cross processes and are stored in files.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

from specmux_converters.group_versions import GroupVersion
from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.reports import Level

UNCHECKED: Final = "unchecked"
UNREAD: Final = "unread"

RULES: Final = {
    "unread": "The file is no document that can be read.",
    "schema": "The document keeps to its standard (openapi-spec-validator).",
    "reference": "Every reference leads somewhere.",
    "unchecked": "Everything that the document says can be checked.",
    "zero-default": "Defaults are valid by their schemas.",
    "operation-id": "The id of an operation is that of no other.",
    "group-version": "Every path belongs to the group-version of its document.",
    "loss": "Conversion to OpenAPI v3 loses nothing.",
    "definition": "An apiserver takes a CustomResourceDefinition, and publishes it as it is.",
}
"""Each rule, and its requirement."""


class DocumentFinding(NamedTuple):
    """``pointer``: a JSON pointer (RFC 6901) into the document."""

    level: Level
    rule: str
    pointer: str
    message: str
    line: int | None = None
    """From 1, as is the column; None if the document is not text."""
    column: int | None = None


@dataclass(frozen=True, slots=True)
class Subject:
    """Bytes to check. ``name`` is for people; ``group_version``: under which they are published, if known."""

    name: str
    data: bytes
    group_version: GroupVersion | None = None
    release: str | None = None
    """The release of Kubernetes ("1.34") that judges definitions; None is the newest."""


def unread_document(name: str, reason: str) -> DocumentReport:
    """The report for a document that its server lists but does not deliver."""
    return DocumentReport(name, (DocumentFinding(Level.ERROR, UNREAD, "", reason),))


@dataclass(frozen=True, slots=True)
class DocumentReport:
    """The findings of one document."""

    name: str
    findings: tuple[DocumentFinding, ...]

    def count(self, level: Level) -> int:
        return sum(finding.level is level for finding in self.findings)

    def with_unchecked_allowed(self) -> DocumentReport:
        """Turns everything that could not be checked into warnings."""
        return replace(
            self,
            findings=tuple(
                each._replace(level=Level.WARNING) if each.rule == UNCHECKED else each
                for each in self.findings
            ),
        )
