"""Ratcheting: an update is not rejected for an error in a value that it did not change (KEP-4008).

Correlates values of the object and of the stored one by key, and by map keys in lists of type map; other list
items have no identity (apiserver, pkg/cel/common/equality.go).
"""

from __future__ import annotations

from typing import Any, Final

from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.validation.report import Path
from specmux_tools.validation.schema.structural import Structural

_TYPE_META: Final = ("apiVersion", "kind")


class Correlation:
    """A value, its stored counterpart, and their schema."""

    __slots__ = ("_children", "_is_unchanged", "old", "schema", "value")

    def __init__(self, value: Any, old: Any, schema: Structural) -> None:
        self.value = value
        self.old = old
        self.schema = schema
        self._children: dict[str | int, Correlation | None] = {}
        self._is_unchanged: bool | None = None

    def child(self, part: str | int) -> Correlation | None:
        """None if the child has no stored counterpart or no schema."""
        if part not in self._children:
            self._children[part] = self._key(part) if isinstance(part, str) else self._item(part)
        return self._children[part]

    @property
    def is_unchanged(self) -> bool:
        if self._is_unchanged is None:
            self._is_unchanged = self._compare()
        return self._is_unchanged

    def _key(self, name: str) -> Correlation | None:
        value, old = self.value, self.old
        if not (isinstance(value, dict) and isinstance(old, dict)) or name not in value or name not in old:
            return None
        schema = self.schema.properties.get(name) or self.schema.additional
        if schema is None or not schema.is_defined:
            return None
        return Correlation(value[name], old[name], schema)

    def _item(self, index: int) -> Correlation | None:
        schema = self.schema
        if schema.items is None or schema.list_type != "map" or not isinstance(self.old, list):
            return None
        item = self.value[index] if isinstance(self.value, list) and index < len(self.value) else None
        keys = _keys(item, schema)
        if keys is None:
            return None
        older = next((each for each in self.old if _keys(each, schema) == keys), None)
        return Correlation(item, older, schema.items) if older is not None else None

    def _compare(self) -> bool:
        value, old = self.value, self.old
        is_map = isinstance(value, list) and self.schema.list_type == "map"
        if isinstance(value, dict) and isinstance(old, dict):
            return len(value) == len(old) and all(map(self._is_child_unchanged, value))
        if is_map and isinstance(old, list):
            return len(value) == len(old) and all(map(self._is_child_unchanged, range(len(value))))
        return is_same(value, old)

    def _is_child_unchanged(self, part: str | int) -> bool:
        child = self.child(part)
        return child is not None and child.is_unchanged


def is_same(value: Any, other: Any) -> bool:
    """Equality as in Go, which includes the type."""
    if isinstance(value, dict):
        return (
            isinstance(other, dict)
            and value.keys() == other.keys()
            and all(is_same(item, other[key]) for key, item in value.items())
        )
    if isinstance(value, list):
        return (
            isinstance(other, list)
            and len(value) == len(other)
            and all(is_same(item, each) for item, each in zip(value, other, strict=True))
        )
    return _kind(value) is _kind(other) and bool(value == other)


def _kind(value: Any) -> type:
    """Numbers that keep their text count as floats."""
    return float if isinstance(value, float) else type(value)


def lies_in_unchanged(root: Correlation, path: Path) -> bool:
    """Whether a value on the way to ``path`` is unchanged."""
    node: Correlation | None = root
    for part in (*path, None):
        if node is None:
            return False
        if node.is_unchanged:
            return True
        if part is None:
            return False
        node = node.child(part)
    return False


@dataclass(frozen=True, slots=True)
class Standing:
    """The place at which rules are evaluated: one with a stored counterpart, or one below it."""

    current: Correlation | None = None
    above: Correlation | None = None

    @property
    def is_unchanged(self) -> bool:
        nearest = self.current or self.above
        return nearest is not None and nearest.is_unchanged

    def child(self, part: str | int) -> Standing:
        if self.current is None:
            return self
        if self.above is None and part in _TYPE_META:
            return Standing()
        return Standing(self.current.child(part), self.current)

    def nest(self) -> Standing:
        """The same place within allOf, whose errors are not ratcheted by themselves."""
        return Standing(None, self.above)


def _keys(item: Any, schema: Structural) -> list[tuple[type, Any]] | None:
    """None if the item lacks a key or a key is not a scalar."""
    if not isinstance(item, dict):
        return None
    found = [item.get(key) for key in schema.list_keys]
    if not all(isinstance(each, str | bool | int | float) for each in found):
        return None
    return [(_kind(each), each) for each in found]
