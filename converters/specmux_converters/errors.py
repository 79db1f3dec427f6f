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
"""Characters of foreign text quoted by an error; the rest is cut, since it may reach a log."""


def cut(text: str) -> str:
    """Foreign text made printable and short enough for a log line."""
    shown = text[:TEXT_MAX].encode("unicode_escape").decode("ascii")
    return shown if len(text) <= TEXT_MAX else f"{shown}… ({len(text)} characters)"


class ConverterError(Exception):
    """The input was refused. ``pointer``: the JSON pointer (RFC 6901) of the place, "" for the whole
    input."""

    def __init__(self, reason: str, *, pointer: str = "") -> None:
        super().__init__(f"{cut(pointer) or '(document)'}: {reason}")
        self.reason = reason
        self.pointer = pointer
        self.line: int | None = None
        """Line of the text, from 1, if its parser counts lines."""

    def __reduce__(self) -> tuple[object, ...]:
        # The default would call __init__ with the joined message when an error crosses a process pool.
        return (_rebuild, (type(self), self.reason, self.pointer))


class LimitExceeded(ConverterError):
    """The input is larger, deeper or wider than the limits."""


class InvalidDocument(ConverterError):
    """The bytes are not a document of the declared kind."""


class NoDocument(InvalidDocument):
    """The input is valid but does not describe an API, such as another file in the folder."""


class InvalidSchemas(InvalidDocument):
    """Schemas that cannot be converted: ``errors`` lists every fault as ``<where>: <text>``."""

    def __init__(self, errors: Sequence[str]) -> None:
        super().__init__("\n".join(errors))
        self.errors = tuple(errors)

    def __reduce__(self) -> tuple[object, ...]:
        return (InvalidSchemas, (self.errors,))


class InvalidArgument(ConverterError, ValueError):
    """The requested thing does not exist, or an argument has the wrong type."""

    def __init__(self, reason: str, *, pointer: str = "") -> None:
        super().__init__(reason, pointer=pointer)
        self.args = (reason,)  # it is about no place in a document


class Unrepresentable(ConverterError):
    """The document is valid, but the encoding cannot represent a part of it."""


def _rebuild(kind: type[ConverterError], reason: str, pointer: str) -> ConverterError:
    return kind(reason, pointer=pointer)
