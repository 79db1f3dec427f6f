"""Find the stored objects that given ones replace."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from specmux_converters.json_values import text
from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.validation.decoding.body import objects_in
from specmux_tools.validation.metadata.object_metadata import metadata_of


class ObjectKey(NamedTuple):
    """Group, kind, namespace and name: the identity of an object in every version."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class StoredMatch:
    old: dict[str, Any] | None = None
    unmatched: str = ""
    """Why there is no stored object for comparison."""
    is_refused: bool = False
    """Whether there is one, or had to be one, so the object must not be called valid without comparison."""


class StoredObjects:
    """``place``: their name in messages. ``are_required``: whether each object must be an update of one of
    them."""

    def __init__(self, values: Iterable[Any], place: str, *, are_required: bool = False) -> None:
        self.place = place
        self.are_required = are_required
        self._found: dict[ObjectKey, list[dict[str, Any]]] = defaultdict(list)
        self._namespaced: dict[ObjectKey, list[ObjectKey]] = defaultdict(list)
        for value in values:
            for each in objects_in(value):
                key = key_of(each)
                self._found[key].append(each)
                if key.namespace and len(self._found[key]) == 1:
                    self._namespaced[key._replace(namespace="")].append(key)

    def __iter__(self) -> Iterator[ObjectKey]:
        return iter(self._found)

    def key_for_name(self, key: ObjectKey) -> ObjectKey:
        """A manifest without a namespace matches the only stored object of its name."""
        others = self._namespaced.get(key, ())
        return others[0] if key not in self._found and len(others) == 1 else key

    def match(self, value: Any) -> StoredMatch:
        key = self.key_for_name(key_of(value))
        found = self._found.get(key, []) if key.kind and key.name else []
        if not found:
            return StoredMatch(None, f"{key} is not in {self.place}", self.are_required)
        if len(found) > 1:
            return StoredMatch(None, f"{key} is in {self.place} {len(found)} times", is_refused=True)
        stored, given = found[0].get("apiVersion"), value.get("apiVersion")
        if stored != given:
            fault = f"{key} is stored as {stored} in {self.place}, which is not converted to {given}"
            return StoredMatch(None, fault, is_refused=True)
        return StoredMatch(found[0])


def key_of(value: Any) -> ObjectKey:
    """ "" for absent fields."""
    metadata = metadata_of(value)
    said = (value.get("apiVersion"), value.get("kind"), metadata.get("namespace"), metadata.get("name"))
    version, kind, namespace, name = map(text, said)
    group, slash, _ = version.partition("/")
    return ObjectKey(group if slash else "", kind, namespace, name)
