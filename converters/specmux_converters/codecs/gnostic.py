"""Field tables of gnostic's protobuf messages, read from the facts in ``gnostic_v2`` and ``gnostic_v3``.

A fact is ``number key type``. Types:

    string bytes bool int64 double   a scalar
    Name                             a message of the same table
    @Name                            NameOrReference: a oneof of Name (1) and Reference (2)
    [T]                              a repeated field
    {T}                              a named list: a message whose field 1 repeats entries, name (1) and T (2)

A key ``^…`` is a pattern: the field itself repeats the entries of ``{T}``, one for each matching JSON key.
A key ``=…`` is none of JSON: the field is a member of a oneof, or what a wrapper holds. ``!`` ends a
required key.
"""

from __future__ import annotations

from collections.abc import Mapping

from specmux_converters.deferred_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MessageField:
    number: int
    key: str
    type: str
    required: bool

    @property
    def is_pattern(self) -> bool:
        return self.key.startswith("^")

    @property
    def is_keyless(self) -> bool:
        return self.key.startswith("=")


Messages = Mapping[str, tuple[MessageField, ...]]


def read_facts(facts: Mapping[str, str]) -> Messages:
    return {name: tuple(_field(fact) for fact in text.split(", ")) for name, text in facts.items()}


def _field(fact: str) -> MessageField:
    number, key, kind = fact.split()
    return MessageField(int(number), key.removesuffix("!"), kind, key.endswith("!"))
