"""Everything this package raises.

ConverterError
├── LimitExceeded      larger or deeper than the caller allows
├── InvalidDocument    the bytes are not a document of the kind they claim to be
├── InvalidArgument    a caller asks for what there is not, or with what is no document (a ValueError, too)
│   └── InvalidSchemas     schemas that cannot be converted, all that is wrong with them
└── Unrepresentable    a valid document that the asked encoding cannot carry
"""

from __future__ import annotations

from collections.abc import Sequence

TEXT_MAX = 200
"""Characters of foreign text that an error repeats; the rest is cut, since it may reach a log."""


def cut(text: str) -> str:
    """Foreign text, printable and short enough for one log line."""
    shown = text[:TEXT_MAX].encode("unicode_escape").decode("ascii")
    return shown if len(text) <= TEXT_MAX else f"{shown}… ({len(text)} characters)"


class ConverterError(Exception):
    """The input was refused. ``pointer`` is the JSON pointer (RFC 6901) of the place, "" for the whole."""

    def __init__(self, reason: str, *, pointer: str = "") -> None:
        super().__init__(f"{cut(pointer) or '(document)'}: {reason}")
        self.reason = reason
        self.pointer = pointer
        self.line: int | None = None
        """Of the text, from 1, where its reader counts lines."""

    def __reduce__(self) -> tuple[object, ...]:
        # The default would call __init__ with the joined message when an error crosses a process pool.
        return (_rebuild, (type(self), self.reason, self.pointer))


class LimitExceeded(ConverterError):
    """The input is larger, deeper or wider than the caller allows."""


class InvalidDocument(ConverterError):
    """The bytes are not what they claim to be."""


class NoDocument(InvalidDocument):
    """Read, and no description of an API: another file that lies beside them."""


class InvalidSchemas(InvalidDocument):
    """Schemas that cannot be converted: ``errors`` has all that is wrong, each ``<where>: <text>``."""

    def __init__(self, errors: Sequence[str]) -> None:
        super().__init__("\n".join(errors))
        self.errors = tuple(errors)

    def __reduce__(self) -> tuple[object, ...]:
        return (InvalidSchemas, (self.errors,))


class InvalidArgument(ConverterError, ValueError):
    """What was asked for does not exist, or was asked with a value of another kind."""

    def __init__(self, reason: str, *, pointer: str = "") -> None:
        super().__init__(reason, pointer=pointer)
        self.args = (reason,)  # it is about no place in a document


class Unrepresentable(ConverterError):
    """The document is sound, but the asked encoding has no form for a part of it."""


def _rebuild(kind: type[ConverterError], reason: str, pointer: str) -> ConverterError:
    return kind(reason, pointer=pointer)
