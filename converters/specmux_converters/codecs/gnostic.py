"""Field tables of gnostic's protobuf messages, read from ``gnostic_v2.json`` and ``gnostic_v3.json``.

Source: google/gnostic-models openapiv2/OpenAPIv2.proto and openapiv3/OpenAPIv3.proto. Any, and the two types
that Go treats by hand in v3 (DefaultType, AdditionalPropertiesItem), are listed for their field numbers.

A fact is ``number key type``. Types:

    string bytes bool int64 double   a scalar
    Name                             a message of the same table
    @Name                            NameOrReference: a oneof of Name (1) and Reference (2)
    [T]                              a repeated field
    {T}                              a named list: a message whose field 1 repeats entries, name (1) and T (2)
    T=a|b                            one of these strings

A key ``^…`` is a pattern: the field itself repeats the entries of ``{T}``, one for each matching JSON key.
A key ``=…`` is none of JSON: the field is a member of a oneof, or what a wrapper holds. ``!`` ends a
required key.
"""

from __future__ import annotations

from collections.abc import Mapping
from pkgutil import get_data

import orjson

from specmux_converters.lazy.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MessageField:
    number: int
    key: str
    type: str
    required: bool
    values: frozenset[str] = frozenset()
    """Allowed strings; empty: any."""

    @property
    def is_pattern(self) -> bool:
        return self.key.startswith("^")

    @property
    def is_keyless(self) -> bool:
        return self.key.startswith("=")


Messages = Mapping[str, tuple[MessageField, ...]]


def messages_of(version: str) -> Messages:
    """``version``: v2 or v3."""
    return read_facts(orjson.loads(get_data(__package__, f"gnostic_{version}.json") or b""))


def read_facts(facts: Mapping[str, str]) -> Messages:
    return {name: tuple(_field(fact) for fact in text.split(", ")) for name, text in facts.items()}


def _field(fact: str) -> MessageField:
    number, key, kind = fact.split()
    kind, _, values = kind.partition("=")
    allowed = frozenset(values.split("|")) if values else frozenset()
    return MessageField(int(number), key.removesuffix("!"), kind, key.endswith("!"), allowed)
