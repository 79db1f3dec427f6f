"""Unions that a published schema declares: ``x-kubernetes-unions``, in each of the forms there were.

Kubernetes publishes the names of Go fields where values of the discriminator belong: for three of its types
these are not the same, and a validator that believes them refuses valid Pods. ``VALUES`` corrects them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from specmux_schemas.unions.model import Member, Union

EXTENSION: Final = "x-kubernetes-unions"

_BY_FIELD: Final = ("fields-to-discriminateBy", "fieldsToDiscriminateBy", "fields-to-discriminator-value")
"""Objects that tell the value of each field."""

_BY_MEMBER: Final = ("fieldMembers", "fields", "members")
"""Of the KEP's first drafts: lists of members, or an object that tells the field of each value."""

VALUES: Final[Mapping[tuple[str, str], str]] = {
    ("SeccompProfile", "localhostProfile"): "Localhost",
    ("AppArmorProfile", "localhostProfile"): "Localhost",
    ("LimitResponse", "queuing"): "Queue",
}
"""The discriminator's values, by type and field, where another is published (Kubernetes 1.28 to 1.36)."""

OPTIONAL: Final[frozenset[tuple[str, str]]] = frozenset(
    {("LimitResponse", "queuing"), ("PriorityLevelConfigurationSpec", "exempt")}
)
"""Fields that their value does not require, by the comments in Kubernetes' types."""


def unions_of(schema: Mapping[str, Any], component: str = "") -> tuple[Union, ...]:
    """The unions of one object's schema; what is malformed is skipped.

    ``component`` is the schema's name, by which published values are corrected.
    """
    listed = schema.get(EXTENSION)
    kind = component.rpartition(".")[2]
    found = (
        [_union(entry, schema, kind) for entry in listed if isinstance(entry, dict)]
        if isinstance(listed, list)
        else []
    )
    found += (
        _union({"discriminator": name, **entry}, schema, kind) for name, entry in _on_properties(schema)
    )
    return tuple(union for union in found if union.members)


def _on_properties(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Unions declared at their discriminator."""
    properties = schema.get("properties")
    for name, inner in properties.items() if isinstance(properties, dict) else ():
        if isinstance(inner, dict) and "fieldMembers" in inner:
            yield name, {"fieldMembers": inner["fieldMembers"]}


def _union(entry: Mapping[str, Any], schema: Mapping[str, Any], kind: str) -> Union:
    discriminator = entry.get("discriminator")
    name = discriminator if isinstance(discriminator, str) else None
    return Union(
        members=tuple(
            Member(
                member.field,
                VALUES.get((kind, member.field), member.value),
                member.is_optional or (kind, member.field) in OPTIONAL,
            )
            for member in _members(entry)
        ),
        discriminator=name,
        allowed=_allowed(schema, name),
        deduces=entry.get("deduceInvalidDiscriminator") is True,
    )


def _members(entry: Mapping[str, Any]) -> Iterator[Member]:
    for key in _BY_FIELD:
        values = entry.get(key)
        if isinstance(values, dict):
            yield from (Member(name, value) for name, value in values.items() if isinstance(value, str))
            return
    for key in _BY_MEMBER:
        members = entry.get(key)
        if isinstance(members, dict):
            yield from (Member(name, value) for value, name in members.items() if isinstance(name, str))
            return
        if isinstance(members, list):
            yield from _listed(members)
            return


def _listed(members: list[Any]) -> Iterator[Member]:
    for member in members:
        match member:
            case {"fieldName": str(name)}:
                value = member.get("discriminatorValue", member.get("memberName", name))
                yield Member(name, value if isinstance(value, str) else name, member.get("optional") is True)
            case str():
                yield Member(member, member)


def _allowed(schema: Mapping[str, Any], discriminator: str | None) -> frozenset[str] | None:
    properties = schema.get("properties")
    inner = properties.get(discriminator) if isinstance(properties, dict) else None
    listed = inner.get("enum") if isinstance(inner, dict) else None
    if not isinstance(listed, list):
        return None
    return frozenset(value for value in listed if isinstance(value, str))
