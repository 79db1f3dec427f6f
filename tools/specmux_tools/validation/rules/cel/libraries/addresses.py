"""IP addresses and CIDRs (apiserver, pkg/cel/library/ip.go, cidr.go)."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv6Address
from math import ceil
from typing import Any, Final

from specmux_converters.go.text import quote_text
from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.validation.rules.cel.checking.declarations import CelLibrary, Overload, member
from specmux_tools.validation.rules.cel.checking.types import BOOL, INT, STRING, opaque
from specmux_tools.validation.rules.cel.values.values import CelError, Opaque, no_such_overload, takes
from specmux_tools.validation.schema.urls import Address, BadAddress, read_address, read_prefix

IP: Final = opaque("net.IP")
CIDR: Final = opaque("net.CIDR")


@dataclass(frozen=True, slots=True)
class IpValue(Opaque):
    address: Address
    type_name = IP.name

    def __len__(self) -> int:
        return self.address.max_prefixlen // 8


@dataclass(frozen=True, slots=True)
class CidrValue(Opaque):
    address: Address
    bits: int
    type_name = CIDR.name

    def __len__(self) -> int:
        return ceil(self.bits / 8)

    def contains(self, address: Address, bits: int | None = None) -> bool:
        """``bits`` of a prefix: all of them for an address."""
        width = self.address.max_prefixlen
        if address.version != self.address.version or (bits is not None and bits < self.bits):
            return False
        return int(address) >> (width - self.bits) == int(self.address) >> (width - self.bits)


def _ip(text: str) -> IpValue:
    try:
        address, zone = read_address(text)
    except BadAddress as bad:
        raise CelError(
            f"IP Address {quote_text(text)} parse error during conversion from string: {bad}"
        ) from bad
    if zone:
        raise CelError(f"IP address {quote_text(text)} with zone value is not allowed")
    if _is_mapped(address):
        raise CelError(f"IPv4-mapped IPv6 address {quote_text(text)} is not allowed")
    return IpValue(address)


def _cidr(text: str) -> CidrValue:
    doing = "network address parse error during conversion from string"
    try:
        address, bits = read_prefix(text)
    except BadAddress as bad:
        raise CelError(f"{doing}: {doing}: {bad}") from bad
    if _is_mapped(address):
        raise CelError(f"{doing}: IPv4-mapped IPv6 address {quote_text(text)} is not allowed")
    return CidrValue(address, bits)


def _is_mapped(address: Address) -> bool:
    return isinstance(address, IPv6Address) and address.ipv4_mapped is not None


def _contains_text(net: CidrValue, text: str) -> bool:
    """A text that is no address is said to be of a wrong type, as Kubernetes' library does."""
    try:
        return net.contains(_ip(text).address)
    except CelError as error:
        raise no_such_overload() from error


def _mask(value: CidrValue) -> CidrValue:
    shift = value.address.max_prefixlen - value.bits
    return CidrValue(type(value.address)(int(value.address) >> shift << shift), value.bits)


def _is_link_local_multicast(value: IpValue) -> bool:
    packed = value.address.packed
    return packed[:3] == b"\xe0\0\0" if len(packed) == 4 else packed[0] == 0xFF and packed[1] & 0x0F == 2


def _is_global_unicast(value: IpValue) -> bool:
    """Go's definition, by which private addresses are global."""
    of = value.address
    is_other = of.is_unspecified or of.is_loopback or of.is_multicast or of.is_link_local
    return not is_other and of.packed != b"\xff\xff\xff\xff"


def _test(name: str, apply: Callable[[IpValue], bool]) -> Any:
    return (member(name, (IP,), BOOL, apply),)


ADDRESSES: Final = CelLibrary(
    {
        "ip": (
            Overload("string_to_ip", (STRING,), IP, _ip),
            member("cidr_ip", (CIDR,), IP, lambda value: IpValue(value.address)),
        ),
        "isIP": (Overload("is_ip", (STRING,), BOOL, takes(_ip)),),
        "ip.isCanonical": (
            Overload("ip_is_canonical", (STRING,), BOOL, lambda text: str(_ip(text).address) == text),
        ),
        "family": (member("ip_family", (IP,), INT, lambda value: value.address.version),),
        "isUnspecified": _test("ip_is_unspecified", lambda value: value.address.is_unspecified),
        "isLoopback": _test("ip_is_loopback", lambda value: value.address.is_loopback),
        "isLinkLocalMulticast": _test("ip_is_link_local_multicast", _is_link_local_multicast),
        "isLinkLocalUnicast": _test("ip_is_link_local_unicast", lambda value: value.address.is_link_local),
        "isGlobalUnicast": _test("ip_is_global_unicast", _is_global_unicast),
        "cidr": (Overload("string_to_cidr", (STRING,), CIDR, _cidr),),
        "isCIDR": (Overload("is_cidr", (STRING,), BOOL, takes(_cidr)),),
        "containsIP": (
            member("cidr_contains_ip_string", (CIDR, STRING), BOOL, _contains_text),
            member("cidr_contains_ip_ip", (CIDR, IP), BOOL, lambda net, ip: net.contains(ip.address)),
        ),
        "containsCIDR": (
            member(
                "cidr_contains_cidr_string",
                (CIDR, STRING),
                BOOL,
                lambda net, text: net.contains((inner := _cidr(text)).address, inner.bits),
            ),
            member(
                "cidr_contains_cidr",
                (CIDR, CIDR),
                BOOL,
                lambda net, inner: net.contains(inner.address, inner.bits),
            ),
        ),
        "prefixLength": (member("cidr_prefix_length", (CIDR,), INT, lambda value: value.bits),),
        "masked": (member("cidr_masked", (CIDR,), CIDR, _mask),),
        "string": (
            Overload("ip_to_string", (IP,), STRING, lambda value: str(value.address)),
            Overload("cidr_to_string", (CIDR,), STRING, lambda value: f"{value.address}/{value.bits}"),
        ),
    },
    types={IP.name: IP, CIDR.name: CIDR},
)

MASKS: Final = CelLibrary({"isMask": (member("cidr_is_mask", (CIDR,), BOOL, lambda net: _mask(net) == net),)})
