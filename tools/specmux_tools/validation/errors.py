"""Inputs with which validation does not begin: a body, a directive or a form that it cannot take.

ValidationError
├── Undecodable      a body that an apiserver would not decode, in its words
├── InvalidDirective  a value of ``fieldValidation`` that is none
└── UnsupportedMediaType  a body in a form that is not read
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from specmux_tools.validation.report import Path


class ValidationError(Exception):
    """Base class of these errors. ``text``: the message."""

    @property
    def text(self) -> str:
        return str(self)


class Undecodable(ValidationError):
    """``text``: an apiserver's message. ``path`` or ``offset`` (in bytes): the place, if known. ``others``:
    texts and paths of further errors."""

    def __init__(
        self,
        text: str,
        *,
        path: Path = (),
        offset: int | None = None,
        line: int | None = None,
        column: int | None = None,
        others: Iterable[tuple[str, Path]] = (),
    ) -> None:
        super().__init__(text)
        self.path = path
        self.offset = offset
        self.line = line
        self.column = column
        self.others = tuple(others)


class PatchError(ValidationError):
    """A patch that cannot be applied; ``text``: Go's reason."""


class InvalidDirective(ValidationError):
    """``status``: an apiserver's answer to the request, ``text``: its message."""

    def __init__(self, text: str, *, status: dict[str, Any]) -> None:
        super().__init__(text)
        self.status = status


class UnsupportedMediaType(ValidationError):
    """The message lists the supported ones."""
