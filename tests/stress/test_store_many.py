"""A hundred thousand entries."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import pytest

from specmux_cache.store.bodies import digest_of
from specmux_cache.store.disk_store import DiskStore, Row, StoreLimits
from specmux_cache.store.keys import Key
from specmux_cache.store.rows import seal

if TYPE_CHECKING:
    from pathlib import Path

ENTRIES: Final = 100_000
BODIES: Final = 5_000
TIMES: Final = (time.time(),) * 3


def key(number: int) -> Key:
    return Key("https://one", "anonymous", f"g{number}/v1", "1", "application/json")


def body(number: int) -> bytes:
    return b"body %d" % (number % BODIES)


@pytest.mark.long
def test_a_hundred_thousand_entries_are_found_and_compacted(tmp_path: Path) -> None:
    directory = tmp_path / "cache"
    with DiskStore.open(directory, limits=StoreLimits(high_bytes=1 << 40)) as store:
        contents = store._contents
        # Filling is not what is tested: one transaction for many, and bodies are put once.
        for start in range(0, ENTRIES, BODIES):
            with contents.index.database.transaction():
                for number in range(start, start + BODIES):
                    if start == 0:
                        store.put(key(number), body(number), metadata={})
                    else:
                        row = Row(
                            key(number), digest_of(body(number)), len(body(number)), "identity", *TIMES, {}
                        )
                        contents._name(row, seal(row), body(number))
        stats = store.stats()
        assert (stats.entries, stats.bodies) == (ENTRIES, 0)  # small bodies lie in their rows
        for number in range(0, ENTRIES, 997):
            found = store.get(key(number))
            assert found is not None
            assert found.body == body(number)
        before = stats.bytes_used
    with DiskStore.open(directory, limits=StoreLimits(high_bytes=before // 2)) as store:
        preview = store.compact(dry_run=True)
        report = store.compact()
        assert report.is_complete
        assert report.bytes_after <= store.limits.low_bytes
        assert preview.unused >= report.unused > ENTRIES // 4
        assert store.stats().entries == ENTRIES - report.unused
        # The ones used last are there still.
        assert store.get(key(ENTRIES - 1)) is not None
        assert store.compact(max_bytes=0).bytes_after < 2_000_000
        assert store.stats().entries == 0
