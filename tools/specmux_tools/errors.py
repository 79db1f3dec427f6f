"""Errors of reading documents for people and clients.

SchemasError
├── UnknownName
│   ├── UnknownKind
│   └── UnknownField
└── InvalidPath    the text is no TYPE and no path of fields
"""

from __future__ import annotations


class SchemasError(Exception):
    """Base class of all errors of this package."""


class UnknownName(SchemasError):
    """``name``: as requested; ``similar``: at most three existing names, closest first."""

    def __init__(self, message: str, *, name: str, similar: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.name = name
        self.similar = similar


class UnknownKind(UnknownName):
    """No document has the kind, resource or short name."""


class UnknownField(UnknownName):
    """No field of the parent has this name."""


class InvalidPath(SchemasError):
    """The message says at which character the text becomes invalid."""
