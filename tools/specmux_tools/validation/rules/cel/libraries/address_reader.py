"""IP addresses and prefixes as Go reads them (net/netip), with its words for what it refuses."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address
from typing import Final, NoReturn

from specmux_converters.go.text import quoted

Address = IPv4Address | IPv6Address
_HEX: Final = re.compile(r"[0-9A-Fa-f]*", re.ASCII)
_BITS: Final = re.compile(r"0|[1-9][0-9]*", re.ASCII)


class BadAddress(Exception):
    """In Go's words."""


def _refuse(text: str, fault: str, at: str = "") -> NoReturn:
    raise BadAddress(f"ParseAddr({quoted(text)}): {fault}" + (f" (at {quoted(at)})" if at else ""))


def read_address(text: str) -> tuple[Address, str]:
    """With its zone. Raises BadAddress."""
    for character in text:
        if character == ".":
            return _version_4(text, text), ""
        if character == ":":
            return _version_6(text)
        if character == "%":
            _refuse(text, "missing IPv6 address")
    _refuse(text, "unable to parse IP")


def _version_4(whole: str, text: str) -> IPv4Address:
    fields: list[int] = []
    value = digits = 0
    for index, character in enumerate(text):
        if "0" <= character <= "9":
            if digits == 1 and value == 0:
                _refuse(whole, "IPv4 field has octet with leading zero")
            value, digits = value * 10 + int(character), digits + 1
            if value > 255:
                _refuse(whole, "IPv4 field has value >255")
        elif character == ".":
            if index in (0, len(text) - 1) or text[index - 1] == ".":
                _refuse(whole, "IPv4 field must have at least one digit", text[index:])
            if len(fields) == 3:
                _refuse(whole, "IPv4 address too long")
            fields.append(value)
            value = digits = 0
        else:
            _refuse(whole, "unexpected character", text[index:])
    if len(fields) < 3:
        _refuse(whole, "IPv4 address too short")
    return IPv4Address(bytes([*fields, value]))


def _version_6(text: str) -> tuple[IPv6Address, str]:
    rest, mark, zone = text.partition("%")
    if mark and not zone:
        _refuse(text, "zone must be a non-empty string")
    data = bytearray()
    ellipsis = -1
    if rest.startswith("::"):
        ellipsis, rest = 0, rest[2:]
        if not rest:
            return IPv6Address(0), zone
    while len(data) < 16:
        group = _group(text, rest)
        if rest[len(group) :].startswith("."):
            data += _embedded(text, rest, len(data), ellipsis)
            rest = ""
            break
        data += int(group, 16).to_bytes(2, "big")
        rest = rest[len(group) :]
        if not rest:
            break
        if rest[0] != ":":
            _refuse(text, "unexpected character, want colon", rest)
        if len(rest) == 1:
            _refuse(text, "colon must be followed by more characters", rest)
        rest = rest[1:]
        if rest[0] == ":":
            if ellipsis >= 0:
                _refuse(text, "multiple :: in address", rest)
            ellipsis, rest = len(data), rest[1:]
            if not rest:
                break
    if rest:
        _refuse(text, "trailing garbage after address", rest)
    return IPv6Address(_expanded(text, data, ellipsis)), zone


def _group(text: str, rest: str) -> str:
    match = _HEX.match(rest)
    group = match.group() if match else ""
    if len(group) > 4:
        _refuse(text, "each group must have 4 or less digits", rest)
    if not group:
        _refuse(text, "each colon-separated field must have at least one digit", rest)
    return group


def _embedded(text: str, rest: str, length: int, ellipsis: int) -> bytes:
    if ellipsis < 0 and length != 12:
        _refuse(text, "embedded IPv4 address must replace the final 2 fields of the address", rest)
    if length + 4 > 16:
        _refuse(text, "too many hex fields to fit an embedded IPv4 at the end of the address", rest)
    return _version_4(text, rest).packed


def _expanded(text: str, data: bytearray, ellipsis: int) -> bytes:
    if len(data) < 16:
        if ellipsis < 0:
            _refuse(text, "address string too short")
        return bytes(data[:ellipsis]) + bytes(16 - len(data)) + bytes(data[ellipsis:])
    if ellipsis >= 0:
        _refuse(text, "the :: must expand to at least one field of zeros")
    return bytes(data)


def read_prefix(text: str) -> tuple[Address, int]:
    """An address and its count of bits. Raises BadAddress."""

    def refuse(fault: str) -> NoReturn:
        raise BadAddress(f"netip.ParsePrefix({quoted(text)}): {fault}")

    name, slash, bits = text.rpartition("/")
    if not slash:
        refuse("no '/'")
    try:
        address, zone = read_address(name)
    except BadAddress as bad:
        refuse(str(bad))
    if zone:
        refuse("IPv6 zones cannot be present in a prefix")
    if not _BITS.fullmatch(bits):
        refuse(f"bad bits after slash: {quoted(bits)}")
    if len(bits) > 9 or int(bits) > address.max_prefixlen:
        refuse("prefix length out of range")
    return address, int(bits)
