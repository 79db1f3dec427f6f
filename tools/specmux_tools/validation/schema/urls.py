"""URLs and IP addresses as Go reads them, with its errors (net/url, net/netip)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address
from typing import Final, NoReturn

from specmux_converters.go.text import quote_text
from specmux_converters.lazy.dataclasses import dataclass

Address = IPv4Address | IPv6Address
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_PORT: Final = re.compile(r"(?::[0-9]*)?", re.ASCII)
_USER: Final = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*", re.ASCII)
_ESCAPE: Final = re.compile(rb"%(?:([0-9A-Fa-f]{2})|.{0,2})", re.DOTALL)
_HOST: Final = frozenset(
    b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~!$&'()*+,;=:[]<>\""
)
_PATH: Final = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~$&+,/:;=@")
_PATH_AS_WRITTEN: Final = _PATH | frozenset(b"!'()*[]%")
_HEX: Final = re.compile(r"[0-9A-Fa-f]*", re.ASCII)
_BITS: Final = re.compile(r"0|[1-9][0-9]*", re.ASCII)


class BadUrl(Exception):
    """Says what, as Go does without the text."""


@dataclass(frozen=True, slots=True)
class GoUrl:
    scheme: str = ""
    opaque: str = ""
    user: str = ""
    host: str = ""
    path: str = ""
    """Escaped."""
    query: str = ""
    has_query_mark: bool = False
    fragment: str = ""

    @property
    def hostname(self) -> str:
        name = self._split()[0]
        return name[1:-1] if name.startswith("[") and name.endswith("]") else name

    @property
    def port(self) -> str:
        return self._split()[1]

    def _split(self) -> tuple[str, str]:
        name, colon, port = self.host.rpartition(":")
        return (name, port) if colon and _PORT.fullmatch(f":{port}") else (self.host, "")

    def queries(self) -> dict[str, list[str]]:
        """The values by key; malformed parts are skipped."""
        found: dict[str, list[str]] = {}
        for key, value in _pairs(self.query):
            found.setdefault(key, []).append(value)
        return found


def _pairs(query: str) -> Iterator[tuple[str, str]]:
    for part in query.split("&"):
        if not part or ";" in part:
            continue
        key, _, value = part.partition("=")
        try:
            yield (
                _unescape(key.replace("+", " ")).decode(errors="replace"),
                _unescape(value.replace("+", " ")).decode(errors="replace"),
            )
        except BadUrl:
            continue


def url_fault(text: str) -> str | None:
    """The error of url.ParseRequestURI."""
    try:
        _read(text, is_request=True)
    except BadUrl as bad:
        return f"parse {quote_text(text)}: {bad}"
    return None


def read_url(text: str) -> GoUrl:
    """url.Parse. Raises BadUrl."""
    whole, mark, fragment = text.partition("#")
    found = _read(whole, is_request=False)
    _unescape(fragment)
    return replace(found, fragment=fragment) if mark else found


def _read(text: str, *, is_request: bool) -> GoUrl:
    if _CONTROL.search(text):
        raise BadUrl("net/url: invalid control character in URL")
    if not text and is_request:
        raise BadUrl("empty url")
    if text == "*":
        return GoUrl(path="*")
    scheme, rest = _scheme(text)
    has_mark = rest.endswith("?") and rest.count("?") == 1
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return GoUrl(scheme, rest, query=query, has_query_mark=has_mark)
        if is_request:
            raise BadUrl("invalid URI for request")
        if ":" in rest.partition("/")[0]:
            raise BadUrl("first path segment in URL cannot contain colon")
    user = host = ""
    if rest.startswith("//") and (scheme or (not is_request and not rest.startswith("///"))):
        authority, slash, rest = rest[2:].partition("/")
        rest = slash + rest
        user, host = _authority(scheme, authority)
    return GoUrl(scheme, "", user, host, _path(rest), query, has_mark)


def _scheme(text: str) -> tuple[str, str]:
    if text.startswith(":"):
        raise BadUrl("missing protocol scheme")
    match = _SCHEME.match(text)
    return (match[1].lower(), text[match.end() :]) if match else ("", text)


def _authority(scheme: str, text: str) -> tuple[str, str]:
    user, has_user, host = text.rpartition("@")
    host = _host(scheme, host)
    if has_user:
        if not _USER.fullmatch(user):
            raise BadUrl("net/url: invalid userinfo")
        _unescape(user)
    return user, host


def _host(scheme: str, host: str) -> str:
    if "[" in host:
        return _literal(host)
    first, last = host.find(":"), host.rfind(":")
    if first >= 0:
        port = host[first if scheme in ("http", "https") else last :]
        if not _PORT.fullmatch(port):
            raise BadUrl(f"invalid port {quote_text(port)} after host")
    return _host_name(host)


def _literal(host: str) -> str:
    if host.rfind("[") > 0:
        raise BadUrl("invalid IP-literal")
    end = host.rfind("]")
    if end < 0:
        raise BadUrl("missing ']' in host")
    port = host[end + 1 :]
    if not _PORT.fullmatch(port):
        raise BadUrl(f"invalid port {quote_text(port)} after host")
    inner = host[1:end]
    zone = inner.find("%25")
    name = (
        _host_name(inner) if zone < 0 else _host_name(inner[:zone]) + _host_name(inner[zone:], is_zone=True)
    )
    try:
        address, _ = read_address(name)
    except BadAddress as bad:
        raise BadUrl(f"invalid host: {bad}") from bad
    if address.version == 4:
        raise BadUrl("invalid IP-literal")
    return f"[{name}]{port}"


def _host_name(host: str, *, is_zone: bool = False) -> str:
    data = host.encode()
    at = 0
    while at < len(data):
        if data[at] == ord("%"):
            escape = _escape(data, at)
            byte = int(escape[1:], 16)
            is_bad = byte != ord(" ") and byte not in _HOST if is_zone else byte < 0x80
            if is_bad and escape != b"%25":
                raise BadUrl(f"invalid URL escape {quote_text(escape.decode())}")
            at += 3
            continue
        if data[at] < 0x80 and data[at] not in _HOST:
            raise BadUrl(f"invalid character {quote_text(chr(data[at]))} in host name")
        at += 1
    return _unescape(host).decode(errors="replace")


def _escape(data: bytes, at: int) -> bytes:
    match = _ESCAPE.match(data, at)
    assert match is not None
    if match[1] is None:
        raise BadUrl(f"invalid URL escape {quote_text(match.group().decode(errors='replace'))}")
    return match.group()


def _unescape(text: str) -> bytes:
    data = text.encode()
    at = data.find(b"%")
    while at >= 0:
        _escape(data, at)
        at = data.find(b"%", at + 3)
    return _ESCAPE.sub(lambda found: bytes([int(found[1], 16)]), data)


def _path(text: str) -> str:
    """The path that EscapedPath gives: as it was written where that is an escaped form."""
    plain = _unescape(text)
    if all(byte in _PATH_AS_WRITTEN for byte in text.encode()):
        return text
    return "".join(chr(byte) if byte in _PATH else f"%{byte:02X}" for byte in plain)


class BadAddress(Exception):
    """In Go's words."""


