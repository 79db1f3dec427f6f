"""EndpointSlices (discovery.k8s.io/v1): the individual servers of a Service. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from specmux_converters.json_values import mapping, objects, within

SERVICE_LABEL: Final = "kubernetes.io/service-name"

FAMILIES: Final = ("IPv4", "IPv6")
"""Address types; the servers of a dual-stack Service have an address of each."""

ServiceName: TypeAlias = tuple[str, str]
"""Namespace and name."""

ServerAddress: TypeAlias = tuple[str, int]


def addresses_of(slices: Iterable[Mapping[str, Any]]) -> dict[ServiceName, tuple[ServerAddress, ...]]:
    """Addresses and ports of each Service's ready servers. Empty for one with several ports, which only the
    Service itself distinguishes."""
    found: dict[ServiceName, dict[str, set[ServerAddress]]] = defaultdict(lambda: defaultdict(set))
    several: set[ServiceName] = set()
    for each in slices:
        service, ports, family = _service(each), _ports(each), each.get("addressType")
        if service is None or family not in FAMILIES:
            continue
        if len(ports) > 1:
            several.add(service)
        for port in ports[:1]:
            found[service][family].update((address, port) for address in _ready(each))
    addresses: dict[ServiceName, tuple[ServerAddress, ...]] = {}
    for service in found.keys() - several:
        largest = max((found[service][family] for family in FAMILIES), key=len)
        addresses[service] = tuple(sorted(largest))
    return addresses


def keep_slice(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """The parts of a slice that are used here, and its identity for the watch."""
    fields = ("apiVersion", "kind", "metadata", "addressType", "endpoints", "ports")
    return {name: item[name] for name in fields if name in item}


def _service(item: Mapping[str, Any]) -> ServiceName | None:
    metadata = item.get("metadata")
    name = within(metadata, "labels").get(SERVICE_LABEL)
    namespace = mapping(metadata).get("namespace")
    return (namespace, name) if isinstance(namespace, str) and isinstance(name, str) else None


def _ports(item: Mapping[str, Any]) -> list[int]:
    numbers = (each.get("port") for each in objects(item.get("ports")))
    return [each for each in numbers if isinstance(each, int) and 0 < each < 65536]


def _ready(item: Mapping[str, Any]) -> Iterator[str]:
    """The first address of each ready endpoint: all its addresses lead to the same server. An absent
    condition means ready."""
    for endpoint in objects(item.get("endpoints")):
        conditions, addresses = endpoint.get("conditions"), endpoint.get("addresses")
        is_ready = not isinstance(conditions, dict) or conditions.get("ready") is not False
        if is_ready and isinstance(addresses, list) and addresses and isinstance(addresses[0], str):
            yield addresses[0]
