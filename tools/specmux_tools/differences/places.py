"""A change at one place, with its impacts there."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Final

from specmux_converters.group_versions import GroupVersion
from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.differences.findings import Finding
from specmux_tools.differences.impacts import ChangeSeverity, Impact, Impacts, lowered
from specmux_tools.differences.rules import RULES
from specmux_tools.differences.served import Basis

_ALPHA: Final = re.compile(r"v[0-9]+alpha[0-9]+")


@dataclass(frozen=True, slots=True)
class Place:
    """``kind``: "METHOD /path" for operations without one, "" for whole group-versions."""

    id: str
    group_version: GroupVersion
    kind: str
    path: str
    what: Any
    impacts: Impacts
    old: Any = None
    new: Any = None
    origin: str = ""
    """Common to all places that the same edit changed."""

    @property
    def severity(self) -> ChangeSeverity:
        return self.impacts.severity


@dataclass(frozen=True, slots=True)
class Direction:
    """Who uses a kind: clients that write it, clients that read it, stored objects."""

    write: bool = True
    read: bool = True
    stored: bool = True


EVERYBODY: Final = Direction()


@dataclass(frozen=True, slots=True)
class Judge:
    """Determines the impacts of a change in one group-version."""

    group_version: GroupVersion
    basis: Basis

    def field(self, finding: Finding, direction: Direction, *, is_own_status: bool) -> Impacts:
        """Of a field. ``is_own_status``: it is written through a subresource, by the kind's controller."""
        rule = RULES[finding.id]
        impacts = finding.impacts or rule.impacts
        if rule.is_lowered_when_described and self.basis is Basis.DESCRIBED:
            impacts = Impacts(lowered(impacts.write), lowered(impacts.read), lowered(impacts.stored))
        if is_own_status:
            impacts = replace(impacts, write=lowered(impacts.write), stored=lowered(impacts.stored))
        return self.whole(_masked(impacts, direction))

    def whole(self, impacts: Impacts) -> Impacts:
        """Of anything but a field. Alpha versions may break, unless their schemas are enforced."""
        if self.basis is Basis.ENFORCED or not _ALPHA.fullmatch(self.group_version.rpartition("/")[2]):
            return impacts
        return Impacts(
            *(min(impact, Impact.WARNING) for impact in (impacts.write, impacts.read, impacts.stored))
        )


def _masked(impacts: Impacts, direction: Direction) -> Impacts:
    return Impacts(
        impacts.write if direction.write else Impact.NONE,
        impacts.read if direction.read else Impact.NONE,
        impacts.stored if direction.stored else Impact.NONE,
    )
