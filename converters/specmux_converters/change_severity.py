"""The severity of a change between two documents."""

from __future__ import annotations

from enum import IntEnum


class ChangeSeverity(IntEnum):
    """The overall severity of a change; ordered."""

    NOTICE = 0
    WARNING = 1
    BREAKING = 2

    @property
    def word(self) -> str:
        return self.name.lower()
