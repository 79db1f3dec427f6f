"""Validate URLs of a backend and of a proxy as written by an operator, and choose the proxy for a URL by the
environment. Pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import SplitResult, urlsplit

from specmux_cache.errors import AccessError, BadValue
from specmux_converters.group_versions import key_fault
from specmux_converters.lazy.patterns import pattern

_HOST: Final = pattern(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?\.?|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*")


def backend_url(text: str) -> str:
    """Origin and base path without a trailing slash.

    Raises BadValue, which never quotes the URL, since it may contain a password.
    """
    parts = _split(text)
    if "@" in parts.netloc:
        raise BadValue("holds a user name or password; credentials are given by file")
    if "?" in text or "#" in text:
        raise BadValue("holds a query or a fragment; only origin and base path are wanted")
    return f"{parts.scheme}://{parts.netloc}{_base_path(parts.path)}"


def proxy_url(text: str) -> str:
    """The URL of a proxy, optionally with user name and password. Raises BadValue."""
    if text.lower().startswith("socks"):
        raise BadValue("is a SOCKS proxy; only http:// and https:// proxies are supported")
    parts = _split(text)
    if parts.path not in ("", "/") or "?" in text or "#" in text:
        raise BadValue("holds more than scheme, host and port")
    return f"{parts.scheme}://{parts.netloc}"


def _split(text: str) -> SplitResult:
    if not text.isascii() or not text.isprintable() or " " in text or "\\" in text:
        raise BadValue("not a URL: it holds a space, a backslash or a character that is not ASCII")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise BadValue("not a URL: its host or port is malformed") from None
    if parts.scheme not in ("http", "https"):
        raise BadValue("wants a URL that begins with http:// or https://")
    if parts.hostname is None or not _HOST.fullmatch(parts.hostname) or port == 0:
        raise BadValue("not a URL: its host or port is malformed")
    return parts


def _base_path(path: str) -> str:
    base = path.rstrip("/")
    if not base:
        return ""
    fault = key_fault(base.removeprefix("/"))
    if fault is not None:
        raise BadValue(f"its path {fault}")
    if re.search(r"/openapi(/v[23])?$", base):
        raise BadValue("ends in /openapi; give the URL without it")
    return base


def environment_proxy(url: str, environ: Mapping[str, str]) -> str | None:
    """The proxy that HTTPS_PROXY, HTTP_PROXY and NO_PROXY define for a URL, as in Go programs.

    Raises AccessError for an invalid one.
    """
    parts = urlsplit(url)
    variable = f"{parts.scheme.upper()}_PROXY"
    proxy = environ.get(variable) or environ.get(variable.lower())
    no_proxy = environ.get("NO_PROXY") or environ.get("no_proxy") or ""
    host = (parts.hostname or "").rstrip(".")
    if (
        not proxy
        or is_loopback(host)
        or _is_direct(host, parts.port or (443 if parts.scheme == "https" else 80), no_proxy)
    ):
        return None
    try:
        return proxy_url(proxy if "://" in proxy else f"http://{proxy}")
    except BadValue as bad:
        raise AccessError(str(bad), where=variable) from bad


def _is_direct(host: str, port: int, no_proxy: str) -> bool:
    address = _address(host)
    return any(_covers(entry.strip().lower(), host, port, address) for entry in no_proxy.split(","))


def _covers(
    entry: str, host: str, port: int, address: ipaddress.IPv4Address | ipaddress.IPv6Address | None
) -> bool:
    """Whether an entry of NO_PROXY matches this host (golang.org/x/net/http/httpproxy)."""
    if entry == "*":
        return True
    if "/" in entry:
        try:
            return address is not None and address in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
    name = entry
    if _address(entry) is None:
        name, _, wanted = entry.rpartition(":")
        if not name:
            name = entry
        elif wanted != str(port):
            return False
    name = name.strip("[]")
    if address is not None:
        return _address(name) == address
    if name.startswith((".", "*.")):
        return host.endswith(name.removeprefix("*"))
    return bool(name) and (host == name or host.endswith(f".{name}"))


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def is_loopback(host: str | None) -> bool:
    """Whether traffic to the host stays on this machine. Names other than localhost are not resolved."""
    name = (host or "").rstrip(".")
    try:
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
