"""Header fields of relayed messages: which are passed on, which end here, which are added. Pure.

A client's request keeps its own credentials and loses everything that could speak for another: cookies, and
the fields of a front proxy (X-Remote-*, X-Forwarded-*), which only a front proxy may write.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Final

from specmux_aggregator.http.prepared_answer import TOKEN, VALUE
from specmux_cache.http import HOP_BY_HOP

Field = tuple[str, str]

VIA: Final = "1.1 specmux"
HOPS_MAX: Final = 4
"""Most times that a request may pass through specmux: one instance before another is intended, a loop is
not."""

_HOP_BY_HOP: Final = HOP_BY_HOP | {"http2-settings"}

_OF_REQUESTS: Final = _HOP_BY_HOP | {"content-length", "cookie", "expect", "forwarded", "host", "x-real-ip"}
_OF_ANSWERS: Final = _HOP_BY_HOP | {
    "alt-svc",
    "clear-site-data",
    "content-length",
    "refresh",
    "set-cookie",
    "set-cookie2",
    "strict-transport-security",
}
"""Includes fields that apply to a whole origin, which this service shares with other backends."""
_OF_FRONT_PROXIES: Final = ("x-remote-", "x-forwarded-")

_PUNCTUATION: Final = re.compile("[^a-z0-9]")

_CREDENTIAL: Final = re.compile("api-?key|auth|cookie|impersonat|secret|session|token")
"""Matches the names of fields that can identify the caller to a backend."""

_UNSENDABLE: Final = re.compile("[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")
"""Control characters, and bytes that are not UTF-8, which aiohttp could not write unchanged."""

_SWAGGER_ASKED: Final = ("Accept", "Accept-Encoding", "If-None-Match", "Traceparent", "Via")
_SWAGGER_TOLD: Final = frozenset(
    {"cache-control", "content-encoding", "content-type", "date", "etag", "last-modified", "vary"}
)


def resource_fields(fields: Iterable[Field], *, client: str | None) -> list[Field]:
    """The fields of a client's request that a backend receives. ``client``: the address of its connection.

    Raises ValueError for a value that cannot be passed on unchanged.
    """
    given = list(fields)
    if sum(name.lower() == "authorization" for name, _ in given) > 1:
        raise ValueError("the field Authorization is given more than once")  # ambiguous: which one is meant?
    dropped = _OF_REQUESTS | _named_by_connection(given)
    passed = []
    for name, value in given:
        # Normalized as by a backend behind CGI-like variables: X_Remote_User, X.Remote.User.
        plain = _PUNCTUATION.sub("-", name.lower())
        if name.lower() in dropped or plain in dropped or plain.startswith(_OF_FRONT_PROXIES):
            continue
        if _UNSENDABLE.search(value):
            raise ValueError(f"the field {name} holds a character that cannot be passed on")
        passed.append((name, value))
    passed.append(("Via", VIA))
    if client is not None:
        passed.append(("X-Forwarded-For", client))
    return passed


def asker_of(fields: Iterable[Field]) -> bytes:
    """A digest of the fields that identify the caller; empty for an anonymous one."""
    told = sorted((name.lower(), value) for name, value in fields if _CREDENTIAL.search(name.lower()))
    return hashlib.sha256(repr(told).encode()).digest() if told else b""


def swagger_fields(fields: Iterable[Field]) -> list[Field]:
    """The fields that a backend receives from a client that requests its Swagger 2.0 document."""
    asked: dict[str, list[str]] = {name: [] for name in _SWAGGER_ASKED}
    for name, value in fields:
        values = asked.get(name.title())
        if values is not None and value.isascii() and VALUE.match(value):
            values.append(value)
    sent = [(name, ", ".join(values)) for name, values in asked.items() if values]
    if not asked["Accept-Encoding"]:
        sent.append(("Accept-Encoding", "identity"))
    return [*sent, ("Via", VIA)]


def answer_fields(raw: Iterable[tuple[bytes, bytes]]) -> list[Field]:
    """The fields of a backend's answer that a client receives. Raises ValueError for one that would break the
    framing."""
    given = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in raw]
    if has_other_coding(given):
        raise ValueError("the answer has a transfer coding that was not asked for")
    dropped = _OF_ANSWERS | _named_by_connection(given)
    passed = [(name, value) for name, value in given if name.lower() not in dropped]
    for name, value in passed:
        if not TOKEN.match(name) or not VALUE.match(value):
            raise ValueError("a field of the answer is malformed")
    return [*passed, ("Via", VIA)]


def swagger_answer_fields(raw: Iterable[tuple[bytes, bytes]]) -> list[Field]:
    """The ``answer_fields`` of a Swagger 2.0 document."""
    passed = answer_fields(raw)
    return [(name, value) for name, value in passed if name.lower() in _SWAGGER_TOLD or name == "Via"]


def has_other_coding(fields: Iterable[Field]) -> bool:
    """Whether the message has a transfer coding other than chunked, which would be lost in relaying."""
    codings = [value for name, value in fields if name.lower() == "transfer-encoding"]
    return bool(codings) and [value.lower() for value in codings] != ["chunked"]


def hops(fields: Iterable[Field]) -> int:
    """How many times the request has passed through specmux."""
    return sum(len(re.findall(r"\bspecmux\b", value)) for name, value in fields if name.lower() == "via")


def wants_upgrade(fields: Iterable[Field]) -> bool:
    """Whether the client wants to switch to another protocol (RFC 9110 7.8)."""
    given = list(fields)
    return any(name.lower() == "upgrade" for name, _ in given) and "upgrade" in _named_by_connection(given)


def _named_by_connection(fields: Iterable[Field]) -> frozenset[str]:
    values = [value for name, value in fields if name.lower() == "connection"]
    return frozenset(token.strip().lower() for value in values for token in value.split(","))
