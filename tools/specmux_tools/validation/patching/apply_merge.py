"""Merges an applied object into the stored one (structured-merge-diff, typed/merge.go): the applied value
wins, associative lists are merged by key. Nothing is removed: that needs the ownership in managedFields,
which is not evaluated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from specmux_converters.json_values import array, mapping
from specmux_tools.validation.patching.apply_types import (
    ATOMIC,
    ApplyTypes,
    Atom,
    PathElement,
    deduced,
    fields_of,
)

_ABSENT: Final = object()


def merged(types: ApplyTypes, component: str, stored: Any, applied: Any) -> Any:
    """Both must have the type; lists of the stored object may contain equal items."""
    found = _Merge(types).value({"namedType": component}, stored, applied)
    return {} if found is _ABSENT else found


class _Merge:
    def __init__(self, types: ApplyTypes) -> None:
        self._types = types

    def value(self, reference: Atom, stored: Any, applied: Any) -> Any:
        atom = self._types.resolve(reference) or {}
        shape = deduced(atom, stored if applied is _ABSENT else applied)
        if "map" in shape:
            return self._map(shape["map"], stored, applied)
        if "list" in shape and "scalar" not in shape:
            return self._list(shape["list"], stored, applied)
        return _winner(stored, applied)

    def _map(self, map_type: Mapping[str, Any], stored: Any, applied: Any) -> Any:
        ours, theirs = (mapping(each) for each in (stored, applied))
        if map_type.get("elementRelationship") == ATOMIC or not (ours or theirs):
            return _winner(stored, applied)
        fields = {each["name"]: each["type"] for each in fields_of(map_type)}
        others = map_type.get("elementType", {})
        made = {}
        for key in dict.fromkeys((*ours, *theirs)):
            value = self.value(fields.get(key, others), ours.get(key, _ABSENT), theirs.get(key, _ABSENT))
            if value is not _ABSENT:
                made[key] = value
        return made or _ABSENT

    def _list(self, list_type: Mapping[str, Any], stored: Any, applied: Any) -> Any:
        ours, theirs = (array(each) for each in (stored, applied))
        if list_type.get("elementRelationship") == ATOMIC or not (ours or theirs):
            return _winner(stored, applied)
        return self._items(list_type, ours, theirs) or _ABSENT

    def _items(self, list_type: Mapping[str, Any], ours: list[Any], theirs: list[Any]) -> list[Any]:
        """Items in stored order if none moves, otherwise in applied order."""
        left, right = ([self._types.element(list_type, item) for item in items] for items in (ours, theirs))
        stored = _index(left, ours)
        applied = _index(right, theirs)
        shared = [each.identity for each in right if each.identity in stored]
        reference = list_type["elementType"]
        made: list[Any] = []

        def add(old: Any, new: Any) -> None:
            value = self.value(reference, old, new)
            if value is not _ABSENT:
                made.append(value)

        done: set[Any] = set()
        at = other = turn = 0
        while at < len(left) or other < len(right):
            expected = shared[turn] if turn < len(shared) else None
            if at < len(left) and other < len(right):
                identity = left[at].identity
                if identity == right[other].identity:
                    done.add(identity)
                    add(stored[identity], applied[identity])
                    at, other, turn = at + 1, other + 1, turn + 1
                    continue
                if identity in applied and expected is not None and expected != identity:
                    at += 1
                    continue
            if at < len(left):
                identity = left[at].identity
                if identity not in applied:
                    add(ours[at], _ABSENT)
                    at += 1
                    continue
                at += identity in done
            if other < len(right):
                identity = right[other].identity
                done.add(identity)
                add(stored.get(identity, _ABSENT), applied[identity])
                other += 1
                turn += expected is not None and expected == identity
        return made


def _index(elements: list[PathElement], items: list[Any]) -> dict[Any, Any]:
    """Items by identity; those that occur twice are left out."""
    found: dict[Any, Any] = {}
    for element, item in zip(elements, items, strict=True):
        found[element.identity] = None if element.identity in found else item
    return found


def _winner(stored: Any, applied: Any) -> Any:
    return stored if applied is _ABSENT else applied
