"""Copies bytes so that they occupy no more memory than their length.

``orjson.dumps`` truncates its buffer in place, and the allocator cannot reuse the rest: each small text that
is kept costs 4 KiB. A hundred thousand of them take 400 MB for 10 MB of JSON.
"""

from __future__ import annotations


def in_own_memory(text: bytes) -> bytes:
    """A copy of ``text``. Joining two parts is the cheapest call that copies: a join of one returns its
    argument."""
    return b"".join((text, b""))
