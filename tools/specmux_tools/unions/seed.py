"""Algorithm A: unions as KEP-1027 defines them since 2022. A changed discriminator clears the members it does
not select; any other inconsistency is reported, and nothing is guessed.

Algorithm B: as structured-merge-diff implemented them from 2019 to 2023 (typed/union.go before its commit
35d4e8c), where a server cleared members and deduced the discriminator on update and on apply. And the one
reader of unions: ``x-kubernetes-unions``, ``oneOf`` and CEL rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.unions import DeclaredUnions, Object, Union, UnionForm, declared_unions, without


class Reason(StrEnum):
    REQUIRED = "Required value"
    INVALID = "Invalid value"
    NOT_SUPPORTED = "Unsupported value"


@dataclass(frozen=True, slots=True)
class Fault:
    reason: Reason
    field: str
    """"" for the object itself."""
    detail: str


def normalize(union: Union, old: Object | None, new: Object) -> Object:
    """Returns ``new`` without the members that a changed discriminator does not select. Idempotent.

    Does not change an object at creation (``old`` is None).
    """
    said = union.read_discriminator(new)
    if old is None or union.discriminator is None or union.read_discriminator(old) == said:
        return new
    if new.get(union.discriminator) is None and "" not in (union.allowed or ()):
        return new  # omitted means "" only if "" is one of its values
    selected = union.member(said) if said else None
    dropped = union.fields - ({selected.field} if selected else set())
    return without(new, dropped) if dropped & new.keys() else new


def validate(union: Union, new: Object, old: Object | None = None) -> tuple[Fault, ...]:
    """Returns the faults of a normalized object: none if an update keeps the union as stored, as in
    Kubernetes' declarative validation."""
    if union.is_unchanged(old, new):
        return ()
    if union.discriminator is None:
        return _check_undiscriminated(union, new)
    name, said, present = union.discriminator, union.read_discriminator(new), sorted(union.set_fields(new))
    if union.allowed is not None and said not in union.allowed:
        listed = ", ".join(f'"{value}"' for value in sorted(union.allowed))
        return (Fault(Reason.NOT_SUPPORTED, name, f"supported values: {listed}"),)
    if len(present) > 1:
        listed = ", ".join(present)
        detail = f'multiple union members set ({listed}) without a change of discriminator "{name}"'
        return (Fault(Reason.INVALID, "", detail),)
    return tuple(_check_discriminated(union, name, said, present))


def _check_discriminated(union: Union, name: str, said: str, present: list[str]) -> list[Fault]:
    faults = []
    selected = union.member(said)
    if selected is not None and not selected.is_optional and selected.field not in present:
        faults.append(Fault(Reason.REQUIRED, selected.field, f'must be specified when `{name}` is "{said}"'))
    for field in present:
        if selected is None or field != selected.field:
            value = union.value_of(field)
            faults.append(Fault(Reason.INVALID, field, f'may only be specified when `{name}` is "{value}"'))
    return faults


def _check_undiscriminated(union: Union, new: Object) -> tuple[Fault, ...]:
    """Uses the words of Kubernetes' declarative validation (apimachinery, pkg/api/validate/union.go)."""
    present = union.set_fields(new)
    if len(present) == 1 or (union.takes_none and not present):
        return ()
    names = ", ".join(f"`{member.field}`" for member in union.members)
    kind = "must specify exactly one of" if present else "must specify one of"
    return (Fault(Reason.INVALID, "", f"{kind}: {names}"),)


class UnionConflict(Exception):
    """The written fields contradict each other; ``text`` is the server's message."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


def normalize_update(unions: Sequence[Union], old: Object | None, new: Object) -> Object:
    """Returns what an update of ``old`` to ``new`` stores. Raises UnionConflict for the first conflict."""
    out = new
    for union in unions:
        out = _update(union, old, new, out)
    return out


def normalize_apply(unions: Sequence[Union], applied: Object | None, merged: Object) -> Object:
    """Returns what an apply stores; ``merged`` is its merge with the stored object. Raises UnionConflict."""
    out = merged
    for union in unions:
        out = _apply(union, applied, out)
    return out


def _update(union: Union, old: Object | None, new: Object, out: Object) -> Object:
    before, present = union.set_fields(old), union.set_fields(new)
    added = present - before
    said = union.read_discriminator(new)
    if said and said != union.read_discriminator(old):
        if len(added) > 1:
            raise UnionConflict(f"multiple new fields added: {', '.join(sorted(added))}")
        for field in added:
            if union.value_of(field) != said:
                raise UnionConflict(f"discriminator ({said}) and field changed ({field}) don't match")
        selected = union.member(said)
        # A value that selects no member is the name of a field (union.go, discriminated.toField).
        return without(out, union.fields - {selected.field if selected else said})
    if len(present) > 1:
        raise UnionConflict(f"multiple fields set without discriminator change: {', '.join(sorted(present))}")
    return _deduce_discriminator(union, present, out)


def _apply(union: Union, applied: Object | None, out: Object) -> Object:
    present = union.set_fields(applied)
    if len(present) > 1:
        raise UnionConflict(f"more than one field of union applied: {', '.join(sorted(present))}")
    for field in present:
        said = union.read_discriminator(applied)
        if said and said != union.value_of(field):
            raise UnionConflict(f"applied discriminator ({said}) doesn't match applied field ({field})")
    if not present:
        return out
    return without(_deduce_discriminator(union, present, out), union.fields - present)


def _deduce_discriminator(union: Union, present: frozenset[str], out: Object) -> Object:
    """``out`` with the discriminator set to the only field that is present."""
    if not union.deduces or union.discriminator is None or len(present) != 1:
        return out
    (field,) = present
    return {**out, union.discriminator: union.value_of(field)}


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
