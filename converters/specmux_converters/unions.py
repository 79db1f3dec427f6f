"""Unions (KEP-1027) that a published schema declares: ``x-kubernetes-unions``, in all its historical forms,
and ``oneOf`` whose branches require one field each. Of certain fields of an object only one may be set,
optionally selected by a discriminator. ``specmux_tools.unions`` finds what violates one.

Kubernetes publishes names of Go fields in the place of discriminator values: for three of its types they
differ, and a validator that trusts them rejects valid Pods. ``VALUES`` corrects them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any, Final, TypeAlias

from specmux_converters.json_values import mapping, text, within
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

    def read_discriminator(self, value: Object | None) -> str:
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
        if old is None or self.read_discriminator(old) != self.read_discriminator(new):
            return False
        return self.set_fields(old) == self.set_fields(new)


def without(value: Object, names: Iterable[str]) -> dict[str, Any]:
    """A copy without ``names``."""
    dropped = frozenset(names)
    return {name: item for name, item in value.items() if name not in dropped}


EXTENSION: Final = "x-kubernetes-unions"

_BY_FIELD: Final = ("fields-to-discriminateBy", "fieldsToDiscriminateBy", "fields-to-discriminator-value")
"""Objects that map each field to its discriminator value."""

_BY_MEMBER: Final = ("fieldMembers", "fields", "members")
"""Keywords of the KEP's first drafts: lists of members, or an object that maps each value to its field."""

VALUES: Final[Mapping[tuple[str, str], str]] = {
    ("SeccompProfile", "localhostProfile"): "Localhost",
    ("AppArmorProfile", "localhostProfile"): "Localhost",
    ("LimitResponse", "queuing"): "Queue",
}
"""Discriminator values by type and field, where the published ones are wrong (Kubernetes 1.28 to 1.36)."""

OPTIONAL: Final[frozenset[tuple[str, str]]] = frozenset(
    {("LimitResponse", "queuing"), ("PriorityLevelConfigurationSpec", "exempt")}
)
"""Fields that their value does not require, according to the comments in Kubernetes' types."""

_LEAST: Final = 2
"""Least number of fields in a choice."""

_SILENT: Final = frozenset(("type", "description", "title", "properties"))


@dataclass(frozen=True, slots=True)
class DeclaredUnions:
    """``faults``: why declarations other than ``unions`` cannot be read."""

    unions: tuple[Union, ...] = ()
    faults: tuple[str, ...] = ()


NO_UNIONS: Final = DeclaredUnions()


def declared_unions(schema: Mapping[str, Any], component: str = "") -> DeclaredUnions:
    """The unions of one object's schema.

    ``component``: name of the schema, by which published values are corrected.
    """
    entries = [*_listed_entries(schema), *_on_properties(schema)]
    branched = _of_branches(schema)
    if not entries and branched is None:
        return NO_UNIONS
    kind = component.rpartition(".")[2]
    unions: list[Union] = [] if branched is None else [branched]
    faults: list[str] = []
    for entry in entries:
        union = _union(entry, schema, kind) if isinstance(entry, dict) else None
        fault = "an entry is no union" if union is None else _fault(union, schema, unions)
        if union is None or fault:
            faults.append(f"{EXTENSION}: {fault}")
        else:
            unions.append(union)
    return DeclaredUnions(tuple(unions), tuple(faults))


def _listed_entries(schema: Mapping[str, Any]) -> list[Any]:
    listed = schema.get(EXTENSION)
    return listed if isinstance(listed, list) else [] if listed is None else [listed]


def _fault(union: Union, schema: Mapping[str, Any], others: list[Union]) -> str:
    """The reason that an entry cannot be evaluated; "" if it can."""
    if not union.members:
        return "an entry has no member that can be read"
    properties = schema.get("properties")
    if isinstance(properties, dict) and properties:
        named = (*(member.field for member in union.members), union.discriminator)
        missing = [name for name in named if name is not None and name not in properties]
        if missing:
            return f"{missing[0]} is no field of the object"
    if union.discriminator is not None and union.allowed is not None:
        odd = [member.value for member in union.members if member.value not in union.allowed]
        if odd:
            return f"{odd[0]} is no value of the discriminator {union.discriminator}"
    if any(union.fields & other.fields for other in others if other.form is union.form):
        return "two unions have a field in common"
    return ""


