"""The impact of a change on clients that write, clients that read, and stored objects."""

from __future__ import annotations

from enum import IntEnum

from specmux_converters.change_severity import ChangeSeverity as ChangeSeverity
from specmux_converters.lazy.dataclasses import dataclass


class Impact(IntEnum):
    """The impact on one of the three; ordered."""

    NONE = 0
    WARNING = 1
    BREAKING = 2

    @property
    def word(self) -> str:
        return self.name.lower()


SEVERITIES = {severity.word: severity for severity in ChangeSeverity}


@dataclass(frozen=True, slots=True, order=True)
class Impacts:
    """The impact of one change on each of the three."""

    write: Impact
    read: Impact
    stored: Impact

    @property
    def severity(self) -> ChangeSeverity:
        """The highest of the three, at least a notice."""
        return ChangeSeverity(max(self.write, self.read, self.stored))


def lowered(impact: Impact) -> Impact:
    """One step lower: breaking, warning, none."""
    return Impact(max(impact - 1, Impact.NONE))
