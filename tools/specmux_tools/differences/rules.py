"""Every kind of change, by id: its impacts, whether a described schema lowers them, and its text.

Ids are stable: reports, policies and fingerprints contain them. Impacts follow Kubernetes' deprecation policy
(rule 1), sig-architecture's api_changes.md ("On compatibility"), KEP-4008 for ratcheting, and kube-openapi's
``pkg/schemaconv/smd.go`` for server-side apply of lists and maps.
"""

from __future__ import annotations

from collections.abc import Mapping
from pkgutil import get_data
from types import MappingProxyType
from typing import Final

from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.differences.impacts import Impact, Impacts

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
