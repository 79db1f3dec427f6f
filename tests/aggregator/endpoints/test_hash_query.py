from __future__ import annotations

import pytest

from specmux_aggregator.endpoints.openapi import HASH_MAX, BadQuery, asked_hash, with_hash
from specmux_aggregator.model.observation import Hash


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", None),
        ("timeout=32s", None),
        ("hash=A", "A"),
        ("etag=A", "A"),
        ("timeout=32s&hash=A", "A"),
        ("h%61sh=A", "A"),
        ("hash=%41", "A"),
        ("hashes=A", None),
    ],
)
def test_hash_is_found_under_both_names(query: str, expected: str | None) -> None:
    asked = asked_hash(query)
    assert (asked.hash if asked else None) == expected


@pytest.mark.parametrize(
    "query", ["hash=", "hash", "etag=", "hash=A&hash=A", "hash=A&etag=A", f"hash={'A' * (HASH_MAX + 1)}"]
)
def test_hash_is_refused_when_a_cache_could_read_it_otherwise(query: str) -> None:
    with pytest.raises(BadQuery):
        asked_hash(query)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("hash=A", "hash=NEW&redirected=1"),
        ("etag=A", "etag=NEW&redirected=1"),
        ("hash=A&timeout=32s", "hash=NEW&timeout=32s&redirected=1"),
        ("x=%20&hash=A&x=2&&y", "x=%20&hash=NEW&x=2&&y&redirected=1"),
    ],
)
def test_redirect_keeps_all_other_parameters_as_they_came(query: str, expected: str) -> None:
    asked = asked_hash(query)
    assert asked is not None
    assert with_hash(query, asked, Hash("NEW")) == expected
