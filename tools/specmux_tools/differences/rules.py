"""Every kind of change, by id: its impacts, whether a described schema lowers them, and its text.

Ids are stable: reports, policies and fingerprints contain them. Impacts follow Kubernetes' deprecation policy
(rule 1), sig-architecture's api_changes.md ("On compatibility"), KEP-4008 for ratcheting, and kube-openapi's
``pkg/schemaconv/smd.go`` for server-side apply of lists and maps.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from pkgutil import get_data
from types import MappingProxyType
from typing import Final, NamedTuple

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


class Impacts(NamedTuple):
    """The impact of one change on each of the three."""

    write: Impact
    read: Impact
    stored: Impact

    @property
    def severity(self) -> ChangeSeverity:
        """The highest of the three, at least a notice."""
        return ChangeSeverity(max(self))

    def lower(self) -> Impacts:
        """Each one step lower: breaking, warning, none."""
        return Impacts(*(Impact(max(impact - 1, Impact.NONE)) for impact in self))


_LETTERS: Final = {"B": Impact.BREAKING, "W": Impact.WARNING, "-": Impact.NONE}


@dataclass(frozen=True, slots=True)
class ChangeRule:
    """One kind of change."""

    id: str
    impacts: Impacts
    is_lowered_when_described: bool
    """Whether a described schema, which an apiserver does not enforce, lowers the impacts by one step."""
    says: str
    """The sentence for readers; ``{what}`` is replaced."""


def _rules() -> dict[str, ChangeRule]:
    """A line has the rule; its impacts on write, read and stored objects, with an asterisk if a described
    schema lowers them; and its sentence."""
    found = {}
    for line in (get_data(__package__, "rules.txt") or b"").decode().splitlines():
        rule, letters, says = line.split(None, 2)
        write, read, stored = (_LETTERS[letter] for letter in letters[:3])
        found[rule] = ChangeRule(rule, Impacts(write, read, stored), letters.endswith("*"), says)
    return found


RULES: Final[Mapping[str, ChangeRule]] = MappingProxyType(_rules())
