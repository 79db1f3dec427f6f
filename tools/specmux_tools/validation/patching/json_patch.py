"""Applies JSON patches (RFC 6902) like an apiserver's gopkg.in/evanphx/json-patch.v4, including its leniency.

A missing key is null to ``test`` and ``copy``, ``replace`` creates it, and negative indices count from the
end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import orjson

from specmux_converters.go.text import quote_text
from specmux_tools.validation.errors import PatchError
from specmux_tools.validation.schema.ratcheting import is_same

MOST_OPERATIONS: Final = 10_000
"""apiserver, pkg/endpoints/handlers/patch.go."""
MOST_COPIED: Final = 3 * 1024 * 1024
"""Bytes of JSON that all ``copy`` operations may add (apiserver, pkg/server/config.go)."""

_MISSING: Final = "missing value"
_NO_INDEX: Final = "invalid index referenced"
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")


def apply_json_patch(document: Any, operations: list[Any]) -> Any:
    """The patched document; the given one may be modified. Raises PatchError."""
    target = _Target(document)
    for operation in operations:
        fields = operation if isinstance(operation, dict) else {}
        kind = fields.get("op")
        apply = _OPERATIONS.get(kind) if isinstance(kind, str) else None
        if apply is None:
            raise PatchError(f"Unexpected kind: {kind if isinstance(kind, str) else 'unknown'}")
        apply(target, fields)
    return target.root


class _Target:
    __slots__ = ("copied", "root")

    def __init__(self, root: Any) -> None:
        self.root = root
        self.copied = 0

    def parent(self, path: str, fault: str) -> tuple[Any, str]:
        """The container of a place, and the key in it."""
        parts = path.split("/")
        node = self.root if len(parts) > 1 else None
        for part in parts[1:-1]:
            try:
                node = _get(node, _decode(part))
            except PatchError:
                node = None
            if not isinstance(node, dict | list):
                node = None
                break
        if node is None:
            raise PatchError(f"{fault}: {_MISSING}")
        return node, _decode(parts[-1])


def _add(target: _Target, fields: Mapping[str, Any]) -> None:
    path = _pointer(fields, "path", "add operation failed to decode path")
    container, key = target.parent(path, f'add operation does not apply: doc is missing path: "{path}"')
    with _within(f"error in add for path: '{path}'"):
        _insert(container, key, fields.get("value"))


def _remove(target: _Target, fields: Mapping[str, Any]) -> None:
    path = _pointer(fields, "path", "remove operation failed to decode path")
    container, key = target.parent(path, f'remove operation does not apply: doc is missing path: "{path}"')
    with _within(f"error in remove for path: '{path}'"):
        _delete(container, key)


def _replace(target: _Target, fields: Mapping[str, Any]) -> None:
    path = _pointer(fields, "path", "replace operation failed to decode path: operation missing path field")
    value = fields.get("value")
    if path == "":
        if not isinstance(value, dict | list):
            raise PatchError("replace operation value must be object or array: %!w(<nil>)")
        target.root = value
        return
    container, key = target.parent(path, f"replace operation does not apply: doc is missing path: {path}")
    if isinstance(container, dict):
        container[key] = value
        return
    try:
        container[_index(key, len(container))] = value
    except PatchError:
        raise PatchError(
            f"replace operation does not apply: doc is missing key: {path}: {_MISSING}"
        ) from None


def _move(target: _Target, fields: Mapping[str, Any]) -> None:
    source = _pointer(fields, "from", "move operation failed to decode from: operation, missing from field")
    container, key = target.parent(
        source, f"move operation does not apply: doc is missing from path: {source}"
    )
    with _within(f"error in move for path: '{key}'"):
        value = _get(container, key)
        _delete(container, key)
    path = _pointer(fields, "path", "move operation failed to decode path: operation missing path field")
    container, key = target.parent(
        path, f"move operation does not apply: doc is missing destination path: {path}"
    )
    with _within(f"error in move for path: '{path}'"):
        _insert(container, key, value)


def _copy(target: _Target, fields: Mapping[str, Any]) -> None:
    source = _pointer(fields, "from", "copy operation failed to decode from: operation, missing from field")
    container, key = target.parent(
        source, f"copy operation does not apply: doc is missing from path: {source}"
    )
    with _within(f"error in copy for from: '{source}'"):
        value = _get(container, key)
    path = _pointer(fields, "path", "copy operation failed to decode path")
    container, key = target.parent(
        path, f"copy operation does not apply: doc is missing destination path: {path}"
    )
    try:
        written = orjson.dumps(value, default=float)
    except orjson.JSONEncodeError as error:
        raise PatchError("Unable to complete the copy: nested too deeply") from error
    target.copied += len(written)
    if target.copied > MOST_COPIED:
        raise PatchError(
            f"Unable to complete the copy, the accumulated size increase of copy is {target.copied}, "
            f"exceeding the limit {MOST_COPIED}"
        )
    with _within("error while adding value during copy"):
        _insert(container, key, orjson.loads(written))


def _test(target: _Target, fields: Mapping[str, Any]) -> None:
    path = _pointer(fields, "path", "test operation failed to decode path: operation missing path field")
    if path == "":
        value = target.root
    else:
        container, key = target.parent(path, f"test operation does not apply: is missing path: {path}")
        with _within(f"error in test for path: '{path}'"):
            value = _get(container, key)
    if not is_same(value, fields.get("value")):
        raise PatchError(f"testing value {path} failed: test failed")


_OPERATIONS: Final[Mapping[str, Callable[[_Target, Mapping[str, Any]], None]]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "test": _test,
    "copy": _copy,
}


@contextmanager
def _within(place: str) -> Iterator[None]:
    """Adds the place to an error raised inside."""
    try:
        yield
    except PatchError as error:
        raise PatchError(f"{place}: {error.text}") from error


def _pointer(fields: Mapping[str, Any], name: str, fault: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        raise PatchError(f"{fault}: {_MISSING}")
    return value


def _decode(part: str) -> str:
    """RFC 6901, section 4; in one pass, like Go's Replacer."""
    return re.sub("~[01]", lambda found: "/" if found[0] == "~1" else "~", part)


def _get(container: Any, key: str) -> Any:
    return container.get(key) if isinstance(container, dict) else container[_index(key, len(container))]


def _insert(container: Any, key: str, value: Any) -> None:
    if isinstance(container, dict):
        container[key] = value
    elif key == "-":
        container.append(value)
    else:
        try:
            number = _integer(key)
        except PatchError as error:
            raise PatchError(f"value was not a proper array index: '{key}': {error.text}") from error
        container.insert(_inside(number, len(container) + 1), value)


def _delete(container: Any, key: str) -> None:
    if isinstance(container, dict):
        if key not in container:
            raise PatchError(f"Unable to remove nonexistent key: {key}: {_MISSING}")
        del container[key]
    else:
        del container[_index(key, len(container))]


def _index(key: str, size: int) -> int:
    return _inside(_integer(key), size)


def _inside(number: int, size: int) -> int:
    if not -size <= number < size:
        raise PatchError(f"Unable to access invalid index: {number}: {_NO_INDEX}")
    return number + size if number < 0 else number


def _integer(key: str) -> int:
    """strconv.Atoi."""
    if not _INTEGER.fullmatch(key):
        raise PatchError(f"strconv.Atoi: parsing {quote_text(key)}: invalid syntax")
    if len(key) > 20 or not -(2**63) <= int(key) < 2**63:
        raise PatchError(f"strconv.Atoi: parsing {quote_text(key)}: value out of range")
    return int(key)
