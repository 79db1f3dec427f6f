"""Applies strategic merge patches like apimachinery (pkg/util/strategicpatch/patch.go).

Lists are merged by key or as sets, if the schema says so. Directives: ``$patch``, ``$retainKeys``,
``$deleteFromPrimitiveList/<field>``, ``$setElementOrder/<field>``. Modifies the original and the patch. The
order of a merged list is the patch's and the stored one, interleaved (normalizeElementOrder)."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from specmux_converters.go.text import format_value
from specmux_tools.validation.decoding.type_meta import go_type_of
from specmux_tools.validation.errors import PatchError
from specmux_tools.validation.patching.patch_schemas import PatchField, PatchSchema

_DIRECTIVE: Final = "$patch"
_RETAIN_KEYS: Final = "$retainKeys"
_DELETE_PREFIX: Final = "$deleteFromPrimitiveList"
_ORDER_PREFIX: Final = "$setElementOrder"

BAD_PRIMITIVE_LIST: Final = "invalid patch format of primitive list"
BAD_RETAIN_KEYS: Final = "invalid patch format of retainKeys"
BAD_ELEMENT_ORDER: Final = "invalid patch format of setElementOrder list"
NO_LIST_OF_LISTS: Final = "lists of lists are not supported"

_Object: TypeAlias = dict[str, Any]


def strategic_merge(original: _Object, patch: _Object, schema: PatchSchema) -> _Object:
    """Raises PatchError."""
    if _DIRECTIVE in patch:
        return _direct(patch)
    _retain_keys(original, patch)
    _merge_ordered(original, patch, schema)
    for key, value in list(patch.items()):
        is_deletion = key.startswith(_DELETE_PREFIX)
        if is_deletion:
            key = _without_prefix(key, _DELETE_PREFIX, BAD_PRIMITIVE_LIST) or key
        if value is None:
            original.pop(key, None)
        elif key not in original or _type(original[key]) is not _type(value):
            if not is_deletion:
                _set(original, key, _without_nulls(value))
        else:
            _merge_value(original, key, value, schema, is_deletion=is_deletion)
    return original


def _merge_value(original: _Object, key: str, value: Any, schema: PatchSchema, *, is_deletion: bool) -> None:
    if isinstance(value, dict):
        field = schema.of_field(key)
        replaces = field.strategy == "replace"
        original[key] = value if replaces else strategic_merge(original[key], value, field.type)
    elif isinstance(value, list):
        field = schema.of_list(key)
        original[key] = _merge_lists(original[key], value, field, is_deletion=is_deletion)
    else:
        original[key] = value


def _direct(patch: _Object) -> _Object:
    directive = patch[_DIRECTIVE]
    if directive == "replace":
        del patch[_DIRECTIVE]
        return patch
    if directive == "delete":
        return {}
    raise _bad_directive(directive, patch)


def _retain_keys(original: _Object, patch: _Object) -> None:
    if _RETAIN_KEYS not in patch:
        return
    listed = patch.pop(_RETAIN_KEYS)
    if not isinstance(listed, list):
        raise PatchError(BAD_RETAIN_KEYS)
    kept = {each for each in listed if isinstance(each, str)}
    for key, value in patch.items():
        is_other = value is None or key.startswith((_DELETE_PREFIX, _ORDER_PREFIX))
        if not is_other and key not in kept:
            raise PatchError(BAD_RETAIN_KEYS)
    for key in original.keys() - kept:
        del original[key]


def _merge_ordered(original: _Object, patch: _Object, schema: PatchSchema) -> None:
    """Merges the lists whose order the patch states, and removes them from the patch."""
    for directive in [key for key in patch if key.startswith(_ORDER_PREFIX)]:
        order = patch.pop(directive)
        if not isinstance(order, list):
            raise _bad_type("[]interface {}", order)
        key = _without_prefix(directive, _ORDER_PREFIX, BAD_ELEMENT_ORDER)
        stored, patched = original.get(key), patch.get(key)
        for name, values in ((key, original), (key, patch)):
            if name in values and not isinstance(values[name], list):
                raise _bad_type("[]interface {}", values[name])
        field = schema.of_list(key)
        _check_order(patched or [], order, field.merge_key)
        if key in original and key in patch:
            merged = _merge_lists(stored or [], patched or [], field, is_deletion=False)
        elif key in patch:
            merged = _without_directives(patched)
        elif key in original:
            merged = stored or []
        else:
            continue
        patch_items, server_items = _partition(merged, order, field.merge_key)
        is_map = _element_type(stored or [], patched or []) is dict
        lists = _ListOrder(field.merge_key, is_map=is_map)
        original[key] = lists.normalize(patch_items, server_items, order, stored or [])
        patch.pop(key, None)


def _check_order(patched: list[Any], order: list[Any], merge_key: str) -> None:
    """Checks that the patch's elements are in the order that it states."""
    if not patched or not order:
        return
    kept = patched
    if merge_key:
        for item in patched:
            if not isinstance(item, dict):
                raise _bad_type("map[string]interface {}", item)
        kept = [item for item in patched if item.get(_DIRECTIVE) != "delete"]
    at = found = 0
    while at < len(kept) and found < len(order):
        if isinstance(kept[at], dict) and _DIRECTIVE in kept[at]:
            at += 1
            continue
        at += _equal(kept[at], order[found], merge_key)
        found += 1
    if at < len(kept) and found >= len(order):
        raise PatchError(
            f"The order in patch list:\n{format_value(patched, keeps_integers=True)}\n "
            f"doesn't match {_ORDER_PREFIX} list:\n{format_value(order, keeps_integers=True)}\n"
        )


