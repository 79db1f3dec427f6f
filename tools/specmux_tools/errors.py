"""Errors of reading documents for people and clients.

SchemasError
├── UnknownKind    no document has the kind, resource or short name
├── UnknownField   the kind has no such field
└── InvalidPath    the text is no TYPE and no path of fields
"""

from __future__ import annotations


class SchemasError(Exception):
    """Base class of all errors of this package."""


class UnknownKind(SchemasError):
    """``name``: as requested; ``similar``: at most three existing names, closest first."""

    def __init__(self, message: str, *, name: str, similar: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.name = name
        self.similar = similar


class UnknownField(SchemasError):
    """No field of the parent has this name; ``similar`` as for UnknownKind."""

    def __init__(self, message: str, *, name: str, similar: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.name = name
        self.similar = similar


class InvalidPath(SchemasError):
    """The message says at which character the text becomes invalid."""
