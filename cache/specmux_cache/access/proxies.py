"""The proxy for a URL according to the environment. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from specmux_cache.access.field_values import is_loopback
from specmux_cache.access.urls import proxy_url
from specmux_cache.errors import AccessError, BadValue


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