def _equal(item: Any, other: Any, merge_key: str) -> bool:
    if not merge_key:
        return _same(item, other)
    for each in (item, other):
        if not isinstance(each, dict):
            raise _bad_type("map[string]interface {}", each)
    for each in (item, other):
        if merge_key not in each:
            raise _no_key(each, merge_key)
    return _same(item[merge_key], other[merge_key])


def _merge_lists(original: list[Any], patch: list[Any], field: PatchField, *, is_deletion: bool) -> list[Any]:
    if field.strategy != "merge" and not is_deletion:
        return patch
    if not original and not patch:
        return original
    merge_key = field.merge_key
    is_map = _element_type(original, patch) is dict
    if not is_map:
        if is_deletion:
            dropped = {_value_key(each) for each in patch}
            return [each for each in original if _value_key(each) not in dropped]
        merged = _deduplicate([*original, *patch])
    else:
        if not merge_key:
            raise PatchError(f"cannot merge lists without merge key for {field.type.kind}")
        stored = original
        original, patch = _without_special(original, patch, merge_key)
        merged = _merge_maps(original, patch, field, stored)
    patch_items, server_items = _partition(merged, patch, merge_key)
    return _ListOrder(merge_key, is_map=is_map).normalize(patch_items, server_items, patch, original)


def _without_special(original: list[Any], patch: list[Any], merge_key: str) -> tuple[list[Any], list[Any]]:
    """Executes the directives among the patch's elements."""
    stored = original
    plain_items = []
    replaces = False
    for item in patch:
        if _DIRECTIVE not in item:
            plain_items.append(item)
            continue
        match item[_DIRECTIVE]:
            case "delete":
                if merge_key not in item:
                    raise _no_key(item, merge_key)
                original = _without(original, stored, merge_key, item[merge_key])
            case "replace":
                replaces = True
            case "merge":
                raise PatchError("merging lists cannot yet be specified in the patch")
            case other:
                raise _bad_directive(other, item)
    return (plain_items, []) if replaces else (original, plain_items)


def _merge_maps(original: list[Any], patch: list[Any], field: PatchField, stored: list[Any]) -> list[Any]:
    """Merges elements that the original has and appends others: in Go to the stored list, where deletions
    left room."""
    merge_key = field.merge_key
    places: dict[Any, int] = {}
    for index, each in enumerate(original):
        if merge_key in each:
            places.setdefault(_value_key(each[merge_key]), index)
    merged = list(original)
    for item in patch:
        if merge_key not in item:
            raise _no_key(item, merge_key)
        found = places.get(_value_key(item[merge_key]))
        if found is not None:
            merged[found] = strategic_merge(merged[found], item, field.type)
        else:
            places[_value_key(item[merge_key])] = len(merged)
            if original is not stored and len(merged) < len(stored):
                stored[len(merged)] = item
            merged.append(item)
    return merged


def _without(items: list[Any], stored: list[Any], merge_key: str, value: Any) -> list[Any]:
    """Go deletes in place: the stored list, whose order matters later, keeps its length."""
    kept = list(items)
    at = 0
    while at < len(kept):
        if merge_key in kept[at] and _same(kept[at][merge_key], value):
            del kept[at]
            stored[: len(kept)] = kept
        else:
            at += 1
    return kept


