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
        self._hashes: dict[GroupVersion, dict[Hash, None]] = {}
        """Of the same, the oldest first."""
        self.bytes = 0

    def put(self, group_version: GroupVersion, hash: Hash, body: bytes) -> None:
        """A body larger than all that may be kept is not."""
        self._drop((group_version, hash))
        if len(body) > self._most_bytes:
            return
        self._bodies[group_version, hash] = body
        self.bytes += len(body)
        own = self._hashes.setdefault(group_version, {})
        own[hash] = None
        while len(own) > self._most_each:
            self._drop((group_version, next(iter(own))))
        while self.bytes > self._most_bytes:
            self._drop(next(iter(self._bodies)))

    def get(self, group_version: GroupVersion, hash: Hash) -> bytes | None:
        return self._bodies.get((group_version, hash))

    def hashes(self, group_version: GroupVersion) -> tuple[Hash, ...]:
        """The newest first."""
        return tuple(reversed(self._hashes.get(group_version, ())))

    def _drop(self, key: tuple[GroupVersion, Hash]) -> None:
        body = self._bodies.pop(key, None)
        if body is None:
            return
        self.bytes -= len(body)
        group_version, hash = key
        own = self._hashes[group_version]
        del own[hash]
        if not own:
            del self._hashes[group_version]
