"""The result of validating an object: violations, in order, with an apiserver's text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from enum import StrEnum
from typing import Any, Final, TypeAlias

from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.resources import NO_KIND, GroupVersionKind

Path: TypeAlias = tuple[str | int, ...]
"""Keys and indices from the root of the object."""

MOST_VIOLATIONS: Final = 300
"""Violations of one object that are listed; further ones are counted."""


class Directive(StrEnum):
    """The treatment of unknown and duplicate fields (KEP-2885); other violations are always errors."""

    STRICT = "Strict"
    WARN = "Warn"
    IGNORE = "Ignore"


class UnionAlgorithm(StrEnum):
    OFF = "off"
    SEED = "seed"
    """The KEP's algorithm since 2022."""
    LEGACY = "legacy"
    """The algorithm of servers from 2019 to 2023."""


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"
    """Something that could not be checked."""


class Check(StrEnum):
    """The check that found a violation."""

    DECODING = "decoding"
    """The body cannot be decoded as its kind; nothing else is checked."""
    UNKNOWN_FIELD = "unknown-field"
    DUPLICATE_FIELD = "duplicate-field"
    SCHEMA = "schema"
    METADATA = "metadata"
    LIST = "list-type"
    RULE = "rule"
    """``x-kubernetes-validations``."""
    UNION = "union"
    """``x-kubernetes-unions``, if requested."""
    DEFINITION = "definition"
    """A rule of a CustomResourceDefinition itself."""
    NOT_CHECKED = "not-checked"
    """A rule or pattern that could not be evaluated."""
    LEFT_OUT = "left-out"
    """The number of violations that are not listed."""


@dataclass(frozen=True, slots=True)
class Violation:
    severity: Severity
    check: Check
    path: Path
    message: str
    """An apiserver's text if there is one, including the field."""
    line: int | None = None
    """From 1, in the given text; None without a text or a place."""
    column: int | None = None
    hint: str | None = None
    """A suggested name."""

    def as_document(self) -> dict[str, Any]:
        """The JSON output, without empty fields."""
        fields = {
            "severity": self.severity.value,
            "check": self.check.value,
            "path": path_text(self.path),
            "message": self.message,
            "line": self.line,
            "column": self.column,
            "hint": self.hint,
        }
        return {name: value for name, value in fields.items() if value is not None}


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """The report on one object. Equal objects have equal reports, except for lines and columns."""

    kind: GroupVersionKind | None
    """None if the body does not state it."""
    directive: Directive
    violations: tuple[Violation, ...] = ()
    fatal: str | None = None
    """Why the body cannot be decoded, in an apiserver's words."""
    strict_errors: tuple[str, ...] = ()
    """Errors of strict decoding grouped as by an apiserver: all duplicates of a YAML text are one."""
    name: str = ""
    namespace: str = ""
    is_known: bool = True
    """False if no schema describes the kind."""
    is_built_in: bool = False
    """Whether it is a Go type, for which an apiserver has rules in code that documents lack."""
    is_list: bool = False
    """Whether it is a list, whose items have reports of their own."""
    is_update: bool = False
    """Whether a stored object was found that this one replaces."""
    stored: Any = field(default=None, compare=False, repr=False)
    """The object as it would be stored, if the validator keeps it: pruned, with its schema's defaults and
    normalized unions, but without what an apiserver adds in code."""
    status: Mapping[str, Any] | None = field(default=None, compare=False)
    """The Status of a request refused before validation: an update of another object, or a patch that cannot
    be applied."""

    @property
    def is_valid(self) -> bool:
        return not any(violation.severity is Severity.ERROR for violation in self.violations)

    @property
    def is_complete(self) -> bool:
        """Whether everything was checked: an object must not be called valid otherwise."""
        return not any(violation.check is Check.NOT_CHECKED for violation in self.violations)

    @property
    def full_name(self) -> str:
        """``shop/web``, or the name alone without a namespace."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def label(self) -> str:
        """``Deployment shop/web``."""
        return " ".join(filter(None, (self.kind.kind if self.kind else "object", self.full_name)))

    @property
    def kind_label(self) -> str:
        """``Deployment@apps/v1``."""
        kind = self.kind
        return f"{kind.kind}@{kind.group or 'core'}/{kind.version}" if kind else "unknown"

    def move_lines(self, lines: int) -> ValidationReport:
        """The report with line numbers increased by the number of preceding lines."""
        if not lines:
            return self
        violations = (
            each if each.line is None else replace(each, line=each.line + lines) for each in self.violations
        )
        return replace(self, violations=tuple(violations))

    def as_document(self) -> dict[str, Any]:
        """The JSON output."""
        kind = self.kind or NO_KIND
        return {
            "group": kind.group,
            "version": kind.version,
            "kind": kind.kind,
            "name": self.name,
            "namespace": self.namespace,
            **({"operation": "update"} if self.is_update else {}),
            "valid": self.is_valid,
            "complete": self.is_complete,
            "violations": [violation.as_document() for violation in self.violations],
        }


def bound_violations(violations: Iterable[Violation], left_out: int = 0) -> list[Violation]:
    """The first MOST_VIOLATIONS, errors first, in order; then one that counts the rest. ``left_out``: errors
    that were never listed."""
    kept: list[Violation] = []
    errors = 0
    for violation in violations:
        is_error = violation.severity is Severity.ERROR
        errors += is_error
        if len(kept) < MOST_VIOLATIONS:
            kept.append(violation)
            continue
        left_out += 1
        if is_error and errors <= MOST_VIOLATIONS:
            other = next(n for n in reversed(range(len(kept))) if kept[n].severity is not Severity.ERROR)
            del kept[other]
            kept.append(violation)
    if left_out:
        severity = Severity.ERROR if errors else Severity.NOTE
        kept.append(Violation(severity, Check.LEFT_OUT, (), f"and {left_out} more"))
    return kept


def path_text(path: Path) -> str:
    """A path in the form of strict decoding: keys joined with dots, indices in brackets, without escapes."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")
