"""Published documents as zstd, for comparison with later ones."""

from __future__ import annotations

from specmux_aggregator.model.observation import Hash
from specmux_converters.group_versions import GroupVersion
from specmux_converters.memory import ByteBounded


class KeptDocuments:
    """The newest documents of each group-version; the oldest of all are dropped first."""

    def __init__(self, *, most_each: int, most_bytes: int) -> None:
        self._most_each = most_each
        self._bodies: ByteBounded[tuple[GroupVersion, Hash], bytes] = ByteBounded(
            most_bytes, size=len, dropped=self._forget
        )
        self._hashes: dict[GroupVersion, dict[Hash, None]] = {}
        """Their hashes, oldest first."""

    @property
    def size(self) -> int:
        """Bytes of all documents."""
        return self._bodies.bytes

    def put(self, group_version: GroupVersion, hash: Hash, body: bytes) -> None:
        """Store a document; one that exceeds the whole budget is not stored."""
        key = group_version, hash
        if self._bodies.pop(key) is not None:
            self._forget(key)
        own = self._hashes.setdefault(group_version, {})
        own[hash] = None
        if not self._bodies.put(key, body):
            self._forget(key)
        while len(own) > self._most_each:
            oldest = group_version, next(iter(own))
            self._bodies.pop(oldest)
            self._forget(oldest)

    def get(self, group_version: GroupVersion, hash: Hash) -> bytes | None:
        return self._bodies.peek((group_version, hash))

    def hashes(self, group_version: GroupVersion) -> tuple[Hash, ...]:
        """Hashes, newest first."""
        return tuple(reversed(self._hashes.get(group_version, ())))

    def _forget(self, key: tuple[GroupVersion, Hash]) -> None:
        group_version, hash = key
        own = self._hashes[group_version]
        del own[hash]
        if not own:
            del self._hashes[group_version]
