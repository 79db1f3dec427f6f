"""A memo of encoded parts, so that what documents share is encoded once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable


class Fragments:
    """Encoded parts by what they are (``kind``) and the content they had. The holder may keep one for as
    long as it likes: it stays below ``max_bytes``. Not for use by two threads at once.

    Values are looked up as the objects they are first, then by content. Objects are held until ``max_bytes``
    makes them go, so an identity is never that of another object; they must not be changed meanwhile.
    """

    def __init__(self, *, max_bytes: int = 64 * 1024 * 1024) -> None:
        self.max_bytes = max_bytes
        self._objects: dict[tuple[Hashable, int], tuple[Any, bytes]] = {}
        self._young: dict[tuple[Hashable, bytes], bytes] = {}
        self._old: dict[tuple[Hashable, bytes], bytes] = {}
        self._young_bytes = 0

    def get(self, kind: Hashable, value: Any, encode: Callable[[], bytes]) -> bytes:
        """The encoded ``value``; ``encode`` is called where it is not known."""
        identity = (kind, id(value))
        known = self._objects.get(identity)
        if known is not None:
            return known[1]
        encoded = self._by_content(kind, value, encode)
        self._objects[identity] = (value, encoded)
        return encoded

    def _by_content(self, kind: Hashable, value: Any, encode: Callable[[], bytes]) -> bytes:
        content = (kind, orjson.dumps(value))
        encoded = self._young.get(content)
        if encoded is not None:
            return encoded
        encoded = self._old.get(content)
        if encoded is None:
            encoded = encode()
        self._keep(content, encoded)
        return encoded

    def _keep(self, content: tuple[Hashable, bytes], encoded: bytes) -> None:
        self._young[content] = encoded
        self._young_bytes += len(content[1]) + len(encoded)
        if self._young_bytes > self.max_bytes // 2:
            self._old, self._young, self._young_bytes = self._young, {}, 0
            self._objects.clear()
