"""Order of a list after a strategic merge: the patch's order and the stored one, interleaved (apimachinery,
pkg/util/strategicpatch/patch.go: normalizeElementOrder)."""

from __future__ import annotations

from typing import Any, Final

from specmux_converters.go.text import format_value
from specmux_tools.validation.errors import PatchError

_DIRECTIVE: Final = "$patch"


def value_key(value: Any) -> Any:
    """A key for a scalar: equal if Go's interfaces are equal in type and value."""
    if isinstance(value, dict | list):
        return (type(value), id(value))
    return (float if isinstance(value, float) else type(value), value)


def same(value: Any, other: Any) -> bool:
    return bool(value_key(value) == value_key(other))


class ListOrder:
    """The order of elements that are identified by ``merge_key``, or by value."""

    __slots__ = ("_is_map", "_key")

    def __init__(self, merge_key: str, *, is_map: bool) -> None:
        self._key = merge_key
        self._is_map = is_map

    def normalized(
        self, patched: list[Any], stored: list[Any], patch_order: list[Any], stored_order: list[Any]
    ) -> list[Any]:
        """``patched`` are the elements in the patch, ``stored`` those that are not."""
        patched = self._sort(patched, patch_order)
        stored = self._sort(stored, stored_order)
        return self._interleave(stored, patched, self._ranks(stored_order))

    def _sort(self, items: list[Any], order: list[Any]) -> list[Any]:
        deleted: list[Any] = []
        if self._is_map:
            for each in (*items, *order):
                self._check(each)
            deleted = [each for each in items if each.get(_DIRECTIVE) == "delete"]
            items = [each for each in items if each.get(_DIRECTIVE) != "delete"]
        ranks = self._ranks(order)
        found = [ranks.get(self._identity(each), -1) for each in items]
        if -1 not in found:
            pairs = sorted(zip(found, range(len(items)), strict=True))
            return [items[index] for _, index in pairs] + deleted
        return self._insert(items, found) + deleted

    def _insert(self, items: list[Any], ranks: list[int]) -> list[Any]:
        """Sorts like Go's SliceStable for up to 20 elements, with an order that lacks some of them."""
        pairs = list(zip(items, ranks, strict=True))
        for end in range(1, len(pairs)):
            at = end
            while at > 0 and _is_less(pairs[at][1], pairs[at - 1][1]):
                pairs[at - 1], pairs[at] = pairs[at], pairs[at - 1]
                at -= 1
        return [item for item, _ in pairs]

    def _interleave(self, stored: list[Any], patched: list[Any], ranks: dict[Any, int]) -> list[Any]:
        merged: list[Any] = []
        left = right = 0
        while left < len(stored) and right < len(patched):
            ours, theirs = (ranks.get(self._identity(each), -1) for each in (stored[left], patched[right]))
            if 0 <= ours < theirs:
                merged.append(stored[left])
                left += 1
            else:
                merged.append(patched[right])
                right += 1
        return [*merged, *stored[left:], *patched[right:]]

    def _ranks(self, order: list[Any]) -> dict[Any, int]:
        ranks: dict[Any, int] = {}
        for index, each in enumerate(order):
            ranks.setdefault(self._identity(each), index)
        return ranks

    def _identity(self, item: Any) -> Any:
        if not self._is_map:
            return value_key(item)
        return value_key(item.get(self._key)) if isinstance(item, dict) else value_key(None)

    def _check(self, item: Any) -> None:
        if not isinstance(item, dict):
            raise PatchError(f"expected a map[string]interface {{}}, but received a {type(item).__name__}")
        if self._key not in item:
            shown = format_value(item, keeps_integers=True)
            raise PatchError(f"map: {shown} does not contain declared merge key: {self._key}")


def _is_less(rank: int, other: int) -> bool:
    return rank < other if rank >= 0 and other >= 0 else True
