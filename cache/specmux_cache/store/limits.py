"""The limits of a store."""

from __future__ import annotations

from specmux_converters.lazy.dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class StoreLimits:
    """Bytes are allocated bytes on disk: everything in the directory counts, index, WAL and leftovers too."""

    high_bytes: int = 100 * MIB
    """Compaction starts above this. A body that finds the store above it waits for room, see room_timeout."""
    low_ratio: float = 0.8
    """Compaction stops at this part of high_bytes."""
    max_age: float = 30 * 86400.0
    """Seconds since the last use (stored, revalidated or read) after which an entry goes."""
    keep_superseded: int = 2
    """Revisions of a document kept beside the current one."""
    max_body_bytes: int = 64 * MIB
    """A larger body is refused; nothing larger is ever decompressed."""
    max_metadata_bytes: int = 16 * 1024
    busy_timeout: float = 5.0
    """Seconds to wait for another writer's transaction."""
    room_timeout: float = 2.0
    """Seconds a put above high_bytes waits for compaction before it gives up."""
    compact_interval: float = 86400.0
    """Seconds after which a put starts a compaction even below high_bytes."""
    reserve_bytes: int = 256 * 1024
    """Kept allocated, and given up when the disk is full, so that deleting still works then. At most a
    sixteenth of high_bytes is used."""

    def __post_init__(self) -> None:
        if not 0 < self.low_ratio <= 1:
            raise ValueError("low_ratio is a part of high_bytes: above 0, at most 1")
        if (
            min(self.high_bytes, self.max_age, self.keep_superseded, self.max_body_bytes, self.reserve_bytes)
            < 0
        ):
            raise ValueError("limits are not negative")

    @property
    def low_bytes(self) -> int:
        return int(self.high_bytes * self.low_ratio)

    @property
    def reserve(self) -> int:
        return min(self.reserve_bytes, self.high_bytes // 16)
