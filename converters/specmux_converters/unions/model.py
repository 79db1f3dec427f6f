"""Unions (KEP-1027): of some fields of an object only one may be set, and a discriminator may say which."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any, TypeAlias

from specmux_converters.deferred_dataclasses import dataclass

Object: TypeAlias = Mapping[str, Any]


class UnionForm(StrEnum):
    """The keyword that says so."""

    EXTENSION = "x-kubernetes-unions"
    """No apiserver checks it."""
    ONE_OF = "oneOf"
    RULES = "x-kubernetes-validations"


@dataclass(frozen=True, slots=True)
class Member:
    """A field, and the discriminator's value that selects it."""

    field: str
    value: str
    is_optional: bool = False
    """The value does not require the field."""


@dataclass(frozen=True, slots=True)
class Union:
    members: tuple[Member, ...]
    discriminator: str | None = None
    """The field that says which member is meant; None for a union without."""
    allowed: frozenset[str] | None = None
    """Values of the discriminator; None where they are not known."""
    deduces: bool = False
    """Algorithm B: the discriminator is set from the one field that is set."""
    form: UnionForm = UnionForm.EXTENSION
    takes_none: bool = False
    """Without a discriminator: no member has to be set."""
    fields: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", frozenset(member.field for member in self.members))

    def member(self, value: str) -> Member | None:
        """The member that ``value`` selects."""
        return next((member for member in self.members if member.value == value), None)

    def value_of(self, name: str) -> str:
        """The discriminator's value for a field; "" for what is no member."""
        return next((member.value for member in self.members if member.field == name), "")

    def said(self, value: Object | None) -> str:
        """What the discriminator says; "" where it says nothing."""
        if value is None or self.discriminator is None:
            return ""
        said = value.get(self.discriminator)
        return said if isinstance(said, str) else ""

    def set_fields(self, value: Object | None) -> frozenset[str]:
        """Members that are there and not null."""
        if value is None:
            return frozenset()
        return frozenset(name for name in self.fields if value.get(name) is not None)

    def is_unchanged(self, old: Object | None, new: Object) -> bool:
        """Whether an update leaves the discriminator, and which members are set, as they are stored."""
        if old is None or self.said(old) != self.said(new):
            return False
        return self.set_fields(old) == self.set_fields(new)


def without(value: Object, names: Iterable[str]) -> dict[str, Any]:
    """A copy in which ``names`` are missing."""
    dropped = frozenset(names)
    return {name: item for name, item in value.items() if name not in dropped}
