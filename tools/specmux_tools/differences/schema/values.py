"""JSON values compared by JSON equality: 1 and "1" differ, 1 and true differ, member order is irrelevant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from specmux_tools.differences.findings import Finding

_ZERO: Final[tuple[Any, ...]] = ("", 0, 0.0, False, {}, [], None)
_ABSENT: Final = object()


def text(value: Any) -> bytes:
    """The canonical text of a value."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def default_changes(
    old: Mapping[str, Any], new: Mapping[str, Any], *, is_enforced: bool
) -> Iterator[Finding]:
    before, after = default_of(old, is_enforced=is_enforced), default_of(new, is_enforced=is_enforced)
    if before is _ABSENT and after is _ABSENT:
        return
    if before is _ABSENT:
        yield Finding("default-added", "", new=after)
    elif after is _ABSENT:
        yield Finding("default-removed", "", old=before)
    elif text(before) != text(after):
        yield Finding("default-changed", "", old=before, new=after)


def has_default(schema: Mapping[str, Any], *, is_enforced: bool) -> bool:
    return default_of(schema, is_enforced=is_enforced) is not _ABSENT


def default_of(schema: Mapping[str, Any], *, is_enforced: bool) -> Any:
    """The default. In a descriptive schema, Go's zero values mean that there is none."""
    if "default" not in schema:
        return _ABSENT
    value = schema["default"]
    if not is_enforced and any(value == zero and type(value) is type(zero) for zero in _ZERO):
        return _ABSENT
    return value
