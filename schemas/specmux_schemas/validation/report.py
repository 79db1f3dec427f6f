"""What a check found: violations, in order, and the words an apiserver would use for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from enum import StrEnum
from typing import Any, Final, TypeAlias

from specmux_converters.deferred_dataclasses import dataclass
from specmux_schemas.resources import GroupVersionKind

Path: TypeAlias = tuple[str | int, ...]
"""Keys and indices from the root of the object."""

MOST_VIOLATIONS: Final = 300
"""Of one object; the rest is counted."""


class Directive(StrEnum):
    """What becomes of unknown and duplicate fields (KEP-2885); other violations are errors always."""

    STRICT = "Strict"
    WARN = "Warn"
    IGNORE = "Ignore"


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"
    """What could not be checked."""


class Check(StrEnum):
    """Which check found a violation."""

    DECODING = "decoding"
    """The body cannot be read as its kind: nothing else is checked."""
    UNKNOWN_FIELD = "unknown-field"
    DUPLICATE_FIELD = "duplicate-field"
    SCHEMA = "schema"
    METADATA = "metadata"
    LIST = "list-type"
    RULE = "rule"
    """``x-kubernetes-validations``."""
    UNION = "union"
    """``x-kubernetes-unions``, where that is asked for."""
    DEFINITION = "definition"
    """A CustomResourceDefinition itself."""
    NOT_CHECKED = "not-checked"
    """A rule or a pattern that could not be evaluated here."""
    LEFT_OUT = "left-out"
    """How many violations are not listed."""


@dataclass(frozen=True, slots=True)
class Violation:
    severity: Severity
    check: Check
    path: Path
    message: str
    """In the apiserver's words where it has some, the field included."""
    line: int | None = None
    """From 1, in the text that was given; None where there is no text, or no place."""
    column: int | None = None
    hint: str | None = None
    """A name that may have been meant."""

    def as_document(self) -> dict[str, Any]:
        """For JSON output; fields without a value are left out."""
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
    """Of one object. Equal objects have equal reports, but for lines and columns."""

    kind: GroupVersionKind | None
    """None where the body does not say."""
    directive: Directive
    violations: tuple[Violation, ...] = ()
    fatal: str | None = None
    """Why the body cannot be decoded, as an apiserver says it."""
    strict_errors: tuple[str, ...] = ()
    """The texts of strict decoding as an apiserver groups them: all duplicates of a YAML text are one."""
    name: str = ""
    namespace: str = ""
    is_known: bool = True
    """False where no schema describes the kind."""
    is_built_in: bool = False
    """Of a Go type: an apiserver has rules in code for it that no document tells."""
    is_update: bool = False
    """A stored object was found that this one replaces."""
    stored: Any = field(default=None, compare=False, repr=False)
    """The object as it would be stored, where the validator keeps it: pruned, with its schema's defaults,
    unions normalized; without what an apiserver adds in code."""
    status: Mapping[str, Any] | None = field(default=None, compare=False)
    """The Status with which an apiserver refuses the request before it validates the object: an update of
    another object, a patch that does not apply."""

    @property
    def is_valid(self) -> bool:
        return not any(violation.severity is Severity.ERROR for violation in self.violations)

    @property
    def is_complete(self) -> bool:
        """Everything was looked at: what could not be is no reason to call an object valid."""
        return not any(violation.check is Check.NOT_CHECKED for violation in self.violations)

    @property
    def full_name(self) -> str:
        """``shop/web``, or the name alone of what has no namespace."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    def moved(self, lines: int) -> ValidationReport:
        """With the lines of a text that has so many before this one."""
        if not lines:
            return self
        violations = (
            each if each.line is None else replace(each, line=each.line + lines) for each in self.violations
        )
        return replace(self, violations=tuple(violations))

    def as_document(self) -> dict[str, Any]:
        """For JSON output."""
        return {
            "group": self.kind.group if self.kind else "",
            "version": self.kind.version if self.kind else "",
            "kind": self.kind.kind if self.kind else "",
            "name": self.name,
            "namespace": self.namespace,
            **({"operation": "update"} if self.is_update else {}),
            "valid": self.is_valid,
            "complete": self.is_complete,
            "violations": [violation.as_document() for violation in self.violations],
        }


def bounded(violations: Iterable[Violation], left_out: int = 0) -> list[Violation]:
    """The first MOST_VIOLATIONS, errors before all others, in their order; then one that counts the rest.
    ``left_out``: errors that nobody has listed."""
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
    """As strict decoding writes a path: keys joined with dots, indices in brackets, nothing escaped."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    text = "".join(parts)
    return text.removeprefix(".")