def _refuse(text: str, fault: str, at: str = "") -> NoReturn:
    raise BadAddress(f"ParseAddr({quote_text(text)}): {fault}" + (f" (at {quote_text(at)})" if at else ""))


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
            data += _embed(text, rest, len(data), ellipsis)
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
    return IPv6Address(_expand(text, data, ellipsis)), zone


def _group(text: str, rest: str) -> str:
    match = _HEX.match(rest)
    group = match.group() if match else ""
    if len(group) > 4:
        _refuse(text, "each group must have 4 or less digits", rest)
    if not group:
        _refuse(text, "each colon-separated field must have at least one digit", rest)
    return group


def _embed(text: str, rest: str, length: int, ellipsis: int) -> bytes:
    if ellipsis < 0 and length != 12:
        _refuse(text, "embedded IPv4 address must replace the final 2 fields of the address", rest)
    if length + 4 > 16:
        _refuse(text, "too many hex fields to fit an embedded IPv4 at the end of the address", rest)
    return _version_4(text, rest).packed


def _expand(text: str, data: bytearray, ellipsis: int) -> bytes:
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
        raise BadAddress(f"netip.ParsePrefix({quote_text(text)}): {fault}")

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
        refuse(f"bad bits after slash: {quote_text(bits)}")
    if len(bits) > 9 or int(bits) > address.max_prefixlen:
        refuse("prefix length out of range")
    return address, int(bits)
