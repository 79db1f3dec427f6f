"""Bytes that are kept take the memory of their own length.

``orjson.dumps`` writes into a buffer that is cut to size in place, and the allocator gives the rest of it to
nobody else: each small text that stays costs 4 KiB. A hundred thousand of them are 400 MB for 10 MB of JSON.
"""

from __future__ import annotations


def in_own_memory(text: bytes) -> bytes:
    """A copy of ``text``. Joining two is the cheapest call that makes one: a join of one gives itself."""
    return b"".join((text, b""))
