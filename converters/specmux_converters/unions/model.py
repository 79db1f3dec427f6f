"""Unions (KEP-1027): of certain fields of an object only one may be set, optionally selected by a
discriminator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any, TypeAlias

from specmux_converters.json_values import text
from specmux_converters.lazy.dataclasses import dataclass

Object: TypeAlias = Mapping[str, Any]


class UnionForm(StrEnum):
    """The keyword that declares the union."""

    EXTENSION = "x-kubernetes-unions"
    """Not enforced by any apiserver."""
    ONE_OF = "oneOf"
    RULES = "x-kubernetes-validations"


@dataclass(frozen=True, slots=True)
class Member:
    """A field, and the discriminator's value that selects it."""

    field: str
    value: str
    is_optional: bool = False
    """Whether the value does not require the field."""


@dataclass(frozen=True, slots=True)
class Union:
    members: tuple[Member, ...]
    discriminator: str | None = None
    """The field that selects a member; None if there is none."""
    allowed: frozenset[str] | None = None
    """Values of the discriminator; None if unknown."""
    deduces: bool = False
    """Algorithm B: the discriminator is derived from the one field that is set."""
    form: UnionForm = UnionForm.EXTENSION
    takes_none: bool = False
    """Without a discriminator: whether all members may be absent."""
    fields: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", frozenset(member.field for member in self.members))

    def member(self, value: str) -> Member | None:
        """The member that ``value`` selects."""
        return next((member for member in self.members if member.value == value), None)

    def value_of(self, name: str) -> str:
        """The discriminator's value for a field; "" if it is not a member."""
        return next((member.value for member in self.members if member.field == name), "")

    def said(self, value: Object | None) -> str:
        """The discriminator's value; "" if absent."""
        if value is None or self.discriminator is None:
            return ""
        return text(value.get(self.discriminator))

    def set_fields(self, value: Object | None) -> frozenset[str]:
        """Members that are present and not null."""
        if value is None:
            return frozenset()
        return frozenset(name for name in self.fields if value.get(name) is not None)

    def is_unchanged(self, old: Object | None, new: Object) -> bool:
        """Whether an update leaves the discriminator and the set of present members unchanged."""
        if old is None or self.said(old) != self.said(new):
            return False
        return self.set_fields(old) == self.set_fields(new)


def without(value: Object, names: Iterable[str]) -> dict[str, Any]:
    """A copy without ``names``."""
    dropped = frozenset(names)
    return {name: item for name, item in value.items() if name not in dropped}
