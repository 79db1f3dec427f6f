from __future__ import annotations

from typing import Any

import pytest

from specmux_aggregator.server.admission import ClientAddresses, address_of


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("10.1.2.3", 1000), ("10.1.2.3", 2000)),
        (("::ffff:10.1.2.3", 1000, 0, 0), ("10.1.2.3", 2000)),
        (("2001:db8:0:1::1", 1000, 0, 0), ("2001:db8:0:1:ffff:ffff:ffff:ffff", 1000, 0, 0)),
        (("fe80::1%lo", 1000, 0, 1), ("fe80::2%lo", 1000, 0, 1)),
        ("", None),
    ],
    ids=["ports", "mapped", "one-64", "scoped", "unix-socket"],
)
def test_peers_that_count_together(one: Any, other: Any) -> None:
    assert address_of(one) == address_of(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("10.1.2.3", 1000), ("10.1.2.4", 1000)),
        (("2001:db8:0:1::1", 1000, 0, 0), ("2001:db8:0:2::1", 1000, 0, 0)),
        (("::ffff:10.1.2.3", 1000, 0, 0), ("::ffff:10.1.2.4", 1000, 0, 0)),
        (("::1", 1000, 0, 0), ("127.0.0.1", 1000)),
    ],
    ids=["ipv4", "two-64s", "mapped", "families"],
)
def test_peers_that_count_apart(one: Any, other: Any) -> None:
    assert address_of(one) != address_of(other)


def test_address_is_admitted_again_when_it_gave_one_back() -> None:
    addresses = ClientAddresses(2)
    assert [addresses.take(b"a") for _ in range(3)] == [True, True, False]
    assert addresses.take(b"b")
    addresses.give_back(b"a")
    assert [addresses.take(b"a") for _ in range(2)] == [True, False]


def test_address_without_connections_is_forgotten() -> None:
    addresses = ClientAddresses(1)
    for number in range(1000):
        address = number.to_bytes(4)
        assert addresses.take(address)
        assert not addresses.take(address)
        addresses.give_back(address)
    assert len(addresses) == 0


def test_refusals_of_an_address_leave_nothing_behind() -> None:
    addresses = ClientAddresses(0)
    assert all(addresses.take(b"a") for _ in range(10_000))
    for _ in range(10_000):
        addresses.give_back(b"a")
    assert len(addresses) == 0
