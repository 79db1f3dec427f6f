"""Unions in draft-07: ``oneOf``, or ``if``, ``then`` and ``else`` by the discriminator's value.

Only those of ``x-kubernetes-unions`` are written; ``oneOf`` is kept unchanged. Null counts as absent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from specmux_converters.json_schema.forms import Mode, Schema
from specmux_converters.json_schema.keywords import NULL
from specmux_converters.json_values import mapping
from specmux_converters.unions import Member, Union, UnionForm, declared_unions

_OF_KUBERNETES: Final = "io.k8s.api."
"""Published values of other components may be names of Go fields: they count only if an enum lists them."""


def with_unions(written: Schema, schema: Mapping[str, Any], component: str, mode: Mode) -> Schema:
    """``written`` with the requirements of ``schema``'s unions, where they can be expressed exactly."""
    if not mode.requires:
        return written
    clauses = [
        clause
        for union in declared_unions(schema, component).unions
        if union.form is UnionForm.EXTENSION and _is_exact(union, schema, component)
        for clause in _clauses(union)
    ]
    return {**written, "allOf": [*written.get("allOf", ()), *clauses]} if clauses else written


def _is_exact(union: Union, schema: Mapping[str, Any], component: str) -> bool:
    """False if a field has a default, since it is then always present."""
    fields = mapping(schema.get("properties"))
    named = (*union.fields, *(() if union.discriminator is None else (union.discriminator,)))
    if any(isinstance(fields.get(name), dict) and fields[name].get("default") for name in named):
        return False
    is_known = component.startswith(_OF_KUBERNETES) or union.allowed is not None
    return union.discriminator is None or is_known


def _clauses(union: Union) -> Iterator[Schema]:
    if union.discriminator is None:
        yield {"oneOf": [_set(member.field) for member in union.members]}
        return
    for member in union.members:
        yield _by_value(union.discriminator, member)


def _by_value(discriminator: str, member: Member) -> Schema:
    selects = {"required": [discriminator], "properties": {discriminator: {"enum": [member.value]}}}
    unset = {"properties": {member.field: NULL}}
    then = {} if member.is_optional else {"then": _set(member.field)}
    return {"if": selects, **then, "else": unset}


def _set(field: str) -> Schema:
    return {"required": [field], "properties": {field: {"not": NULL}}}
