"""EndpointSlices as clusters write them, and as nobody should."""

from __future__ import annotations

from typing import Any

import pytest

from specmux_aggregator.kubernetes.endpoint_slices import addresses_of


def slice_of(
    *addresses: str, service: str = "kubernetes", family: str = "IPv4", ports: tuple[int, ...] = (6443,)
) -> dict[str, Any]:
    return {
        "metadata": {
            "name": f"{service}-x",
            "namespace": "default",
            "labels": {"kubernetes.io/service-name": service},
        },
        "addressType": family,
        "endpoints": [{"addresses": [each]} for each in addresses],
        "ports": [{"name": f"port-{each}", "port": each, "protocol": "TCP"} for each in ports],
    }


KUBERNETES = ("default", "kubernetes")


def test_addresses_of_all_slices_of_a_service() -> None:
    slices = [slice_of("10.0.0.2", "10.0.0.1"), slice_of("10.0.0.3"), slice_of("10.1.0.9", service="other")]
    found = addresses_of(slices)
    assert found[KUBERNETES] == (("10.0.0.1", 6443), ("10.0.0.2", 6443), ("10.0.0.3", 6443))
    assert found["default", "other"] == (("10.1.0.9", 6443),)


def test_server_that_is_not_ready_is_none() -> None:
    item = slice_of("10.0.0.1", "10.0.0.2", "10.0.0.3")
    item["endpoints"][0]["conditions"] = {"ready": False}
    item["endpoints"][1]["conditions"] = {"ready": None, "serving": True}
    assert addresses_of([item])[KUBERNETES] == (("10.0.0.2", 6443), ("10.0.0.3", 6443))


def test_server_with_an_address_of_each_protocol_counts_once() -> None:
    both = [slice_of("fd00::1", "fd00::2", family="IPv6"), slice_of("10.0.0.1", "10.0.0.2")]
    assert addresses_of(both)[KUBERNETES] == (("10.0.0.1", 6443), ("10.0.0.2", 6443))


def test_service_with_several_ports_has_no_servers() -> None:
    slices = [slice_of("10.0.0.1"), slice_of("10.0.0.2", ports=(6443, 8080))]
    assert addresses_of(slices) == {}


@pytest.mark.parametrize(
    "item",
    [
        {},
        {"metadata": 1},
        {"metadata": {"namespace": "default", "labels": []}, "addressType": "IPv4"},
        {**slice_of("x"), "addressType": "FQDN"},
        {**slice_of("x"), "ports": None},
        {**slice_of("x"), "ports": [{"port": "6443"}, 7, {"port": 0}]},
    ],
)
def test_malformed_slice_costs_no_other(item: dict[str, Any]) -> None:
    found = addresses_of([item, slice_of("10.0.0.1"), {**slice_of("x"), "endpoints": [1, {"addresses": []}]}])
    assert found == {KUBERNETES: (("10.0.0.1", 6443),)}
