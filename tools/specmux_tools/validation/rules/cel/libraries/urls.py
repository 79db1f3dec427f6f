"""URLs (apiserver, pkg/cel/library/urls.go)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from specmux_converters.go.text import quote_text
from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.validation.rules.cel.checking.declarations import CelLibrary, Overload, member
from specmux_tools.validation.rules.cel.checking.types import BOOL, STRING, list_of, map_of, struct
from specmux_tools.validation.rules.cel.values.values import CelError, LiteralMap, Opaque

URL: Final = struct("kubernetes.URL")
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


@dataclass(frozen=True, slots=True)
class UrlValue(Opaque):
    url: GoUrl
    type_name = URL.name


def _url(text: str) -> UrlValue:
    fault = url_fault(text)
    if fault is None:
        try:
            return UrlValue(read_url(text))
        except BadUrl as bad:
            fault = f"parse {quote_text(text)}: {bad}"
    raise CelError(f"URL parse error during conversion from string: {fault}")


def _query(value: UrlValue) -> LiteralMap:
    return LiteralMap((key, tuple(values)) for key, values in value.url.queries().items())


def _part(name: str, getter: Any) -> Any:
    return (member(name, (URL,), STRING, getter),)


URLS: Final = CelLibrary(
    {
        "url": (Overload("string_to_url", (STRING,), URL, _url),),
        "isURL": (Overload("is_url_string", (STRING,), BOOL, lambda text: url_fault(text) is None),),
        "getScheme": _part("url_get_scheme", lambda value: value.url.scheme),
        "getHost": _part("url_get_host", lambda value: value.url.host),
        "getHostname": _part("url_get_hostname", lambda value: value.url.hostname),
        "getPort": _part("url_get_port", lambda value: value.url.port),
        "getEscapedPath": _part("url_get_escaped_path", lambda value: value.url.path),
        "getQuery": (member("url_get_query", (URL,), map_of(STRING, list_of(STRING)), _query),),
    }
)


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
    from specmux_tools.validation.rules.cel.libraries.addresses import BadAddress, read_address

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
    name = _host_name(inner) if zone < 0 else _host_name(inner[:zone]) + _unescape(inner[zone:]).decode()
    try:
        address, _ = read_address(name)
    except BadAddress as bad:
        raise BadUrl(f"invalid host: {bad}") from bad
    if address.version == 4:
        raise BadUrl("invalid IP-literal")
    return f"[{name}]{port}"


def _host_name(host: str) -> str:
    data = host.encode()
    at = 0
    while at < len(data):
        if data[at] == ord("%"):
            escape = _escape(data, at)
            if int(escape[1:2], 16) < 8 and escape != b"%25":
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
