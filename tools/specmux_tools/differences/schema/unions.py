"""Compares unions of ``x-kubernetes-unions``. Those that ``oneOf`` or CEL express are compared as branches
and rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from specmux_converters.unions import Union, UnionForm, declared_unions
from specmux_tools.differences.findings import Finding


def union_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Finding]:
    """A finding's ``what`` names the union by its discriminator or its members, or names the changed
    member."""
    before, after = _declared(old), _declared(new)
    for union in before:
        same = next((other for other in after if _is_same(union, other)), None)
        if same is None:
            yield Finding("union-removed", "", what=_name(union))
            continue
        after.remove(same)
        if union.discriminator != same.discriminator:
            told = union.discriminator, same.discriminator
            yield Finding("union-discriminator-changed", "", _name(union), *told)
        yield from _member_changes(union, same)
    for union in after:
        yield Finding("union-added", "", what=_name(union))


def _declared(schema: Mapping[str, Any]) -> list[Union]:
    return [union for union in declared_unions(schema).unions if union.form is UnionForm.EXTENSION]


def _is_same(union: Union, other: Union) -> bool:
    if union.discriminator is not None and union.discriminator == other.discriminator:
        return True
    return bool(union.fields & other.fields)


def _name(union: Union) -> str:
    return union.discriminator or ", ".join(member.field for member in union.members)


def _member_changes(old: Union, new: Union) -> Iterator[Finding]:
    for name in sorted(old.fields - new.fields):
        yield Finding("union-member-removed", "", what=name)
    for name in sorted(new.fields - old.fields):
        yield Finding("union-member-added", "", what=name)
    if None in (old.discriminator, new.discriminator):
        return
    for name in sorted(old.fields & new.fields):
        before, after = old.value_of(name), new.value_of(name)
        if before != after:
            yield Finding("union-member-changed", "", name, before, after)
