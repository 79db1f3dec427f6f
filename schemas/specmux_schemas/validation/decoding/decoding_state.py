"""What one strict decoding has found so far, as sigs.k8s.io/json collects it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from specmux_converters.go.text import quoted
from specmux_schemas.validation.report import Check, Path, Severity, Violation, path_text

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
    """``path`` is where the walk stands. ``mismatch`` is the first value of a wrong type: the walk goes on,
    but nothing else counts then."""

    path: list[str | int] = field(default_factory=list)
    strict: list[StrictError] = field(default_factory=list)
    mismatch: Mismatch | None = None
    schema: list[Violation] = field(default_factory=list)
    _seen: set[str] = field(default_factory=set)

    def unknown(self, key: str) -> None:
        self._save(Check.UNKNOWN_FIELD, key)

    def duplicate(self, key: str) -> None:
        self._save(Check.DUPLICATE_FIELD, key)

    def _save(self, check: Check, key: str) -> None:
        if len(self.strict) >= MOST_STRICT_ERRORS:
            return
        path = (*self.path, key)
        text = f"{_WORDS[check]} {quoted(path_text(path))}"
        if text not in self._seen:
            self._seen.add(text)
            self.strict.append(StrictError(check, path, text))


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A value that does not fit its Go type. Raised where Go stops at once, else kept."""

    path: Path
    value: str
    """What Go calls the value: ``number 1.5``, ``object``."""
    go_type: str


class Stopped(Exception):
    """Where a type's own UnmarshalJSON fails, decoding ends: with a mismatch, or with a text of its own."""

    def __init__(self, path: Path, fault: Mismatch | str) -> None:
        super().__init__(fault)
        self.path = path
        self.fault = fault


_WORDS: Final = {Check.UNKNOWN_FIELD: "unknown field", Check.DUPLICATE_FIELD: "duplicate field"}
