"""The findings of one strict decoding, as sigs.k8s.io/json collects it."""

from __future__ import annotations

from collections.abc import Sized
from dataclasses import field
from typing import Final

from specmux_converters.go.text import quote_text
from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.validation.report import MOST_VIOLATIONS, Check, Path, Severity, Violation, path_text

MOST_STRICT_ERRORS: Final = 100
"""kubernetes_patch.go: saveStrictError."""


@dataclass(frozen=True, slots=True)
class StrictError:
    """An unknown or a duplicate field."""

    check: Check
    path: Path
    text: str

    def violation(self, severity: Severity, hint: str | None = None) -> Violation:
        return Violation(severity, self.check, self.path, self.text, hint=hint)


@dataclass(slots=True)
class Decoding:
    """``path`` is where the walk stands. The walk goes on behind a value of a wrong type, but an apiserver
    says one alone: the first of those that ``stopped`` it, else the first of all."""

    path: list[str | int] = field(default_factory=list)
    strict: list[StrictError] = field(default_factory=list)
    mismatches: list[Mismatch] = field(default_factory=list)
    stopped: Mismatch | None = None
    schema: list[Violation] = field(default_factory=list)
    left_out: int = 0
    """Violations of the schema, and wrong types, that are counted and not listed."""
    _seen: set[str] = field(default_factory=set)

    @property
    def mismatch(self) -> Mismatch | None:
        """The mismatch that decoding fails with."""
        return self.stopped or (self.mismatches[0] if self.mismatches else None)

    def note_mismatch(self, value: str, go_type: str) -> None:
        """A value of a wrong type, or, without a type, a text of its own."""
        if self.has_room(self.mismatches):
            self.mismatches.append(Mismatch(tuple(self.path), value, go_type))

    def stop(self, value: str, go_type: str = "") -> None:
        """Record a mismatch of a type's own UnmarshalJSON: Go goes no further."""
        self.note_mismatch(value, go_type)
        self.stopped = self.stopped or Mismatch(tuple(self.path), value, go_type)

    def has_room(self, found: Sized) -> bool:
        """One more is listed; else it is counted."""
        if len(found) < MOST_VIOLATIONS:
            return True
        self.left_out += 1
        return False

    def note_unknown(self, key: str) -> None:
        self._save(Check.UNKNOWN_FIELD, key)

    def note_duplicate(self, key: str) -> None:
        self._save(Check.DUPLICATE_FIELD, key)

    def _save(self, check: Check, key: str) -> None:
        if len(self.strict) >= MOST_STRICT_ERRORS:
            return
        error = strict_error(check, (*self.path, key))
        if error.text not in self._seen:
            self._seen.add(error.text)
            self.strict.append(error)


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A value that does not fit its Go type."""

    path: Path
    value: str
    """Go's name for the value: ``number 1.5``, ``object``."""
    go_type: str


def strict_error(check: Check, path: Path) -> StrictError:
    return StrictError(check, path, f"{_WORDS[check]} {quote_text(path_text(path))}")


def unknown_field(path: Path, place: str) -> StrictError:
    """The error of a custom resource, in which nothing is escaped (customresource_handler.go)."""
    return StrictError(Check.UNKNOWN_FIELD, path, f'unknown field "{place}"')


_WORDS: Final = {Check.UNKNOWN_FIELD: "unknown field", Check.DUPLICATE_FIELD: "duplicate field"}