def _partition(items: list[Any], by: list[Any], merge_key: str) -> tuple[list[Any], list[Any]]:
    """The elements that ``by`` contains, and the others."""
    if not merge_key:
        known = {_value_key(each) for each in by}
        keys = [_value_key(each) for each in items]
    else:
        for item in items:
            _require_key(item, merge_key)
        for index, each in enumerate(by if items else []):
            if not isinstance(each, dict):
                raise PatchError(f"value for key {index} is not a map")
        known = {_value_key(each[merge_key]) for each in by if isinstance(each, dict) and merge_key in each}
        keys = [_value_key(item[merge_key]) for item in items]
    pairs = list(zip(items, keys, strict=True))
    return [item for item, key in pairs if key in known], [item for item, key in pairs if key not in known]


def _deduplicate(items: list[Any]) -> list[Any]:
    """Keeps the last of repeated elements (deduplicateScalars)."""
    keys = [_value_key(each) for each in items]
    if len(set(keys)) == len(keys):
        return items
    first = 0
    while first < len(items) - 1:
        at = first + 1
        while at < len(items):
            if keys[at] == keys[first]:
                items[at], keys[at] = items[-1], keys[-1]
                del items[-1], keys[-1]
            else:
                at += 1
        first += 1
    return items


def _element_type(*lists: list[Any]) -> type:
    types = [_type(each) for items in lists for each in items]
    if not types:
        raise PatchError("no elements in any of the given slices")
    if types[0] is list:
        raise PatchError(NO_LIST_OF_LISTS)
    if any(each is not types[0] for each in types):
        shown = format_value(list(lists), keeps_integers=True)
        raise PatchError(f"list element types are not identical: {shown}")
    return types[0]


def _set(original: _Object, key: str, value: Any) -> None:
    if isinstance(value, dict) and _DIRECTIVE in value:
        return
    original[key] = _without_directives(value)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        for key in [key for key, item in value.items() if item is None]:
            del value[key]
        for item in value.values():
            _without_nulls(item)
    elif isinstance(value, list):
        for item in value:
            _without_nulls(item)
    return value


def _without_directives(value: Any) -> Any:
    if isinstance(value, dict):
        for key in [key for key, item in value.items() if isinstance(item, dict) and _DIRECTIVE in item]:
            del value[key]
        for key in list(value):
            value[key] = _without_directives(value[key])
    elif isinstance(value, list):
        kept = [item for item in value if not (isinstance(item, dict) and _DIRECTIVE in item)]
        return [_without_directives(item) for item in kept]
    return value


def _without_prefix(key: str, prefix: str, fault: str) -> str:
    found, slash, name = key.partition("/")
    if not slash or found != prefix:
        raise PatchError(fault)
    return name


def _type(value: Any) -> type:
    """Numbers that keep their text are floats."""
    return float if isinstance(value, float) else dict if isinstance(value, dict) else type(value)


def _no_key(item: _Object, key: str) -> PatchError:
    shown = format_value(item, keeps_integers=True)
    return PatchError(f"map: {shown} does not contain declared merge key: {key}")


def _bad_directive(directive: Any, item: _Object) -> PatchError:
    shown = format_value(directive, keeps_integers=True)
    return PatchError(f"unknown patch type: {shown} in map: {format_value(item, keeps_integers=True)}")


def _bad_type(expected: str, actual: Any) -> PatchError:
    return PatchError(f"expected a {expected}, but received a {go_type_of(actual)}")


def _require_key(item: Any, key: str) -> None:
    """Raises PatchError."""
    if not isinstance(item, dict):
        raise _bad_type("map[string]interface {}", item)
    if key not in item:
        raise _no_key(item, key)


def _value_key(value: Any) -> Any:
    """A key for a scalar: equal if Go's interfaces are equal in type and value."""
    if isinstance(value, dict | list):
        return (type(value), id(value))
    return (float if isinstance(value, float) else type(value), value)


def _same(value: Any, other: Any) -> bool:
    return bool(_value_key(value) == _value_key(other))


class _ListOrder:
    """The order of elements that are identified by ``merge_key``, or by value."""

    __slots__ = ("_is_map", "_key")

    def __init__(self, merge_key: str, *, is_map: bool) -> None:
        self._key = merge_key
        self._is_map = is_map

    def normalize(
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
                _require_key(each, self._key)
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
            while at > 0 and not 0 <= pairs[at - 1][1] <= pairs[at][1]:
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
            return _value_key(item)
        return _value_key(item.get(self._key)) if isinstance(item, dict) else _value_key(None)
