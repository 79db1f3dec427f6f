"""Validate URLs of a backend and of a proxy as written by an operator. Pure."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import SplitResult, urlsplit

from specmux_cache.errors import BadValue
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
