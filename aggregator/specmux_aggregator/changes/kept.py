"""Documents that were published, as zstd, for comparisons with later ones."""

from __future__ import annotations

from collections import OrderedDict

from specmux_aggregator.model.observation import Hash
from specmux_converters.group_versions import GroupVersion


class KeptDocuments:
    """The newest documents of each group-version; of all together the oldest go first."""

    def __init__(self, *, most_each: int, most_bytes: int) -> None:
        self._most_each = most_each
        self._most_bytes = most_bytes
        self._bodies: OrderedDict[tuple[GroupVersion, Hash], bytes] = OrderedDict()
        self.bytes = 0

    def put(self, group_version: GroupVersion, hash: Hash, body: bytes) -> None:
        """A body larger than all that may be kept is not."""
        self._drop((group_version, hash))
        if len(body) > self._most_bytes:
            return
        self._bodies[group_version, hash] = body
        self.bytes += len(body)
        own = [key for key in self._bodies if key[0] == group_version]
        for key in own[: max(len(own) - self._most_each, 0)]:
            self._drop(key)
        while self.bytes > self._most_bytes:
            self._drop(next(iter(self._bodies)))

    def get(self, group_version: GroupVersion, hash: Hash) -> bytes | None:
        return self._bodies.get((group_version, hash))

    def hashes(self, group_version: GroupVersion) -> tuple[Hash, ...]:
        """The newest first."""
        return tuple(hash for name, hash in reversed(self._bodies) if name == group_version)

    def _drop(self, key: tuple[GroupVersion, Hash]) -> None:
        body = self._bodies.pop(key, None)
        if body is not None:
            self.bytes -= len(body)
