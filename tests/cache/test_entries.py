from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from specmux_cache.http.caching import StoredHead
from specmux_cache.reading.entry_store import EntryStore
from specmux_cache.store.disk_store import DiskStore
from specmux_cache.store.limits import StoreLimits
from specmux_cache.store.opening import MemoryStore, open_store


def opened(directory, warn=print):
    return open_store(directory, limits=StoreLimits(), clock=time.time, warn=warn)


def held(received: float = 0.0) -> StoredHead:
    return StoredHead((("etag", '"a"'),), received, received, {})


def test_secret_when_many_come_at_once_is_one(tmp_path):
    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(opened, [tmp_path / "c"] * 16))
    assert len({secret for _, _, secret in results}) == 1
    for store, _, _ in results:
        store.close()
    path = tmp_path / "c" / "partition.key"
    assert path.stat().st_mode & 0o777 == 0o600
    assert not list((tmp_path / "c").glob("partition.key.*"))


def test_secret_when_its_file_was_cut_is_made_anew(tmp_path):
    store, _, first = opened(tmp_path / "c")
    store.close()
    (tmp_path / "c" / "partition.key").write_bytes(first[:5])
    store, _, second = opened(tmp_path / "c")
    store.close()
    assert len(second) == 32
    assert second != first


def test_secret_when_it_cannot_be_read_is_memory_and_a_warning(tmp_path):
    warnings: list[str] = []
    opened(tmp_path / "c")[0].close()
    (tmp_path / "c" / "partition.key").unlink()
    (tmp_path / "c" / "partition.key").mkdir()
    store, locks, _ = opened(tmp_path / "c", warnings.append)
    assert isinstance(store, MemoryStore)
    assert (locks, len(warnings)) == (None, 1)


async def test_shelf_when_the_store_is_closed_under_it_goes_on_in_memory_with_one_warning(tmp_path):
    warnings: list[str] = []
    store, _, _ = opened(tmp_path / "c")

    entry_store = EntryStore(store, server="s", partition="p", warn=warnings.append)
    key = entry_store.key("api/v1", "A", "application/json")
    assert await entry_store.put(key, b"{}", held())
    store.close()
    assert await entry_store.get(key) is None
    assert await entry_store.put(key, b"{}", held())
    assert (await entry_store.get(key)).body == b"{}"
    assert entry_store.disk is None
    assert len(warnings) == 1


async def test_shelf_when_a_row_is_not_a_clients_is_a_miss(tmp_path):
    """The aggregator's state directory is the same kind of store."""
    store, _, _ = opened(tmp_path / "c")

    entry_store = EntryStore(store, server="s", partition="p", warn=pytest.fail)
    key = entry_store.key("api/v1", "A", "application/json")
    store.put(key, b"{}", metadata={"something": "else"})
    assert await entry_store.get(key) is None
    store.close()


@pytest.mark.parametrize("kind", ["disk", "memory"])
async def test_latest_when_there_are_revisions_is_the_one_confirmed_last(tmp_path, kind):
    now = [1_800_000_000.0]

    def clock() -> float:
        now[0] += 1
        return now[0]

    store = DiskStore.open(tmp_path / "c", clock=clock) if kind == "disk" else MemoryStore(999, clock=clock)

    entry_store = EntryStore(store, server="s", partition="p", warn=pytest.fail)
    for hash_ in ("A", "B"):
        await entry_store.put(entry_store.key("api/v1", hash_, "m"), hash_.encode(), held())
    assert (await entry_store.latest("api/v1", ["other", "m"])).body == b"B"
    await entry_store.touch(entry_store.key("api/v1", "A", "m"), held())
    assert (await entry_store.latest("api/v1", ["m"])).body == b"A"
    assert await entry_store.latest("apis/apps/v1", ["m"]) is None
    store.close()
