"""A change at one place, with its impacts there."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Final

from specmux_converters.group_versions import GroupVersion
from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.differences.findings import Finding
from specmux_tools.differences.rules import RULES, ChangeSeverity, Impact, Impacts, lower_impact
from specmux_tools.differences.served import Basis

_ALPHA: Final = re.compile(r"v[0-9]+alpha[0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
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
    """The users of a kind: clients that write it, clients that read it, stored objects."""

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
        """The impacts of a change of a field. ``is_own_status``: the kind's controller writes it, through a
        subresource."""
        rule = RULES[finding.id]
        impacts = finding.impacts or rule.impacts
        if rule.is_lowered_when_described and self.basis is Basis.DESCRIBED:
            impacts = Impacts(
                lower_impact(impacts.write), lower_impact(impacts.read), lower_impact(impacts.stored)
            )
        if is_own_status:
            impacts = replace(impacts, write=lower_impact(impacts.write), stored=lower_impact(impacts.stored))
        return self.whole(_mask_impacts(impacts, direction))

    def whole(self, impacts: Impacts) -> Impacts:
        """The impacts of any other change. Alpha versions may break, unless their schemas are enforced."""
        if self.basis is Basis.ENFORCED or not _ALPHA.fullmatch(self.group_version.rpartition("/")[2]):
            return impacts
        return Impacts(
            *(min(impact, Impact.WARNING) for impact in (impacts.write, impacts.read, impacts.stored))
        )


def _mask_impacts(impacts: Impacts, direction: Direction) -> Impacts:
    return Impacts(
        impacts.write if direction.write else Impact.NONE,
        impacts.read if direction.read else Impact.NONE,
        impacts.stored if direction.stored else Impact.NONE,
    )
