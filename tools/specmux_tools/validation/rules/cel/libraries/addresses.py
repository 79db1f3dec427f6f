"""IP addresses and CIDRs (apiserver, pkg/cel/library/ip.go, cidr.go)."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv6Address
from math import ceil
from typing import Any, Final

from specmux_converters.go.text import quoted
from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.validation.rules.cel.checking.declarations import CelLibrary, Overload, member
from specmux_tools.validation.rules.cel.checking.types import BOOL, INT, STRING, opaque
from specmux_tools.validation.rules.cel.libraries.address_reader import (
    Address,
    BadAddress,
    read_address,
    read_prefix,
)
from specmux_tools.validation.rules.cel.values.values import CelError, Opaque, no_such_overload

IP: Final = opaque("net.IP")
CIDR: Final = opaque("net.CIDR")


@dataclass(frozen=True, slots=True)
class IpValue(Opaque):
    address: Address
    type_name = IP.name

    def __len__(self) -> int:
        return self.address.max_prefixlen // 8

    def same(self, other: Any) -> bool:
        if not isinstance(other, IpValue):
            raise no_such_overload()
        return self.address == other.address


@dataclass(frozen=True, slots=True)
class CidrValue(Opaque):
    address: Address
    bits: int
    type_name = CIDR.name

    def __len__(self) -> int:
        return ceil(self.bits / 8)

    def same(self, other: Any) -> bool:
        if not isinstance(other, CidrValue):
            raise no_such_overload()
        return (self.address, self.bits) == (other.address, other.bits)

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
        raise CelError(f"IP Address {quoted(text)} parse error during conversion from string: {bad}") from bad
    if zone:
        raise CelError(f"IP address {quoted(text)} with zone value is not allowed")
    if _is_mapped(address):
        raise CelError(f"IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return IpValue(address)


def _cidr(text: str) -> CidrValue:
    doing = "network address parse error during conversion from string"
    try:
        address, bits = read_prefix(text)
    except BadAddress as bad:
        raise CelError(f"{doing}: {doing}: {bad}") from bad
    if _is_mapped(address):
        raise CelError(f"{doing}: IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return CidrValue(address, bits)


def _is_mapped(address: Address) -> bool:
    return isinstance(address, IPv6Address) and address.ipv4_mapped is not None


def _contains_text(net: CidrValue, text: str) -> bool:
    """A text that is no address is said to be of a wrong type, as Kubernetes' library does."""
    try:
        return net.contains(_ip(text).address)
    except CelError as error:
        raise no_such_overload() from error


def _is(read: Callable[[str], Any]) -> Callable[[str], bool]:
    def accepts(text: str) -> bool:
        try:
            read(text)
        except CelError:
            return False
        return True

    return accepts


def _cidr_text(value: CidrValue) -> str:
    return f"{value.address}/{value.bits}"


def _masked(value: CidrValue) -> CidrValue:
    shift = value.address.max_prefixlen - value.bits
    return CidrValue(type(value.address)(int(value.address) >> shift << shift), value.bits)


def _is_link_local_multicast(value: IpValue) -> bool:
    packed = value.address.packed
    return packed[:3] == b"\xe0\0\0" if len(packed) == 4 else packed[0] == 0xFF and packed[1] & 0x0F == 2


def _is_link_local_unicast(value: IpValue) -> bool:
    packed = value.address.packed
    return packed[:2] == b"\xa9\xfe" if len(packed) == 4 else packed[0] == 0xFE and packed[1] & 0xC0 == 0x80


def _is_loopback(value: IpValue) -> bool:
    packed = value.address.packed
    return packed[0] == 127 if len(packed) == 4 else int(value.address) == 1


def _is_unspecified(value: IpValue) -> bool:
    return int(value.address) == 0


def _is_multicast(value: IpValue) -> bool:
    packed = value.address.packed
    return packed[0] & 0xF0 == 0xE0 if len(packed) == 4 else packed[0] == 0xFF


def _is_global_unicast(value: IpValue) -> bool:
    """As Go has it, where private addresses are global."""
    is_other = _is_unspecified(value) or _is_loopback(value) or _is_multicast(value)
    return not is_other and not _is_link_local_unicast(value) and value.address.packed != b"\xff\xff\xff\xff"


def _test(name: str, apply: Callable[[IpValue], bool]) -> Any:
    return (member(name, (IP,), BOOL, apply),)


ADDRESSES: Final = CelLibrary(
    {
        "ip": (
            Overload("string_to_ip", (STRING,), IP, _ip),
            member("cidr_ip", (CIDR,), IP, lambda value: IpValue(value.address)),
        ),
        "isIP": (Overload("is_ip", (STRING,), BOOL, _is(_ip)),),
        "ip.isCanonical": (
            Overload("ip_is_canonical", (STRING,), BOOL, lambda text: str(_ip(text).address) == text),
        ),
        "family": (member("ip_family", (IP,), INT, lambda value: value.address.version),),
        "isUnspecified": _test("ip_is_unspecified", _is_unspecified),
        "isLoopback": _test("ip_is_loopback", _is_loopback),
        "isLinkLocalMulticast": _test("ip_is_link_local_multicast", _is_link_local_multicast),
        "isLinkLocalUnicast": _test("ip_is_link_local_unicast", _is_link_local_unicast),
        "isGlobalUnicast": _test("ip_is_global_unicast", _is_global_unicast),
        "cidr": (Overload("string_to_cidr", (STRING,), CIDR, _cidr),),
        "isCIDR": (Overload("is_cidr", (STRING,), BOOL, _is(_cidr)),),
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
        "masked": (member("cidr_masked", (CIDR,), CIDR, _masked),),
        "string": (
            Overload("ip_to_string", (IP,), STRING, lambda value: str(value.address)),
            Overload("cidr_to_string", (CIDR,), STRING, _cidr_text),
        ),
    },
    types={IP.name: IP, CIDR.name: CIDR},
)

MASKS: Final = CelLibrary(
    {"isMask": (member("cidr_is_mask", (CIDR,), BOOL, lambda net: _masked(net) == net),)}
)