def _of_branches(schema: Mapping[str, Any]) -> Union | None:
    """A ``oneOf`` whose branches require one field each; a branch that forbids all of them allows none to be
    set."""
    branches = schema.get("oneOf")
    if not isinstance(branches, list):
        return None
    names: list[str] = []
    forbidden: list[list[str]] = []
    for branch in branches:
        match branch:
            case {"required": [str(name)], **rest} if _says_nothing(rest):
                names.append(name)
            case {"not": {"anyOf": [*inner], **rest}, **more} if not rest and not more:
                forbidden.append([name for each in inner for name in _required_alone(each)])
            case {"not": {"required": [str(name)], **rest}, **more} if not rest and not more:
                forbidden.append([name])
            case _:
                return None
    if (
        len(names) < _LEAST
        or len(set(names)) < len(names)
        or len(forbidden) > 1
        or any(set(each) != set(names) for each in forbidden)
    ):
        return None
    members = tuple(Member(name, name) for name in names)
    return Union(members, form=UnionForm.ONE_OF, takes_none=bool(forbidden))


def _says_nothing(rest: Mapping[Any, Any]) -> bool:
    """Whether the siblings of ``required`` constrain nothing."""
    properties = rest.get("properties", {})
    return not rest.keys() - _SILENT and isinstance(properties, dict) and not any(properties.values())


def _required_alone(branch: Any) -> list[str]:
    match branch:
        case {"required": [str(name)], **rest} if not rest:
            return [name]
    return [""]


def _on_properties(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Unions declared at their discriminator."""
    for name, inner in mapping(schema.get("properties")).items():
        if isinstance(inner, dict) and "fieldMembers" in inner:
            yield {"discriminator": name, "fieldMembers": inner["fieldMembers"]}


def _union(entry: Mapping[str, Any], schema: Mapping[str, Any], kind: str) -> Union | None:
    """None if a part of it has another type."""
    name = entry.get("discriminator")
    members = _members(entry)
    if not isinstance(name, str | None) or members is None:
        return None
    return Union(
        members=tuple(
            Member(
                member.field,
                VALUES.get((kind, member.field), member.value),
                member.is_optional or (kind, member.field) in OPTIONAL,
            )
            for member in members
        ),
        discriminator=name,
        allowed=allowed_values(schema, name),
        deduces=entry.get("deduceInvalidDiscriminator") is True,
    )


def _members(entry: Mapping[str, Any]) -> list[Member] | None:
    """None if any of them cannot be read."""
    for key in (*_BY_FIELD, *_BY_MEMBER):
        match entry.get(key):
            case None:
                continue
            case dict(named) if all(isinstance(each, str) for each in named.values()):
                is_by_field = key in _BY_FIELD
                return [
                    Member(*((name, said) if is_by_field else (said, name))) for name, said in named.items()
                ]
            case list(listed) if key in _BY_MEMBER:
                found = [_read_member(member) for member in listed]
                return [member for member in found if member is not None] if None not in found else None
            case _:
                return None
    return []


def _read_member(member: Any) -> Member | None:
    match member:
        case {"fieldName": str(name)}:
            value = member.get("discriminatorValue", member.get("memberName", name))
            return Member(name, value if isinstance(value, str) else name, member.get("optional") is True)
        case str():
            return Member(member, member)
    return None


def allowed_values(schema: Mapping[str, Any], discriminator: str | None) -> frozenset[str] | None:
    """The enum of the discriminator; None if it has none."""
    listed = within(schema.get("properties"), discriminator or "").get("enum")
    if not isinstance(listed, list):
        return None
    return frozenset(value for value in listed if isinstance(value, str))
