"""How much a change means, and to whom: clients that write, clients that read, objects already stored."""

from __future__ import annotations

from enum import IntEnum

from specmux_converters.deferred_dataclasses import dataclass


class Impact(IntEnum):
    """What a change means to one of the three; ordered."""

    NONE = 0
    WARNING = 1
    BREAKING = 2

    @property
    def word(self) -> str:
        return self.name.lower()


class ChangeSeverity(IntEnum):
    """What a change means as a whole; ordered."""

    NOTICE = 0
    WARNING = 1
    BREAKING = 2

    @property
    def word(self) -> str:
        return self.name.lower()


SEVERITIES = {severity.word: severity for severity in ChangeSeverity}


@dataclass(frozen=True, slots=True, order=True)
class Impacts:
    """What one change means to each of the three."""

    write: Impact
    read: Impact
    stored: Impact

    @property
    def severity(self) -> ChangeSeverity:
        """The worst of the three, else a notice."""
        return ChangeSeverity(max(self.write, self.read, self.stored))


def lowered(impact: Impact) -> Impact:
    """One step down: breaking, warning, none."""
    return Impact(max(impact - 1, Impact.NONE))
