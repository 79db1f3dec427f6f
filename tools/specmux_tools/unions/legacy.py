"""Algorithm B: unions as structured-merge-diff implemented them from 2019 to 2023 (typed/union.go before its
commit 35d4e8c), where a server cleared members and deduced the discriminator on update and on apply."""

from __future__ import annotations

from collections.abc import Sequence

from specmux_converters.unions import Object, Union, without


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
    said = union.said(new)
    if said and said != union.said(old):
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
        said = union.said(applied)
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
