from __future__ import annotations

from specmux_cache.store.bodies import digest_of
from specmux_cache.store.keys import Key
from specmux_cache.store.opening import MemoryStore


def key(name: str, server: str = "s") -> Key:
    return Key(server, "p", name, "", "m")


def test_memory_when_it_is_full_forgets_the_least_recently_used():
    store = MemoryStore(10, clock=lambda: 1.0)
    for name in "ab":
        store.put(key(name), b"12345", metadata={})
    store.get(key("a"))
    store.put(key("c"), b"12345", metadata={})
    assert [store.get(key(name)) is not None for name in "abc"] == [True, False, True]


def test_memory_when_a_body_is_larger_than_all_of_it_keeps_the_rest():
    store = MemoryStore(10, clock=lambda: 1.0)
    store.put(key("a"), b"12345", metadata={})
    assert store.put(key("b"), b"x" * 11, metadata={}) == digest_of(b"x" * 11)
    assert store.get(key("a")) is not None
    assert store.get(key("b")) is None


def test_memory_when_touched_and_replaced_counts_right():
    now = [1.0]
    store = MemoryStore(10, clock=lambda: now[0])
    store.put(key("a"), b"1234567890", metadata={"x": 1, "y": 1})
    now[0] = 2.0
    assert store.touch(key("a"), metadata={"y": 2})
    assert not store.touch(key("b"), metadata={})
    found = store.get(key("a"))
    assert found is not None
    assert (dict(found.row.metadata), found.row.stored_at, found.row.touched_at) == (
        {"x": 1, "y": 2},
        1.0,
        2.0,
    )
    store.put(key("a"), b"1", metadata={})
    store.put(key("b"), b"123456789", metadata={})
    assert store.get(key("a")) is not None
    assert (store.delete(key("a")), store.delete(key("a"))) == (True, False)


def test_rows_when_a_prefix_is_given():
    store = MemoryStore(99, clock=lambda: 1.0)
    for own in (key("a"), key("b"), key("a", server="other")):
        store.put(own, b"x", metadata={})
    assert [row.key for row in store.rows("s", "p")] == [key("a"), key("b")]
    assert [row.key for row in store.rows("s", "p", "b", "m")] == [key("b")]
    assert len(list(store.rows())) == 3
    store.close()
    assert list(store.rows()) == []
