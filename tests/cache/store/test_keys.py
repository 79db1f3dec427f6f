from __future__ import annotations

import pytest

from specmux_cache.store.keys import ANONYMOUS, partition_of

TOKEN = "eyJhbGciOi.secret.token"


def partition(headers: dict[str, str], identity: str = "", secret: bytes = b"k" * 32) -> str:
    return partition_of(headers, identity=identity, secret=secret)


def test_partition_when_nobody_is_shown():
    assert partition({}) == partition({"User-Agent": "x"}) == ANONYMOUS


def test_partition_when_a_token_is_shown_gives_nothing_away():
    name = partition({"Authorization": f"Bearer {TOKEN}"})
    assert TOKEN not in name
    assert name == partition({"authorization": f"Bearer {TOKEN}", "user-agent": "y"})


@pytest.mark.parametrize(
    ("headers", "identity", "secret"),
    [
        ({"Authorization": "Bearer b"}, "", b"k" * 32),
        ({"Authorization": "Bearer a", "Impersonate-User": "root"}, "", b"k" * 32),
        ({"Authorization": "Bearer a"}, "CN=admin", b"k" * 32),
        ({"Authorization": "Bearer a"}, "", b"l" * 32),
        ({}, "CN=admin", b"k" * 32),
        ({"a": "uthorizationBearer a"}, "", b"k" * 32),
    ],
)
def test_partition_when_anything_differs_is_another(headers, identity, secret):
    assert partition({"Authorization": "Bearer a"}) != partition(headers, identity, secret)


def test_partition_is_the_same_in_every_release():
    """Another name would leave all that a user has stored behind."""
    assert partition({"Authorization": "Bearer a"}, "CN=admin") == "hmac-620b38e741646194e993a73d0775b416"
    assert partition({}, "CN=admin") == "hmac-ed11aa6bad8e21f161faa099f7232bb9"
