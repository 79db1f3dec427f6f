"""A cache of encoded parts, so that what documents share is encoded once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Final

import orjson

from specmux_converters.own_memory import in_own_memory

_JSON_ONLY: Final = (
    orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_SUBCLASS
)


class Fragments:
    """Encoded parts by kind and content, within ``max_bytes``.

    Only content counts, never an object's identity: a lookup costs one ``orjson.dumps``, little compared to
    encoding, and a part that is modified later is simply another part. Not thread-safe.
    """

    def __init__(self, *, max_bytes: int = 64 * 1024 * 1024) -> None:
        self.max_bytes = max_bytes
        self._young: dict[tuple[Hashable, bytes], bytes] = {}
        self._old: dict[tuple[Hashable, bytes], bytes] = {}
        self._young_bytes = 0

    def get(self, kind: Hashable, value: Any, encode: Callable[[Any], bytes]) -> bytes:
        """The encoded ``value``; calls ``encode`` if it is not cached.

        Raises TypeError for what orjson cannot serialize: values that are not JSON, or more than 254 levels.
        """
        part = (kind, orjson.dumps(value, None, _JSON_ONLY))
        encoded = self._young.get(part)
        if encoded is not None:
            return encoded
        encoded = self._old.get(part)
        if encoded is None:
            encoded = encode(value)
        self._keep(kind, part[1], encoded)
        return encoded

    def _keep(self, kind: Hashable, text: bytes, encoded: bytes) -> None:
        # Two generations: parts not used during the younger one are dropped, without bookkeeping per part.
        size = len(text) + len(encoded)
        if self._young_bytes + size > self.max_bytes // 2:
            self._old, self._young, self._young_bytes = self._young, {}, 0
        if size <= self.max_bytes // 2:
            self._young[kind, in_own_memory(text)] = encoded
            self._young_bytes += size
