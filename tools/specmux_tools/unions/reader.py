"""The one reader of unions: ``x-kubernetes-unions``, ``oneOf`` and CEL rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specmux_converters.unions import DeclaredUnions, Union, UnionForm, declared_unions


def read_unions(schema: Mapping[str, Any], component: str = "") -> DeclaredUnions:
    """Reads the unions of one object's schema, each once. ``component``: its name, by which published values
    are corrected."""
    declared = declared_unions(schema, component)
    if UnionForm.RULES.value not in schema:
        return declared
    from specmux_tools.unions.rules import unions_of_rules  # built-in kinds have no rules

    known = {union.fields for union in declared.unions}
    ruled = tuple(union for union in unions_of_rules(schema) if union.fields not in known)
    return DeclaredUnions((*declared.unions, *ruled), declared.faults)


def unions_of(schema: Mapping[str, Any], component: str = "") -> tuple[Union, ...]:
    """``read_unions`` without the malformed ones."""
    return read_unions(schema, component).unions


def union_text(union: Union) -> str:
    """Text for people: ``exactly one of a, b``; ``by type: A takes a, B may take b``."""
    if union.discriminator is not None:
        members = [
            f"{each.value} {'may take' if each.is_optional else 'takes'} {each.field}"
            for each in union.members
        ]
        return f"by {union.discriminator}: {', '.join(members)}"
    names = ", ".join(member.field for member in union.members)
    return f"{'at most' if union.takes_none else 'exactly'} one of {names}"
