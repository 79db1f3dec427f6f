"""Parse members of untrusted discovery documents, one by one. Pure.

A malformed entry is dropped with a note; a malformed document raises ``BadList``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Any, Final

from specmux_converters.document import Document, Limits, parse
from specmux_converters.errors import ConverterError, cut
from specmux_converters.group_versions import GroupVersion, join_group_version, key_fault
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.resources import NO_KIND, GroupVersionKind, is_name

NOTES_NAMED: Final = 20
"""Complaints of one document that are named; further ones are counted."""


class BadList(ValueError):
    """The document is invalid; the message is for people."""


@dataclass(slots=True)
class Complaints:
    """Complaints about entries, the first of them in words."""

    named: list[str] = field(default_factory=list)
    count: int = 0

    def add(self, where: str, fault: str) -> None:
        self.count += 1
        if len(self.named) < NOTES_NAMED:
            self.named.append(f"{cut(where)}: {fault}")

    def all(self) -> tuple[str, ...]:
        more = self.count - len(self.named)
        return (*self.named, f"and {more} more faults") if more else tuple(self.named)


def read_document(body: bytes, *, kind: str, limits: Limits) -> Document:
    """The JSON object in ``body`` when it is of this kind. Raises BadList."""
    try:
        document = parse(body, limits=limits)
    except ConverterError as error:
        raise BadList(str(error)) from error
    if document.get("kind") != kind:
        raise BadList(f'the kind is not "{kind}"')
    return document


def group_version_in(group: str, version: str, notes: Complaints) -> GroupVersion | None:
    """The discovery key; None, with a note, for names that cannot stand in one."""
    for part in (group, version):
        if part and not is_name(part):
            notes.add(part, "is no name of a group or version")
            return None
    key = join_group_version(group, version)
    fault = key_fault(key) if version else "has no version"
    if fault is not None:
        notes.add(key, fault)
        return None
    return key


def objects(parent: Document, name: str, where: str, notes: Complaints) -> Iterator[Document]:
    """The objects of an array; Go writes an empty one as null or omits it."""
    items = parent.get(name)
    if items is None:
        return
    if not isinstance(items, list):
        notes.add(where, f'"{name}" is no array')
        return
    for item in items:
        if isinstance(item, dict):
            yield item
        else:
            notes.add(where, f'an entry of "{name}" is no object')


def text(parent: Document, name: str) -> str:
    value = parent.get(name)
    return value if isinstance(value, str) else ""


def texts(parent: Document, name: str, where: str, notes: Complaints) -> tuple[str, ...]:
    """The distinct strings of an array, in order."""
    items = parent.get(name)
    if items is None:
        return ()
    if not isinstance(items, list):
        notes.add(where, f'"{name}" is no array')
        return ()
    found = dict.fromkeys(item for item in items if isinstance(item, str) and item)
    if len(found) != len(items):
        notes.add(where, f'"{name}" holds a value that is empty, repeated or no string')
    return tuple(found)


def kind_in(value: Any) -> GroupVersionKind:
    """The kind named by an object of three strings; NO_KIND if it names none."""
    if not isinstance(value, dict) or not text(value, "kind"):
        return NO_KIND
    return GroupVersionKind(text(value, "group"), text(value, "version"), text(value, "kind"))
